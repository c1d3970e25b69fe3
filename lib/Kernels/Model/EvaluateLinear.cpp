//===- EvaluateLinear.cpp - Contractions with packed weights ------------------===//
#include "Evaluation.h"
#include "k2rt/polynomials.h"
#include <algorithm>

namespace k2c::evaluation {

namespace {

bool takesPairs(const Rows &x, const Matrix &w) { return x.type == DType::BF16 && w.type == DType::BF16; }

/// A linear and its arguments.
struct Linear {
  const LinearDesc &desc;
  MatrixLayout layout;
  const void *x, *norm = nullptr, *w, *bias = nullptr;
  const float *slotWeights = nullptr;
  const void *residual = nullptr;
  void *plan = nullptr;
  void *y;

  Linear(const LinearDesc &d, Arguments args) : desc(d), layout(layoutOf(d.w, args.weights)) {
    x = args.pointer();
    norm = d.normEps > 0 ? args.pointer() : nullptr;
    w = args.pointer();
    bias = d.epilogue.bias ? args.pointer() : nullptr;
    slotWeights = d.epilogue.weighted ? args.array<float>() : nullptr;
    residual = d.epilogue.residual ? args.pointer() : nullptr;
    plan = d.grouped ? args.pointer() : nullptr;
    y = args.pointer();
  }

  std::vector<float> input(int64_t row) const {
    std::vector<float> values = loadRow(x, desc.x, row);
    if (norm)
      normalize(values, norm, desc.normWeight, desc.normEps, desc.x.type);
    return values;
  }

  float biased(float sum, int64_t matrix, int64_t column) const {
    return bias ? sum + load(bias, matrix * desc.w.n + column, desc.epilogue.biasType) : sum;
  }

  float gate(float gate, float up) const { return k2rt_siluf(roundTo(desc.y.type, gate)) * roundTo(desc.y.type, up); }

  void finish(float value, int64_t row, int64_t column, const float *weight) const {
    if (weight)
      value = value * *weight;
    value = roundTo(desc.y.type, value);
    if (residual)
      value = value + load(residual, row * desc.residual.stride + column, desc.residual.type);
    store(y, row * desc.y.stride + column, desc.y.type, value);
  }

  /// Rows [begin, end) with one matrix; `routes`: the route of each slot, when grouped.
  void rows(int64_t begin, int64_t end, int64_t matrix, const int32_t *routes) const {
    std::vector<std::vector<float>> inputs;
    for (int64_t row = begin; row < end; ++row)
      inputs.push_back(input(row));
    bool pairs = takesPairs(desc.x, desc.w), gated = desc.epilogue.gatedSilu;
    int64_t columns = gated ? desc.w.n / 2 : desc.w.n;
    for (int64_t n = 0; n < columns; ++n) {
      std::vector<float> first = loadColumn(w, layout, matrix, n), second;
      if (gated)
        second = loadColumn(w, layout, matrix, columns + n);
      for (int64_t row = begin; row < end; ++row) {
        const float *in = inputs[row - begin].data();
        float value = biased(contract(in, first.data(), desc.order, pairs), matrix, n);
        if (gated)
          value = gate(value, biased(contract(in, second.data(), desc.order, pairs), matrix, columns + n));
        finish(value, row, n, slotWeights ? slotWeights + routes[row] : nullptr);
      }
    }
  }
};

} // namespace

Status run(const LinearDesc &d, Arguments args, const k2rt_ir_step &step) {
  Linear linear(d, args);
  if (!d.grouped) {
    linear.rows(0, rowCount(d.x.space, step, d.slotsPerToken), 0, nullptr);
    return Status::success();
  }
  Plan plan(linear.plan, d.w.count, step.token_rows * d.slotsPerToken);
  for (int64_t expert = 0; expert < d.w.count; ++expert)
    if (plan.offsets[expert] < plan.offsets[expert + 1])
      linear.rows(plan.offsets[expert], plan.offsets[expert + 1], expert, plan.routeOfSlot);
  return Status::success();
}

Status run(const HeadLinearDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *x = args.pointer(), *w = args.pointer();
  void *y = args.pointer();
  const MatrixLayout layout = layoutOf(d.w, args.weights);
  bool pairs = takesPairs(d.x, d.w);
  for (int64_t head = 0; head < d.heads; ++head)
    for (int64_t n = 0; n < d.w.n; ++n) {
      std::vector<float> column = loadColumn(w, layout, head, n);
      for (int64_t row = 0; row < rowCount(d.x.space, step); ++row) {
        if (!takesRow(d.rows, step, row))
          continue;
        std::vector<float> in = loadRow(x, row * d.x.stride + head * d.xHeadStride, d.w.k, d.x.type);
        store(y, row * d.y.stride + head * d.w.n + n, d.y.type, contract(in.data(), column.data(), d.order, pairs));
      }
    }
  return Status::success();
}

} // namespace k2c::evaluation
