//===- EvaluatePermutation.cpp - Tokens to slots and back -----------------===//
//
// The permutation sorts routes by expert, permute copies rows, unpermute sums them by N5's tree: an order that belongs
// to the expert ids, so any placement of experts that owns whole subtrees gives the same bits.
//
//===----------------------------------------------------------------------===//
#include "Evaluation.h"
#include <algorithm>

namespace k2c::evaluation {

Status run(const PermutationDesc &d, Arguments args, const k2rt_ir_step &step) {
  const int32_t *experts = args.array<int32_t>();
  int64_t routes = step.token_rows * d.topK;
  Permutation permutation(args.pointer(), d.experts, routes);
  std::fill(permutation.offsets, permutation.offsets + d.experts + 1, 0);
  for (int64_t route = 0; route < routes; ++route) {
    if (experts[route] >= d.experts)
      return invalid("expert " + std::to_string(experts[route]) + " of " + std::to_string(d.experts));
    if (experts[route] >= 0)
      ++permutation.offsets[experts[route] + 1];
  }
  for (int64_t e = 0; e < d.experts; ++e)
    permutation.offsets[e + 1] += permutation.offsets[e];
  std::vector<int32_t> next(permutation.offsets, permutation.offsets + d.experts);
  for (int64_t route = 0; route < routes; ++route) {
    bool present = experts[route] >= 0;
    permutation.slotOfRoute[route] = present ? next[experts[route]]++ : -1;
    if (present)
      permutation.routeOfSlot[permutation.slotOfRoute[route]] = int32_t(route);
  }
  return Status::success();
}

Status run(const PermuteDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *x = args.pointer();
  Permutation permutation(args.pointer(), d.experts, step.token_rows * d.topK);
  void *y = args.pointer();
  for (int64_t slot = 0; slot < permutation.offsets[d.experts]; ++slot) {
    int64_t token = permutation.routeOfSlot[slot] / d.topK;
    for (int64_t i = 0; i < d.y.width; ++i)
      store(y, slot * d.y.stride + i, d.y.type, load(x, token * d.x.stride + i, d.x.type));
  }
  return Status::success();
}

static void addRow(std::vector<float> &to, const std::vector<float> &row, DType type) {
  if (to.empty())
    to = row;
  else
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = roundTo(type, to[i] + row[i]);
}

std::vector<float> sumOfExperts(const std::vector<Contribution> &contributions, int64_t first, int64_t count,
                                int64_t perLeaf, DType type) {
  std::vector<float> total;
  if (count > 1) {
    total = sumOfExperts(contributions, first, count / 2, perLeaf, type);
    std::vector<float> right = sumOfExperts(contributions, first + count / 2, count / 2, perLeaf, type);
    if (!right.empty())
      addRow(total, right, type);
    return total;
  }
  for (int64_t expert = first * perLeaf; expert < (first + 1) * perLeaf; ++expert)
    for (const Contribution &c : contributions)
      if (c.expert == expert)
        addRow(total, c.row, type);
  return total;
}

Status run(const UnpermuteDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *x = args.pointer();
  Permutation permutation(args.pointer(), d.experts, step.token_rows * d.topK);
  const int32_t *experts = args.array<int32_t>();
  void *y = args.pointer();
  for (int64_t row = 0; row < step.token_rows; ++row) {
    std::vector<Contribution> contributions;
    for (int64_t route = row * d.topK; route < (row + 1) * d.topK; ++route)
      if (experts[route] >= 0)
        contributions.push_back({experts[route], loadRow(x, d.x, permutation.slotOfRoute[route])});
    storeRow(y, d.y, row, sumOfExperts(contributions, 0, d.leaves, d.experts / d.leaves, d.y.type));
  }
  return Status::success();
}

} // namespace k2c::evaluation
