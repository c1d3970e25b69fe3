//===- ScheduleQueries.cpp - Queries about pipeline schedules -------------===//
//
// Pipeline schedules are asked for in two ways. Closed forms (bubble, bubble_fraction, activation_factor,
// param_factor) are those of paper 000 and of DualPipe's README; a bubble is refused where the durations are outside
// the conditions of its form, or where the form is negative, instead of giving a number that no schedule has.
// `schedule` makes the orders of all ranks and simulates them; there the bubble is that of the worst rank, and beside
// it stands the closed form where one holds, which none does when stages differ.
//
// Durations are numbers for all stages or lists, one entry for each stage of the model in the order of its layers.
// Fields have several spellings (pp or pp_stages, microbatches or m, v or vpp): an error names the one that the inputs
// use.
//
//===----------------------------------------------------------------------===//

#include "../Parts.h"
#include "../Read.h"
#include "k2c/Planner/Schedule.h"
#include <algorithm>

using namespace k2c;
using namespace k2c::formulas;

namespace {

constexpr int64_t maxStages = 1 << 16;

/// A question with chunks and no schedule means the interleaved one.
PipelineKind kind(QueryInputs &in) {
  return readSchedule(in, in.has("v") ? std::optional(PipelineKind::Interleaved) : std::nullopt);
}

/// The key that is there of several spellings; the first when none is.
std::string spelling(const QueryInputs &in, std::initializer_list<const char *> keys) {
  for (const char *key : keys)
    if (in.has(key))
      return key;
  return *keys.begin();
}

/// Key of a shape's field as the inputs spell it.
std::string keyOf(const QueryInputs &in, const std::string &field) {
  if (field == "pp")
    return spelling(in, {"pp", "pp_stages"});
  if (field == "microbatches")
    return spelling(in, {"microbatches", "m"});
  if (field == "chunks")
    return spelling(in, {"v", "vpp"});
  return field == "extraWarmup" ? spelling(in, {"extra_warmup", "extra"}) : field;
}

/// Stages are called pp_stages in some inputs and pp in others.
int64_t stages(QueryInputs &in) { return in.whole(keyOf(in, "pp"), 1, maxStages); }

QueryAnswer bubble(QueryInputs &in) {
  PipelineKind which = kind(in);
  StageDurations d;
  d.forward = in.number("F", 1, 0, 1e12);
  d.backward = in.number("B", 2, 0, 1e12);
  d.weight = in.number("W", d.backward / 2, 0, d.backward);
  d.overlapped = in.number("FB", d.forward + d.backward, 0, 1e12);
  const int64_t pp = stages(in);
  const double idle = pipelineBubble(which, pp, readChunks(in, which), d, !in.isPaper());
  const std::string ranks = keyOf(in, "pp");
  if (which == PipelineKind::DualPipe && pp % 2 != 0)
    in.fail(ranks, std::to_string(pp) + " is odd; DualPipe pairs ranks", "choose an even number");
  if (in.ok() && !in.isPaper() && !bubbleFormHolds(which, pp, d))
    in.fail(in.has("W") ? "W" : ranks, "and the other durations are outside the conditions of the closed form",
            "ask schedule, which simulates them");
  if (idle < 0)
    in.fail(in.has("W") ? "W" : ranks, "makes the closed form negative: " + nlohmann::json(idle).dump(),
            "its durations need F + B >= 2 W, and FB + B >= 3 W in DualPipe, of at least 2 ranks");
  return QueryAnswer(idle);
}

QueryAnswer fraction(QueryInputs &in) {
  int64_t pp = stages(in), chunks = in.whole("v", 1, 1, maxStages);
  return QueryAnswer(bubbleFraction(pp, chunks, in.whole(in.has("m") ? "m" : "microbatches", 1)));
}

QueryAnswer live(QueryInputs &in) {
  PipelineKind which = kind(in);
  int64_t pp = stages(in), chunks = readChunks(in, which), rank = in.whole("rank", 0, 0, pp - 1);
  std::optional<int64_t> microbatches;
  if (const std::string key = keyOf(in, "microbatches"); in.has(key))
    microbatches = in.whole(key, 1);
  return QueryAnswer(liveMicrobatches(which, pp, chunks, rank, microbatches));
}

PipelineShape readShape(QueryInputs &in) {
  PipelineShape shape;
  shape.kind = readSchedule(in);
  shape.pp = in.whole(keyOf(in, "pp"), 1);
  shape.microbatches = in.whole(keyOf(in, "microbatches"), 1);
  shape.chunks = readChunks(in, shape.kind);
  shape.group = in.whole("group", shape.pp, 1, QueryInputs::maxNumber);
  shape.extraWarmup = in.whole(keyOf(in, "extraWarmup"), 0, 0, QueryInputs::maxNumber);
  return shape;
}

/// What tasks last, on every stage alike or on each by itself.
struct Durations {
  PipelineDurations alike;
  std::vector<PipelineStageTimes::Stage> stages; ///< of the model; empty: alike

  Expected<PipelineTimeline> simulate(const PipelineSchedule &schedule) const {
    if (stages.empty())
      return k2c::simulate(schedule, alike);
    PipelineStageTimes times(schedule.shape, stages);
    if (alike.overlapped)
      times.pairs.assign(times.pairs.size(), *alike.overlapped);
    return k2c::simulate(schedule, times);
  }
};

/// A list is of the stages of the model, a number of all of them: of a rank's layers, or beside lists of a stage's.
Durations readDurationsOf(QueryInputs &in, const PipelineShape &shape) {
  Durations d;
  std::vector<double> lists[3];
  double *const alike[] = {&d.alike.forward, &d.alike.inputGrad, &d.alike.weightGrad};
  const char *const keys[] = {"F", "Bi", "W"};
  bool hasLists = false;
  const bool isSmall = shape.pp <= maxStages && shape.chunks <= maxStages / shape.pp; // else refused as a shape
  const size_t count = isSmall ? size_t(stageCount(shape)) : 0;
  for (size_t i = 0; i < 3; ++i) {
    const nlohmann::json *raw = in.raw(keys[i]);
    if (!raw || !raw->is_array()) {
      *alike[i] = in.number(keys[i], 1, 0, 1e12);
      continue;
    }
    hasLists = true;
    lists[i] = in.numbers(keys[i], 0, 1e12, maxStages);
    if (in.ok() && isSmall && lists[i].size() != count)
      in.fail(keys[i],
              "is of " + std::to_string(lists[i].size()) + " stages, the schedule has " + std::to_string(count),
              "list each stage of the model, in the order of its layers");
  }
  if (in.has("FB"))
    d.alike.overlapped = in.number("FB", 0, 1e12);
  for (size_t stage = 0; hasLists && in.ok() && stage < count; ++stage) {
    auto of = [&](size_t i) { return lists[i].empty() ? *alike[i] : lists[i][stage]; };
    d.stages.push_back({of(0), of(1), of(2)});
  }
  return d;
}

/// Beside the inputs or in the object `durations`; none: no time is asked for.
std::optional<Durations> readDurations(QueryInputs &in, const PipelineShape &shape) {
  if (in.has("durations")) {
    QueryInputs object = in.object("durations");
    return readDurationsOf(object, shape);
  }
  for (const char *key : {"F", "Bi", "W", "FB"})
    if (in.has(key))
      return readDurationsOf(in, shape);
  return std::nullopt;
}

/// The bubble is the worst rank's; where a closed form holds, it says the same.
nlohmann::ordered_json timelineOf(const PipelineTimeline &timeline, std::optional<double> closedForm) {
  nlohmann::ordered_json fields = {{"makespan", timeline.makespan},
                                   {"bubble_per_rank", timeline.idle},
                                   {"peak_stashed_chunks", timeline.peakStash},
                                   {"bubble", *std::max_element(timeline.idle.begin(), timeline.idle.end())},
                                   {"bubble_source", closedForm ? "closed form" : "simulation"}};
  if (closedForm)
    fields["closed_form_bubble"] = *closedForm;
  return fields;
}

nlohmann::ordered_json ordersOf(const PipelineSchedule &schedule, std::string (PipelineSchedule::*text)(size_t) const) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    lines.push_back((schedule.*text)(rank));
  return lines;
}

QueryAnswer schedule(QueryInputs &in) {
  PipelineShape shape = readShape(in);
  std::optional<Durations> durations = readDurations(in, shape);
  QueryAnswer answer;
  if (!in.ok())
    return answer;
  auto refuse = [&](const Error &error) {
    in.fail(keyOf(in, error.where), error.message, error.remedy);
    return answer;
  };
  Expected<PipelineSchedule> made = makePipelineSchedule(shape);
  if (!made)
    return refuse(made.error());
  Expected<PipelineTimeline> timeline = durations.value_or(Durations()).simulate(*made);
  if (!timeline)
    return refuse(timeline.error());
  answer.fields = {{"order", ordersOf(*made, &PipelineSchedule::order)},
                   {"trace", ordersOf(*made, &PipelineSchedule::trace)}};
  if (shape.extraWarmup > 0) {
    shape.paired = true;
    Expected<PipelineSchedule> paired = makePipelineSchedule(shape);
    if (!paired)
      return refuse(paired.error());
    answer.fields["order_paired"] = ordersOf(*paired, &PipelineSchedule::order);
  }
  if (durations)
    answer.fields["simulation"] =
        timelineOf(*timeline, durations->stages.empty() ? closedFormIdle(shape, durations->alike) : std::nullopt);
  return answer;
}

} // namespace

std::vector<QueryFunction> formulas::scheduleQueries() {
  const char *bubbles = "000, pipeline schedules; DualPipe README";
  return {
      {"bubble", "time", bubbles, "schedule pp pp_stages v F B W FB", bubble},
      {"schedule", "orders of ranks", "Schedule.h; DualPipe, Megatron-LM",
       "schedule pp pp_stages microbatches m v vpp group extra_warmup extra durations F Bi W FB", schedule},
      {"bubble_fraction", "ratio", bubbles, "pp pp_stages v m microbatches", fraction},
      {"activation_factor", "stage activations of a micro-batch", bubbles,
       "schedule pp pp_stages v rank m microbatches", live},
      {"param_factor", "copies", bubbles, "schedule",
       [](QueryInputs &in) { return QueryAnswer(Checked(parameterCopies(kind(in)))); }},
  };
}
