//===- Summary.cpp - Does it fit, what bounds it, what would help ---------===//
//
// Advice is one sentence for each cause that the plan shows: a rank over its capacity, the longest part of a phase and
// what it waits for, devices mostly empty. It names the flag or the key of the layout that changes it.
//
//===----------------------------------------------------------------------===//

#include "Derived.h"
#include "base/JsonText.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace k2c;
using namespace k2c::report;

double PhaseParts::lane(bool links) const {
  double sum = 0;
  for (const StepPart *part : parts)
    if (onLinks(*part) == links)
      sum += part->exposed().value;
  return sum;
}

double PhaseParts::seconds() const {
  const double local = lane(false), links = lane(true);
  return overlaps ? std::max({local, links, step}) : local + links;
}

std::vector<PhaseParts> report::phasesOf(const ClusterPlan &plan) {
  std::vector<PhaseParts> phases;
  for (const StepPart &part : plan.steps) {
    auto at = std::find_if(phases.begin(), phases.end(), [&](const PhaseParts &p) { return p.phase == part.phase; });
    if (at == phases.end())
      at = phases.insert(phases.end(),
                         PhaseParts{part.phase, {}, false, plan.figure(part.phase + "_step_s").value_or(0)});
    at->parts.push_back(&part);
  }
  // A training schedule overlaps the parts of two phases, which a drawing of one phase cannot show.
  for (PhaseParts &phase : phases)
    phase.overlaps = plan.overlaps(phase.phase) && plan.phase == PlanPhase::Serve && phase.lane(true) > 0;
  return phases;
}

double report::pipelineSeconds(const ClusterPlan &plan) {
  double begin = INFINITY, end = 0;
  for (const PipelineSpan &span : plan.timeline) {
    begin = std::min(begin, span.begin.value);
    end = std::max(end, span.end.value);
  }
  return plan.timeline.empty() ? 0 : end - begin;
}

std::vector<PipelineRank> report::pipelineRanks(const ClusterPlan &plan) {
  std::vector<PipelineRank> ranks;
  for (const PipelineSpan &span : plan.timeline) {
    while (int32_t(ranks.size()) <= span.rank)
      ranks.push_back({int32_t(ranks.size()), 0, 0});
    ranks[size_t(span.rank)].busy += span.end.value - span.begin.value;
  }
  const double seconds = pipelineSeconds(plan);
  for (PipelineRank &rank : ranks)
    rank.idle = std::max(0.0, seconds - rank.busy);
  return ranks;
}

bool report::hasLanes(const ClusterPlan &plan) {
  return std::any_of(plan.timeline.begin(), plan.timeline.end(), [](const PipelineSpan &span) {
    return span.task.lane > 0 || (span.partner && span.partner->lane > 0);
  });
}

std::string k2c::nameOf(const PipelineSpan &span, bool lanes) {
  auto name = [&](const PipelineTask &task) {
    static const char letters[] = {'F', 'B', 'I', 'W'};
    std::string text(1, letters[size_t(task.work)]);
    if (lanes)
      text += std::to_string(task.lane) + ".";
    return text + std::to_string(task.microbatch);
  };
  return span.partner ? name(span.task) + "&" + name(*span.partner) : name(span.task);
}

std::string report::printShare(double share) {
  if (share > 0 && share < 0.0005)
    return "<0.1 %";
  char text[32];
  std::snprintf(text, sizeof text, share < 0.0995 && share > 0 ? "%.1f %%" : "%.0f %%", 100 * share);
  return text;
}

std::string report::printFigure(double value, const std::string &unit) {
  if (unit == "s")
    return format(Seconds(value));
  if (unit == "B" || unit == "bytes")
    return format(Bytes(int64_t(std::llround(std::min(value, 9e18)))));
  if (unit == "devices") // of which the label has the word
    return formatCount(std::llround(value));
  if (unit == "FLOP")
    return format(Flops(value));
  if (unit.empty() && value >= 0 && value <= 1)
    return printShare(value);
  if (std::fabs(value) >= 1000 && std::fabs(value) < 1e15)
    return formatCount(std::llround(value)) + (unit.empty() ? "" : " " + unit);
  return formatNumber(value, unit == "$" ? 3 : 4) + (unit.empty() ? "" : " " + unit);
}

std::string report::cleanText(const std::string &text) {
  using nlohmann::json;
  const std::string encoded = jsonText(json(text));
  std::string clean = json::parse(encoded).get<std::string>();
  for (char &c : clean)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = ' ';
  return clean;
}

Tradeoff report::tradeoffOf(const ClusterPlan &plan) {
  Tradeoff tradeoff;
  auto find = [&](const Figure *&to, std::initializer_list<const char *> keys) {
    for (const char *key : keys)
      for (const Figure &figure : plan.figures)
        if (!to && figure.key == key)
          to = &figure;
  };
  find(tradeoff.rate, {"output_tokens_per_s", "tokens_per_s", "input_tokens_per_s"});
  find(tradeoff.latency, {"tpot_s", "step_s", "ttft_s"});
  return tradeoff;
}

namespace {

/// The longest part; where lanes overlap, of the longer lane.
const StepPart &longest(const PhaseParts &phase) {
  const bool links = phase.lane(true) > phase.lane(false);
  auto weight = [&](const StepPart *part) {
    return phase.overlaps && PhaseParts::onLinks(*part) != links ? -1 : part->exposed().value;
  };
  return **std::max_element(phase.parts.begin(), phase.parts.end(),
                            [&](auto *a, auto *b) { return weight(a) < weight(b); });
}

std::string boundOf(const PhaseParts &phase) {
  const StepPart &part = longest(phase);
  if (phase.phase == "transfer" && part.hidden > part.exposed())
    return "the KV transfer of a request runs beside prefill: " + format(part.seconds) + " over tier " + part.tier +
           ", of which " + format(part.exposed()) + " are exposed in TTFT";
  std::string text = phase.phase + " is bound by ";
  text += part.bound == Bound::Latency ? "the latency of messages"
          : part.bound == Bound::Link  ? "the bandwidth of links"
                                       : nameOf(part.bound);
  if (!part.tier.empty() && PhaseParts::onLinks(part))
    text += " (tier " + part.tier + ")";
  return text + "; its longest part is " + part.name + ": " + format(part.exposed()) + ", " +
         printShare(part.exposed().value / phase.seconds()) + " of " + format(Seconds(phase.seconds())) +
         (phase.overlaps ? " with transfers beside it" : "");
}

/// Traffic lists tiers from the innermost, and what goes to the host.
bool isInnermost(const std::string &tier, const ClusterPlan &plan) {
  const auto first = std::find_if(plan.traffic.begin(), plan.traffic.end(),
                                  [](const TierTraffic &each) { return each.tier != "host"; });
  return first != plan.traffic.end() && first->tier == tier;
}

/// What makes the longest part of a phase shorter.
std::string remedyOf(const PhaseParts &phase, const PlanReport &report) {
  const std::string device = wordOf(report.topology.device.kind);
  const StepPart &part = longest(phase);
  const bool serves = report.plan.phase == PlanPhase::Serve, isExperts = part.name.find("expert") != std::string::npos,
             readsCache = part.name.find("attention") != std::string::npos;
  switch (part.bound) {
  case Bound::Compute:
    return phase.phase + ": " +
           (report.plan.available > 1
                ? "more " + device + "s, or weights and activations in a narrower format, shorten it"
                : "weights and activations in a narrower format shorten it");
  case Bound::Memory: {
    char intensity[64];
    std::snprintf(intensity, sizeof intensity, "%.3g", part.memoryBytes > 0 ? part.flops.value / part.memoryBytes : 0);
    const std::string reads = phase.phase + ", " + part.name + ": " + intensity + " FLOP/byte; ";
    if (part.flops.value <= 0)
      return phase.phase + ", " + part.name + ": only moves bytes; zero=os divides states among data-parallel ranks";
    if (!serves)
      return reads + "a larger micro-batch or longer sequences raise it";
    const bool isFull = !report.plan.memory.empty() && double(report.plan.fullest().total().value) >
                                                           0.95 * double(report.plan.fullest().capacity.value);
    const std::string more = isFull ? "" : "serve more sequences at once, or "; // if they fit
    return reads + more +
           (isExperts    ? "raise ep so that each rank reads fewer experts"
            : readsCache ? "keep fewer cached tokens or a KV cache in FP8"
                         : "hold its weights in a narrower format");
  }
  case Bound::Link:
    if (phase.phase == "exchange")
      return phase.phase + ": " + part.name + " cross tier " + part.tier + "; " +
             (report.plan.layout.zero >= Zero::OsG
                  ? "zero=os sums gradients once a step, larger micro-batches less often"
                  : "more tokens a step share it");
    if (phase.phase == "transfer")
      return "transfer: the KV cache of a request crosses tier " + part.tier + "; pools inside a faster tier, more " +
             device + "s in a receiving rank (tp, cp or pp) or a narrower cache shorten it";
    return phase.phase + ": the traffic of " + part.name + " crosses tier " + part.tier + "; " +
           (isInnermost(part.tier, report.plan) ? "" : "keep its ranks inside a faster tier, or ") +
           (report.plan.layoutOf(phase.phase).overlap ? "lower its bytes (narrower dispatch, fewer nodes a token)"
                                                      : "hide it behind work (overlap=1)");
  case Bound::Latency:
    return phase.phase + ": the messages of " + part.name +
           " are too small for the link; more tokens a step or fewer ranks in the group make them larger";
  }
  return "";
}

std::string memoryRemedy(const RankMemory &ranks, const ClusterPlan &plan) {
  const MemoryPart &part =
      *std::max_element(ranks.parts.begin(), ranks.parts.end(), [](auto &a, auto &b) { return a.bytes < b.bytes; });
  auto names = [&](const char *word) { return part.name.find(word) != std::string::npos; };
  std::string help = "more devices (tp, ep or pp)";
  if (names("expert"))
    help = "a larger ep or pp, or a narrower weight format";
  else if (names("cache"))
    help = "fewer or shorter sequences, a cache in FP8, or more data-parallel ranks";
  else if (names("optimizer") || names("gradient") || names("master"))
    help = "ZeRO (zero=os or os+g), offload=optimizer or more data-parallel ranks";
  else if (names("activation"))
    help = plan.phase == PlanPhase::Train ? "recomputation, offload=activations, a smaller micro-batch, or cp"
                                          : "a smaller step";
  return part.name + " takes most, " + format(part.bytes) + ": " + help;
}

} // namespace

PlanSummary k2c::summarize(const PlanReport &report) {
  PlanSummary summary;
  summary.fits = report.plan.fits();
  if (!report.plan.memory.empty()) {
    const RankMemory &full = report.plan.fullest();
    const std::string holds = (full.count > 1 ? "ranks " + full.ranks + " hold " : "rank " + full.ranks + " holds ") +
                              format(full.total()) + " of " + format(full.capacity);
    const double share = double(full.total().value) / double(std::max<int64_t>(1, full.capacity.value));
    if (summary.fits)
      summary.fit = "fits: " + holds + ", " + printShare(share);
    else if (!full.fits())
      summary.fit = "does not fit: " + holds + ", " + format(full.total() - full.capacity) + " too much";
    else
      summary.fit = "does not fit: a node's host holds " + format(report.plan.host->bytes) + " of " +
                    format(report.plan.host->capacity);
    if (!full.fits() && !full.parts.empty())
      summary.advice.push_back(memoryRemedy(full, report.plan));
    if (summary.fits && share < 0.5 && report.plan.devices > 1)
      summary.advice.push_back("the fullest rank uses " + printShare(share) + " of its memory: fewer " +
                               wordOf(report.topology.device.kind) + "s would do" +
                               (report.plan.layout.role == PoolRole::Both ? " (--search --objective devices)" : ""));
  }
  const std::vector<PhaseParts> phases = phasesOf(report.plan);
  double all = 0;
  for (const PhaseParts &phase : phases)
    all += phase.seconds();
  for (const PhaseParts &phase : phases) {
    // What takes little of a training step is not worth a sentence; prefill and decode are steps of their own.
    const bool isShort = report.plan.phase == PlanPhase::Train && phase.seconds() <= 0.05 * all;
    if (isShort || phase.seconds() <= 0 || PhaseParts::isIdle(longest(phase)))
      continue;
    summary.bounds.push_back(boundOf(phase));
    if (phase.phase != "transfer" || longest(phase).hidden <= longest(phase).exposed())
      summary.advice.push_back(remedyOf(phase, report));
  }
  if (!report.plan.timeline.empty()) {
    const std::vector<PipelineRank> ranks = pipelineRanks(report.plan);
    double idle = 0, least = pipelineSeconds(report.plan);
    for (const PipelineRank &rank : ranks) {
      idle += rank.idle / double(ranks.size());
      least = std::min(least, rank.idle);
    }
    const double share = idle / pipelineSeconds(report.plan), busiest = least / pipelineSeconds(report.plan);
    summary.bounds.push_back("the bubble is " + printShare(share) + " of the pipeline's time, the mean of its ranks");
    const PipelineKind kind = report.plan.layout.schedule;
    const ParallelLayout &layout = report.plan.layout;
    const bool hasDualPipe = layout.pp % 2 == 0 && layout.microbatches % 2 == 0 && layout.microbatches >= 2 * layout.pp;
    const bool isShort = kind == PipelineKind::DualPipe || kind == PipelineKind::DualPipeV || !hasDualPipe;
    if (share - busiest > 0.05)
      summary.advice.push_back("the busiest rank is idle " + printShare(busiest) +
                               ": give stages with a head or longer layers fewer of them (layers=3+4x14+2; --search "
                               "chooses)");
    if (busiest > 0.1)
      summary.advice.push_back(std::string("more micro-batches or fewer stages shorten the bubble") +
                               (isShort ? "" : ", and so does schedule=dualpipe"));
  }
  return summary;
}
