//===- OneFOneB.cpp - GPipe, 1F1B, ZB-H1 and interleaved 1F1B -----------------===//
//
// 1F1B: rank r runs min(m, pp-r-1) forwards ahead, then one forward and one backward in turn. Exchanges are Megatron's:
// in the steady state a rank sends an activation and receives a gradient from the same neighbour at once, then the
// other way round.
//
// ZB-H1: the same with backwards in two; W(j) comes after I(j+r), once the gradient is on its way, so that every rank
// stashes pp micro-batches and weight gradients fill the bubble.
//
// Interleaved: micro-batches go through a chunk in groups; backwards visit the chunks from the last.
//
//===----------------------------------------------------------------------===//

#include "Programs.h"

#include <algorithm>

using namespace k2c;

void planner::writeGPipe(const PipelineShape &shape, int32_t, RankWriter &out) {
  for (int32_t j = 0; j < shape.microbatches; ++j) {
    out.receiveForward(0, j);
    out.wait();
    out.compute(PipelineWork::Forward, 0, j);
    out.sendForward(0, j);
    out.wait();
  }
  for (int32_t j = 0; j < shape.microbatches; ++j) {
    out.receiveBackward(0, j);
    out.wait();
    out.compute(PipelineWork::Backward, 0, j);
    out.sendBackward(0, j);
    out.wait();
  }
}

void planner::writeOneFOneB(const PipelineShape &shape, int32_t rank, RankWriter &out) {
  bool isSplit = shape.kind == PipelineKind::ZeroBubbleH1;
  auto count = static_cast<int32_t>(shape.microbatches), stages = static_cast<int32_t>(shape.pp);
  int32_t ahead = std::min(count, stages - rank - 1), deferred = 0;
  for (int32_t j = 0; j < ahead; ++j) {
    out.receiveForward(0, j);
    out.wait();
    out.compute(PipelineWork::Forward, 0, j);
    out.sendForward(0, j);
    out.wait();
  }
  if (ahead < count) {
    out.receiveForward(0, ahead);
    out.wait();
  }
  for (int32_t j = 0; j < count; ++j) {
    if (j + ahead < count) {
      out.compute(PipelineWork::Forward, 0, j + ahead);
      out.sendForward(0, j + ahead);
    }
    out.receiveBackward(0, j);
    out.wait();
    out.compute(isSplit ? PipelineWork::InputGrad : PipelineWork::Backward, 0, j);
    out.sendBackward(0, j);
    if (j + ahead + 1 < count)
      out.receiveForward(0, j + ahead + 1);
    out.wait();
    if (isSplit && j >= rank)
      out.compute(PipelineWork::WeightGrad, 0, deferred++);
  }
  for (; isSplit && deferred < count; ++deferred)
    out.compute(PipelineWork::WeightGrad, 0, deferred);
}

void planner::writeInterleaved(const PipelineShape &shape, int32_t rank, RankWriter &out) {
  // Chunk and micro-batch of the k-th forward; of the k-th backward with chunks from the last.
  auto entry = [&](int64_t k, bool isForward) {
    int64_t begin = k / (shape.group * shape.chunks) * shape.group;
    int64_t width = std::min(shape.group, shape.microbatches - begin), within = k - begin * shape.chunks;
    int64_t chunk = within / width;
    return PipelineTask{isForward ? PipelineWork::Forward : PipelineWork::Backward,
                        static_cast<int32_t>(isForward ? chunk : shape.chunks - 1 - chunk),
                        static_cast<int32_t>(begin + within % width)};
  };
  auto compute = [&](const PipelineTask &task) { out.compute(task.work, task.lane, task.microbatch); };
  int64_t count = shape.microbatches * shape.chunks;
  int64_t ahead = std::min(count, 2 * (shape.pp - rank - 1) + (shape.chunks - 1) * shape.group + shape.extraWarmup);
  for (int64_t k = 0; k < ahead; ++k)
    compute(entry(k, true));
  for (int64_t k = 0; k < count; ++k) {
    if (k + ahead >= count) {
      compute(entry(k, false));
    } else if (shape.paired) {
      out.pair(entry(k + ahead, true), entry(k, false));
    } else {
      compute(entry(k + ahead, true));
      compute(entry(k, false));
    }
  }
}
