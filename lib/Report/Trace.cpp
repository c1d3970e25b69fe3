//===- Trace.cpp - The predicted step for Perfetto ------------------------===//
//
// Chrome's trace events as the runtime writes them (runtime/src/trace): complete events with times in microseconds, one
// process, one track for each thing that runs one after another. A predicted and a measured trace open side by side.
//
// Plans have the parts of all layers together; a serving trace shares them out. A layer computes its attention and what
// every row passes, sends rows to the experts' ranks, computes experts, and sends rows back; half of what a layer sends
// is taken to go each way. Two halves of a batch that overlap take turns, as the plan's time is made (ServeStep.cpp):
//
//   compute    A attention   B attention   A experts    B experts    | the next layer
//   transfers  B combine     A dispatch    B dispatch   A combine    |
//
// Where one of the two is longer, the other waits. The whole is scaled to the time that the plan states of the phase.
//
//===----------------------------------------------------------------------===//

#include "Derived.h"
#include "base/JsonText.h"

#include <algorithm>

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

/// What a layer does at once.
struct Work {
  const StepPart *part;
  std::string name;
  double seconds; ///< of one layer, of a whole batch
};

/// The works of one layer in the order in which they run, by the names that the planner gives parts.
struct Layer {
  std::vector<Work> front, dispatch, back, combine;
};

bool isIn(const std::string &name, std::initializer_list<const char *> names) {
  return std::any_of(names.begin(), names.end(), [&](const char *each) { return name == each; });
}

/// Of all layers together, not of each. Layers of training are tasks of its pipeline, or not told apart.
bool isOnce(const StepPart &part, const ClusterPlan &plan) {
  return plan.phase == PlanPhase::Train || part.phase == "transfer" ||
         isIn(part.name, {"embedding", "embedding, head", "logits", "draft module", "pipeline"});
}

Layer layerOf(const PhaseParts &phase, const ClusterPlan &plan, bool hasExperts) {
  const double layers = double(std::max<int64_t>(1, plan.layers)), routed = double(plan.expertLayers.size());
  Layer layer;
  for (const StepPart *part : phase.parts) {
    const bool isRouted = isIn(part->name, {"experts", "dispatch, combine"}) && routed > 0;
    if (isOnce(*part, plan) || (isRouted && !hasExperts))
      continue;
    const double seconds = part->exposed().value / (isRouted ? routed : layers);
    if (!PhaseParts::onLinks(*part)) {
      (part->name == "experts" ? layer.back : layer.front).push_back({part, part->name, seconds});
      continue;
    }
    const bool isPair = part->name == "dispatch, combine";
    layer.dispatch.push_back({part, isPair ? "dispatch" : part->name, seconds / 2});
    layer.combine.push_back({part, isPair ? "combine" : part->name, seconds / 2});
  }
  return layer;
}

/// Spans of one phase; times are in the plan's seconds before they are scaled.
class PhaseTrace {
public:
  PhaseTrace(Events &events, const PhaseParts &phase, int64_t work, int64_t links)
      : events(events), phase(phase), work(work), links(links) {}

  void write(const ClusterPlan &plan) {
    const Layer routed = layerOf(phase, plan, true), dense = layerOf(phase, plan, false);
    auto layer = [&](int64_t i) -> const Layer & {
      const bool hasExperts = std::binary_search(plan.expertLayers.begin(), plan.expertLayers.end(), i);
      return hasExperts || plan.expertLayers.empty() ? routed : dense;
    };
    const Layer none, *before = &none;
    for (int64_t i = 0; i < std::max<int64_t>(1, plan.layers); before = &layer(i++))
      if (phase.overlaps)
        addHalves(layer(i), *before, i);
      else
        for (const auto *works : {&layer(i).front, &layer(i).dispatch, &layer(i).back, &layer(i).combine})
          now = add(work, *works, now, i, "");
    if (phase.overlaps)
      now = add(links, before->combine, now, plan.layers - 1, "B");
    for (const StepPart *part : phase.parts)
      if (isOnce(*part, plan))
        now = add(PhaseParts::onLinks(*part) ? links : work, {{part, part->name, part->exposed().value}}, now, -1, "");
    const double scale = now > 0 ? phase.seconds() / now : 0;
    for (const Span &span : spans)
      events.span(span.track, span.name, nameOf(span.part->bound), span.begin * scale, span.seconds * scale, span.args);
  }

private:
  struct Span {
    int64_t track;
    std::string name;
    const StepPart *part;
    double begin, seconds;
    ordered_json args;
  };

  /// Works one after another, of a whole batch or of a half; returns when the last one ends.
  double add(int64_t track, const std::vector<Work> &works, double at, int64_t layer, const std::string &half) {
    for (const Work &work : works) {
      ordered_json args = {{"bound", nameOf(work.part->bound)}, {"tier", work.part->tier}};
      if (layer >= 0)
        args["layer"] = layer;
      if (!half.empty())
        args["half"] = half;
      const double seconds = half.empty() ? work.seconds : work.seconds / 2;
      const std::string name = layer < 0 ? work.name : work.name + ", layer " + std::to_string(layer);
      spans.push_back({track, name + (half.empty() ? "" : " " + half), work.part, at, seconds, std::move(args)});
      at += seconds;
    }
    return at;
  }

  /// The four slots of a layer, each as long as the longer of what it computes and what it moves.
  void addHalves(const Layer &layer, const Layer &before, int64_t index) {
    auto slot = [&](const std::vector<Work> &computed, const char *half, const std::vector<Work> &moved,
                    const char *other, int64_t movedLayer) {
      const double end = add(work, computed, now, index, half);
      now = std::max(end, add(links, moved, now, movedLayer, other));
    };
    slot(layer.front, "A", before.combine, "B", index - 1);
    slot(layer.front, "B", layer.dispatch, "A", index);
    slot(layer.back, "A", layer.dispatch, "B", index);
    slot(layer.back, "B", layer.combine, "A", index);
  }

  Events &events;
  const PhaseParts &phase;
  int64_t work, links;
  double now = 0;
  std::vector<Span> spans;
};

/// Parts of each phase one after another; what overlaps is on a track of its own.
void addPhases(Events &events, const ClusterPlan &plan) {
  int64_t track = 0;
  for (const PhaseParts &phase : phasesOf(plan)) {
    const int64_t work = track++, links = phase.overlaps ? track++ : work;
    events.track(work, phase.phase + (phase.overlaps ? ": work" : ""));
    if (links != work)
      events.track(links, phase.phase + ": transfers");
    PhaseTrace(events, phase, work, links).write(plan);
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
