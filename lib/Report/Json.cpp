//===- Json.cpp - A plan as JSON ------------------------------------------===//
//
// The schema is docs/PlanOutput.md; `format` counts its versions. Keys may be added within a version.
//
//===----------------------------------------------------------------------===//

#include "Bands.h"
#include "Derived.h"

using namespace k2c;
using namespace k2c::report;
using nlohmann::ordered_json;

ordered_json report::memoryJson(const ClusterPlan &plan) {
  ordered_json list = ordered_json::array();
  for (const RankMemory &ranks : plan.memory) {
    ordered_json parts = ordered_json::object();
    for (const MemoryPart &part : ranks.parts)
      parts[part.name] = part.bytes.value;
    ordered_json entry = {{"ranks", ranks.ranks}, {"count", ranks.count}, {"stage", ranks.stage}};
    if (!ranks.pool.empty())
      entry["pool"] = ranks.pool;
    entry.update({{"parameters", ranks.parameters},
                  {"total_bytes", ranks.total().value},
                  {"capacity_bytes", ranks.capacity.value},
                  {"parts", std::move(parts)}});
    if (plan.host)
      entry["host_bytes"] = ranks.host.value;
    list.push_back(std::move(entry));
  }
  return list;
}

namespace {

ordered_json layoutOf(const ParallelLayout &l, PlanPhase phase) {
  ordered_json layout = {{"text", format(l, phase)},
                         {"tp", l.tp},
                         {"ep", l.ep},
                         {"etp", l.etp},
                         {"pp", l.pp},
                         {"dp", l.dp},
                         {"cp", l.cp},
                         {"sp", l.sp},
                         {"overlap", l.overlap}};
  if (phase == PlanPhase::Serve) {
    if (l.role != PoolRole::Both)
      layout["phase"] = nameOf(l.role);
    layout["replicas"] = l.replicas;
    layout["vocab"] = l.vocab;
    layout["step_tokens"] = l.stepTokens;
    layout["redundant_experts"] = l.redundantExperts;
    if (l.prefill)
      layout["prefill"] = layoutOf(*l.prefill, phase);
    return layout;
  }
  layout["schedule"] = nameOf(l.schedule);
  layout["chunks"] = l.chunks;
  layout["layers"] = l.layers;
  layout["microbatches"] = l.microbatches;
  layout["microbatch_size"] = l.microbatchSize;
  layout["recompute"] = nameOf(l.recompute);
  layout["zero"] = nameOf(l.zero);
  layout["offload"] = nameOf(l.offload);
  return layout;
}

ordered_json stepsOf(const ClusterPlan &plan) {
  ordered_json list = ordered_json::array();
  for (const StepPart &part : plan.steps)
    list.push_back({{"phase", part.phase},
                    {"name", part.name},
                    {"seconds", part.seconds.value},
                    {"hidden_seconds", part.hidden.value},
                    {"flops", part.flops.value},
                    {"memory_bytes", part.memoryBytes},
                    {"link_bytes", part.linkBytes},
                    {"tier", part.tier},
                    {"bound", nameOf(part.bound)}});
  return list;
}

ordered_json trafficOf(const ClusterPlan &plan) {
  ordered_json list = ordered_json::array();
  for (const TierTraffic &tier : plan.traffic)
    list.push_back({{"phase", tier.phase},
                    {"tier", tier.tier},
                    {"link", tier.link},
                    {"bytes", tier.bytes},
                    {"bytes_per_s", tier.available.value},
                    {"seconds", tier.seconds.value}});
  return list;
}

ordered_json figuresOf(const ClusterPlan &plan) {
  ordered_json figures = ordered_json::object();
  for (const Figure &figure : plan.figures)
    figures[figure.key] = {{"value", figure.value}, {"unit", figure.unit}, {"label", figure.label}};
  return figures;
}

/// The timeline's sums; its tasks are the trace.
ordered_json pipelineOf(const ClusterPlan &plan) {
  ordered_json ranks = ordered_json::array();
  for (const PipelineRank &rank : pipelineRanks(plan))
    ranks.push_back({{"rank", rank.rank}, {"busy_s", rank.busy}, {"idle_s", rank.idle}});
  return {{"seconds", pipelineSeconds(plan)}, {"tasks", plan.timeline.size()}, {"ranks", std::move(ranks)}};
}

/// A plan among others: what it is compared by.
ordered_json candidateOf(const ClusterPlan &plan) {
  ordered_json figures = ordered_json::object();
  for (const Figure &figure : plan.figures)
    figures[figure.key] = figure.value;
  ordered_json entry = {{"layout", format(plan.layout, plan.phase)}, {"devices", plan.devices}};
  if (!plan.memory.empty())
    entry["fullest_rank_bytes"] = plan.fullest().total().value;
  entry["figures"] = std::move(figures);
  return entry;
}

ordered_json searchOf(const PlanSearch &search) {
  ordered_json frontier = ordered_json::array(), runnersUp = ordered_json::array(), refused = ordered_json::array();
  for (const ClusterPlan &plan : search.frontier)
    frontier.push_back(candidateOf(plan));
  for (const RunnerUp &runnerUp : search.runnersUp) {
    ordered_json entry = candidateOf(runnerUp.plan);
    entry["loses"] = runnerUp.loses;
    runnersUp.push_back(std::move(entry));
  }
  for (const Refused &reason : search.refused)
    refused.push_back({{"reason", reason.reason}, {"count", reason.count}, {"example", reason.example}});
  return {{"objective", nameOf(search.objective)}, {"candidates", search.candidates},
          {"compiling", search.compiling},         {"frontier", std::move(frontier)},
          {"runners_up", std::move(runnersUp)},    {"refused", std::move(refused)}};
}

} // namespace

ordered_json k2c::planJson(const PlanReport &report) {
  const ClusterPlan &plan = report.plan;
  const PlanSummary summary = summarize(report);
  ordered_json json = {{"format", 1},
                       {"model", plan.model},
                       {"topology", plan.topology},
                       {"workload", plan.workload},
                       {"phase", plan.phase == PlanPhase::Serve ? "serve" : "train"},
                       {"layout", layoutOf(plan.layout, plan.phase)},
                       {"devices", plan.devices},
                       {"available_devices", plan.available},
                       {"compute", name(plan.compute)},
                       {"weights", plan.weightFormat},
                       {"cache", name(plan.cache)},
                       {"fits", summary.fits},
                       {"summary", {{"fit", summary.fit}, {"bounds", summary.bounds}, {"advice", summary.advice}}},
                       {"figures", figuresOf(plan)},
                       {"memory", memoryJson(plan)},
                       {"steps", stepsOf(plan)},
                       {"overlapped", plan.overlapped},
                       {"traffic", trafficOf(plan)}};
  if (plan.host)
    json["host"] = {{"node_bytes", plan.host->bytes.value}, {"capacity_bytes", plan.host->capacity.value}};
  if (!plan.timeline.empty())
    json["pipeline"] = pipelineOf(plan);
  json["compilable"] = plan.whyNotCompilable.empty();
  json["why_not_compilable"] = plan.whyNotCompilable;
  json["bands"] = ordered_json::object();
  for (const report::Band &band : report::bandsOf(report))
    json["bands"][band.name] = band.text;
  json["notes"] = plan.notes;
  if (report.counts)
    json["counts"] = *report.counts;
  if (report.search)
    json["search"] = searchOf(*report.search);
  return json;
}
