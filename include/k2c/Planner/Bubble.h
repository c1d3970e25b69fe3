//===- Bubble.h - Closed forms of pipeline schedules --------------------------===//
//
// Idle time of a rank, micro-batches whose activations live at once, and copies of the parameters, for one step of `pp`
// stages. Time is in the unit of the durations. Exact on every rank for 1F1B and interleaved 1F1B, and where
// bubbleFormHolds for ZB-H1; there, for DualPipe the maximum over ranks (DeepSeek-AI's DualPipe README; Qi et al., Zero
// Bubble Pipeline Parallelism, 2024; Narayanan et al., 2021).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_BUBBLE_H
#define K2C_PLANNER_BUBBLE_H

#include <cstdint>
#include <optional>
#include <string>

namespace k2c {

enum class PipelineKind : uint8_t { GPipe, OneFOneB, Interleaved, ZeroBubbleH1, DualPipe, DualPipeV };

/// Durations of one micro-batch on one stage: forward, full backward, its weight-gradient part, and an overlapped
/// forward with backward.
struct StageDurations {
  double forward = 1;
  double backward = 2;
  double weight = 1;
  double overlapped = 3;
};

/// Idle time: GPipe and 1F1B (pp-1)(F+B), interleaved the same / chunks, ZB-H1 (pp-1)(F+B-2W), DualPipe and DualPipeV
/// (pp/2-1)(FB+B-3W), the README's, or, with `exact`, (pp/2-1)(FB+F-2W), which is the same number where F = B - W.
double pipelineBubble(PipelineKind kind, int64_t pp, int64_t chunks, const StageDurations &durations, bool exact);

/// Whether the exact formula is the idle time of the worst rank, as an event simulation says. GPipe, 1F1B and
/// interleaved 1F1B: always. ZB-H1: weight gradients fit the gaps, W <= min(F, B-W). DualPipe and DualPipeV: likewise,
/// with B-W <= F and a pair that is no shorter than its longer part and no longer than both, max(F, B) <= FB <= F+B;
/// with others ranks wait for what the formula does not know, and it even turns negative.
bool bubbleFormHolds(PipelineKind kind, int64_t pp, const StageDurations &durations);

/// Idle time over busy time of GPipe, 1F1B (chunks 1) and interleaved 1F1B when F+B is alike on all stages:
/// (pp-1) / (chunks m).
double bubbleFraction(int64_t pp, int64_t chunks, int64_t microbatches);

/// Stage activations of micro-batches alive at once on `rank`; interleaved: rank 0's, in whole stages, fractional.
/// No `microbatches`: as many as keep the pipeline full.
double liveMicrobatches(PipelineKind kind, int64_t pp, int64_t chunks, int64_t rank,
                        std::optional<int64_t> microbatches = std::nullopt);

/// Stages whose parameters a rank holds: 2 for DualPipe, which runs both ends, and for DualPipeV, which runs `pp`
/// stages on pp / 2 ranks; else 1.
int64_t parameterCopies(PipelineKind kind);

} // namespace k2c

#endif // K2C_PLANNER_BUBBLE_H
