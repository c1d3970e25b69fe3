//===- Trace.cpp - The predicted step for Perfetto ------------------------===//
//
// Chrome's trace events as the runtime writes them (runtime/src/trace): complete events with times in microseconds, one
// process, one track for each thing that runs one after another. A predicted and a measured trace open side by side.
//
//===----------------------------------------------------------------------===//

#include "Derived.h"
#include "base/JsonText.h"

using namespace k2c;
using namespace k2c::report;
using nlohmann::ordered_json;

namespace {

class Events {
public:
  explicit Events(const std::string &process) {
    list.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", process}}}});
  }
  void track(int64_t id, const std::string &name) {
    list.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", id}, {"args", {{"name", name}}}});
    list.push_back(
        {{"name", "thread_sort_index"}, {"ph", "M"}, {"pid", 1}, {"tid", id}, {"args", {{"sort_index", id}}}});
  }
  void span(int64_t track, const std::string &name, const std::string &category, double begin, double seconds,
            ordered_json args) {
    list.push_back({{"name", name},
                    {"cat", category},
                    {"ph", "X"},
                    {"pid", 1},
                    {"tid", track},
                    {"ts", begin * 1e6},
                    {"dur", seconds * 1e6},
                    {"args", std::move(args)}});
  }
  std::string text() const {
    std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    for (size_t i = 0; i < list.size(); ++i)
      out += (i ? ",\n" : "\n") + jsonText(list[i]);
    return out + "\n]}\n";
  }

private:
  std::vector<ordered_json> list;
};

const char *categoryOf(PipelineWork work) {
  static const char *const names[] = {"forward", "backward", "input gradient", "weight gradient"};
  return names[size_t(work)];
}

void addPipeline(Events &events, const ClusterPlan &plan) {
  const bool lanes = hasLanes(plan);
  for (const PipelineRank &rank : pipelineRanks(plan))
    events.track(rank.rank, "pipeline rank " + std::to_string(rank.rank));
  for (const PipelineSpan &span : plan.timeline) {
    ordered_json args = {{"microbatch", span.task.microbatch}, {"lane", span.task.lane}};
    if (span.partner)
      args["partner_microbatch"] = span.partner->microbatch;
    events.span(span.rank, nameOf(span, lanes), span.partner ? "overlapped pair" : categoryOf(span.task.work),
                span.begin.value, span.end.value - span.begin.value, std::move(args));
  }
}

/// Parts of each phase one after another; what overlaps is on a track of its own.
void addPhases(Events &events, const ClusterPlan &plan) {
  int64_t track = 0;
  for (const PhaseParts &phase : phasesOf(plan)) {
    const int64_t work = track++, links = phase.overlaps ? track++ : work;
    events.track(work, phase.phase + (phase.overlaps ? ": work" : ""));
    if (links != work)
      events.track(links, phase.phase + ": transfers");
    double end[2] = {0, 0};
    for (const StepPart *part : phase.parts) {
      const bool isLink = phase.overlaps && PhaseParts::onLinks(*part);
      events.span(isLink ? links : work, part->name, nameOf(part->bound), end[isLink], part->exposed().value,
                  {{"bound", nameOf(part->bound)},
                   {"flops", part->flops.value},
                   {"memory_bytes", part->memoryBytes},
                   {"link_bytes", part->linkBytes},
                   {"tier", part->tier}});
      end[isLink] += part->exposed().value;
    }
  }
}

} // namespace

std::string k2c::planTrace(const PlanReport &report) {
  const ClusterPlan &plan = report.plan;
  Events events("k2c plan: " + plan.model + " on " + plan.topology + ", " + format(plan.layout, plan.phase));
  if (plan.timeline.empty())
    addPhases(events, plan);
  else
    addPipeline(events, plan);
  return events.text();
}
