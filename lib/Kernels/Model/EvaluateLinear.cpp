//===- EvaluateLinear.cpp - Contractions with packed weights ------------------===//
#include "Evaluation.h"
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
  void *permutation = nullptr;
  void *y;

  Linear(const LinearDesc &d, Arguments args) : desc(d), layout(layoutOf(d.w, args.weights)) {
    x = args.pointer();
    norm = d.normEps > 0 ? args.pointer() : nullptr;
    w = args.pointer();
    bias = d.takes(LinearDesc::Bias) ? args.pointer() : nullptr;
    slotWeights = d.takes(LinearDesc::SlotWeight) ? args.array<float>() : nullptr;
    residual = d.takes(LinearDesc::Residual) ? args.pointer() : nullptr;
    permutation = d.grouped ? args.pointer() : nullptr;
    y = args.pointer();
  }

  std::vector<float> input(int64_t row) const {
    std::vector<float> values = loadRow(x, desc.x, row);
    if (norm)
      normalize(values, norm, desc.normWeight, desc.normEps, desc.x.type);
    return values;
  }

  /// An element of y, whose sum, or sums of gate and up, are `sums`.
  void finish(const float *sums, int64_t row, int64_t column, int64_t matrix, const int32_t *routes) const {
    auto biasOf = [&](int64_t n) { return load(bias, matrix * desc.w.n + n, desc.biasType); };
    float value = elementOf(desc.epilogue, [&](int64_t input) {
      switch (LinearDesc::Input(input)) {
      case LinearDesc::Sum:
      case LinearDesc::UpSum:
        return sums[input];
      case LinearDesc::Bias:
        return biasOf(column);
      case LinearDesc::UpBias:
        return biasOf(desc.y.width + column);
      case LinearDesc::SlotWeight:
        return slotWeights[routes[row]];
      case LinearDesc::Residual:
        return load(residual, row * desc.residual.stride + column, desc.residual.type);
      }
      return 0.0f;
    });
    store(y, row * desc.y.stride + column, desc.y.type, value);
  }

  /// Rows [begin, end) with one matrix, whose elements begin at `elements`; `routes`: the route of each slot, when
  /// grouped.
  void rows(int64_t begin, int64_t end, int64_t matrix, const void *elements, const int32_t *routes) const {
    std::vector<std::vector<float>> inputs;
    for (int64_t row = begin; row < end; ++row)
      inputs.push_back(input(row));
    bool pairs = takesPairs(desc.x, desc.w);
    for (int64_t n = 0; n < desc.y.width; ++n) {
      std::vector<float> columns[2];
      for (int64_t i = 0; i < desc.w.parts; ++i)
        columns[i] = loadColumn(elements, layout, 0, i * desc.y.width + n);
      for (int64_t row = begin; row < end; ++row) {
        float sums[2] = {};
        for (int64_t i = 0; i < desc.w.parts; ++i)
          sums[i] = contract(inputs[row - begin].data(), columns[i].data(), desc.order, pairs);
        finish(sums, row, n, matrix, routes);
      }
    }
  }
};

} // namespace

Status run(const LinearDesc &d, Arguments args, const k2rt_ir_step &step) {
  Linear linear(d, args);
  if (!d.grouped) {
    linear.rows(0, rowCount(d.x.space, step, d.slotsPerToken), 0, linear.w, nullptr);
    return Status::success();
  }
  Permutation permutation(linear.permutation, d.w.count, step.token_rows * d.slotsPerToken);
  for (int64_t expert = 0; expert < d.w.count; ++expert) {
    if (permutation.offsets[expert] == permutation.offsets[expert + 1])
      continue;
    const void *elements = as<void *>(linear.w)[expert];
    if (!elements)
      return invalid("expert " + std::to_string(expert) + " has slots, its weights are absent");
    linear.rows(permutation.offsets[expert], permutation.offsets[expert + 1], expert, elements,
                permutation.routeOfSlot);
  }
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
