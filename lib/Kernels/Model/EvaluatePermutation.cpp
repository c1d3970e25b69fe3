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

namespace {

/// A token's expert outputs, ascending in expert.
struct Contribution {
  int64_t expert, slot;
};

/// N5's tree over one token's contributions.
struct CombineTree {
  const UnpermuteDesc &desc;
  const void *x;
  const std::vector<Contribution> &contributions;

  void add(std::vector<float> &to, const std::vector<float> &row) const {
    if (to.empty())
      to = row;
    else
      for (size_t i = 0; i < to.size(); ++i)
        to[i] = roundTo(desc.y.type, to[i] + row[i]);
  }

  /// The subtree over leaves [first, first + count); empty when no expert of it is present.
  std::vector<float> sum(int64_t first, int64_t count) const {
    std::vector<float> total;
    if (count > 1) {
      total = sum(first, count / 2);
      std::vector<float> right = sum(first + count / 2, count / 2);
      if (!right.empty())
        add(total, right);
      return total;
    }
    int64_t width = desc.experts / desc.leaves;
    for (const Contribution &c : contributions)
      if (c.expert >= first * width && c.expert < (first + 1) * width)
        add(total, loadRow(x, desc.x, c.slot));
    return total;
  }
};

} // namespace

Status run(const UnpermuteDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *x = args.pointer();
  Permutation permutation(args.pointer(), d.experts, step.token_rows * d.topK);
  const int32_t *experts = args.array<int32_t>();
  void *y = args.pointer();
  for (int64_t row = 0; row < step.token_rows; ++row) {
    std::vector<Contribution> contributions;
    for (int64_t route = row * d.topK; route < (row + 1) * d.topK; ++route)
      if (experts[route] >= 0)
        contributions.push_back({experts[route], permutation.slotOfRoute[route]});
    std::stable_sort(contributions.begin(), contributions.end(),
                     [](const Contribution &a, const Contribution &b) { return a.expert < b.expert; });
    std::vector<float> total = CombineTree{d, x, contributions}.sum(0, d.leaves);
    total.resize(d.y.width, 0.0f);
    for (int64_t i = 0; i < d.y.width; ++i)
      store(y, row * d.y.stride + i, d.y.type, total[i]);
  }
  return Status::success();
}

} // namespace k2c::evaluation
