//===- Bubble.cpp - Closed forms of pipeline schedules ------------------------===//

#include "k2c/Planner/Bubble.h"

#include <algorithm>

using namespace k2c;

double k2c::pipelineBubble(PipelineKind kind, int64_t pp, int64_t chunks, const StageDurations &d, bool exact) {
  double others = static_cast<double>(pp - 1), half = static_cast<double>(pp) / 2 - 1;
  switch (kind) {
  case PipelineKind::GPipe:
  case PipelineKind::OneFOneB:
    return others * (d.forward + d.backward);
  case PipelineKind::Interleaved:
    return others * (d.forward + d.backward) / static_cast<double>(chunks);
  case PipelineKind::ZeroBubbleH1:
    return others * (d.forward + d.backward - 2 * d.weight);
  case PipelineKind::DualPipe:
  case PipelineKind::DualPipeV:
    return half * (exact ? d.overlapped + d.forward - 2 * d.weight : d.overlapped + d.backward - 3 * d.weight);
  }
  return 0;
}

bool k2c::bubbleFormHolds(PipelineKind kind, int64_t pp, const StageDurations &d) {
  // B - W has a rounding error where B is a sum.
  auto atMost = [&](double a, double b) { return a <= b + 1e-12 * (d.forward + d.backward); };
  const double inputGrad = d.backward - d.weight;
  const bool fills = atMost(d.weight, std::min(d.forward, inputGrad));
  switch (kind) {
  case PipelineKind::GPipe:
  case PipelineKind::OneFOneB:
  case PipelineKind::Interleaved:
    return true;
  case PipelineKind::ZeroBubbleH1:
    return pp == 1 || fills;
  case PipelineKind::DualPipe:
  case PipelineKind::DualPipeV:
    return pp == 2 || (fills && atMost(inputGrad, d.forward) && atMost(std::max(d.forward, d.backward), d.overlapped) &&
                       atMost(d.overlapped, d.forward + d.backward));
  }
  return false;
}

double k2c::bubbleFraction(int64_t pp, int64_t chunks, int64_t microbatches) {
  return static_cast<double>(pp - 1) / (static_cast<double>(chunks) * static_cast<double>(microbatches));
}

double k2c::liveMicrobatches(PipelineKind kind, int64_t pp, int64_t chunks, int64_t rank,
                             std::optional<int64_t> microbatches) {
  auto atMost = [&](int64_t live) { return static_cast<double>(std::min(live, microbatches.value_or(live))); };
  switch (kind) {
  case PipelineKind::GPipe:
    return static_cast<double>(microbatches.value_or(pp));
  case PipelineKind::OneFOneB:
    return atMost(pp - rank);
  case PipelineKind::Interleaved:
    return static_cast<double>(pp) + static_cast<double>(pp - 1) / static_cast<double>(chunks);
  case PipelineKind::ZeroBubbleH1:
    return atMost(pp);
  case PipelineKind::DualPipe:
  case PipelineKind::DualPipeV:
    return atMost(pp + 1);
  }
  return 0;
}

int64_t k2c::parameterCopies(PipelineKind kind) {
  return kind == PipelineKind::DualPipe || kind == PipelineKind::DualPipeV ? 2 : 1;
}
