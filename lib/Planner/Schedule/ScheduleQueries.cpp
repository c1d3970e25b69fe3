//===- ScheduleQueries.cpp - Queries about pipeline schedules -----------------===//

#include "../Query/Parts.h"
#include "k2c/Planner/Bubble.h"

using namespace k2c;

namespace {

constexpr int64_t mostStages = 1 << 16;

PipelineKind kind(QueryInputs &in, std::optional<size_t> otherwise = std::nullopt) {
  static const std::vector<std::string> words = {"gpipe", "1f1b",     "interleaved", "zb1p",
                                                 "zb-h1", "dualpipe", "dualpipev"};
  static const PipelineKind kinds[] = {
      PipelineKind::GPipe,        PipelineKind::OneFOneB, PipelineKind::Interleaved, PipelineKind::ZeroBubbleH1,
      PipelineKind::ZeroBubbleH1, PipelineKind::DualPipe, PipelineKind::DualPipeV};
  return kinds[in.word("schedule", words, otherwise)];
}

/// Stages are called pp_stages in some inputs and pp in others.
int64_t stages(QueryInputs &in) { return in.whole(in.has("pp_stages") ? "pp_stages" : "pp", 1, mostStages); }

QueryAnswer bubble(QueryInputs &in) {
  PipelineKind which = kind(in, in.has("v") ? std::optional<size_t>(2) : std::nullopt);
  StageDurations d;
  d.forward = in.number("F", 1, 0, 1e12);
  d.backward = in.number("B", 2, 0, 1e12);
  d.weight = in.number("W", d.backward / 2, 0, 1e12);
  d.overlapped = in.number("FB", d.forward + d.backward, 0, 1e12);
  return QueryAnswer(pipelineBubble(which, stages(in), in.whole("v", 1, 1, mostStages), d, !in.isPaper()));
}

QueryAnswer fraction(QueryInputs &in) {
  int64_t pp = stages(in), chunks = in.whole("v", 1, 1, mostStages);
  return QueryAnswer(bubbleFraction(pp, chunks, in.whole(in.has("m") ? "m" : "microbatches", 1)));
}

QueryAnswer live(QueryInputs &in) {
  PipelineKind which = kind(in, in.has("v") ? std::optional<size_t>(2) : std::nullopt);
  int64_t pp = stages(in), chunks = in.whole("v", 1, 1, mostStages), rank = in.whole("rank", 0, 0, pp - 1);
  std::optional<int64_t> microbatches;
  for (const char *key : {"m", "microbatches"})
    if (in.has(key))
      microbatches = in.whole(key, 1);
  return QueryAnswer(liveMicrobatches(which, pp, chunks, rank, microbatches));
}

} // namespace

std::vector<QueryFunction> planner::scheduleQueries() {
  const char *bubbles = "000, pipeline schedules; DualPipe README";
  return {
      {"bubble", "time", bubbles, "schedule pp pp_stages v F B W FB", bubble},
      {"bubble_fraction", "ratio", bubbles, "pp pp_stages v m microbatches", fraction},
      {"activation_factor", "stage activations of a micro-batch", bubbles,
       "schedule pp pp_stages v rank m microbatches", live},
      {"param_factor", "copies", bubbles, "schedule",
       [](QueryInputs &in) { return QueryAnswer(Checked(parameterCopies(kind(in)))); }},
  };
}
