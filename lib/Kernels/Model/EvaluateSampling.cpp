//===- EvaluateSampling.cpp - The greedy choice, in two steps -----------------===//
//
// What the runtime's greedy() computes of a row (k2rt/Sampler.h), cut into blocks: the best of the best of the blocks.
//
//===----------------------------------------------------------------------===//
#include "Evaluation.h"
#include <algorithm>
#include <cmath>

namespace k2c::evaluation {

/// The better of id `best`, or -1, and a higher `id`, which has the larger logit then; NaN is none.
static int32_t better(const float *logits, int32_t best, int32_t id) {
  if (std::isnan(logits[id]))
    return best;
  return best < 0 || logits[id] > logits[best] ? id : best;
}

Status run(const BlockArgmaxDesc &d, Arguments args, const k2rt_ir_step &step) {
  const float *logits = args.array<float>();
  int32_t *best = args.array<int32_t>();
  for (int64_t row = 0; row < step.output_rows; ++row)
    for (int64_t block = 0; block < d.blocks(); ++block) {
      int32_t id = -1;
      for (int64_t i = block * d.block; i < std::min((block + 1) * d.block, d.logits.width); ++i)
        id = better(logits + row * d.logits.stride, id, int32_t(i));
      best[row * d.blocks() + block] = id;
    }
  return Status::success();
}

Status run(const GreedySampleDesc &d, Arguments args, const k2rt_ir_step &step) {
  const int32_t *best = args.array<int32_t>();
  const float *logits = args.array<float>();
  for (int64_t row = 0; row < step.output_rows; ++row) {
    int32_t id = -1;
    for (int64_t block = 0; block < d.blocks; ++block)
      if (const int32_t of = best[row * d.blocks + block]; of >= 0)
        id = better(logits + row * d.logits.stride, id, of);
    static_cast<int32_t *>(step.samples)[row] = id;
  }
  return Status::success();
}

} // namespace k2c::evaluation
