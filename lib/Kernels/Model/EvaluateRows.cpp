//===- EvaluateRows.cpp - Kernels that work row by row ------------------------===//
//
// The definition of kernels that work row by row, as scalar C++: what emitted code must equal bit for bit. Elements
// are widened to f32, computed in the order written here, and rounded once, when they are stored.
//
// Arguments are taken in the order of operands(desc); one that the evaluation does not need, such as the step, which
// comes beside them, is skipped by taking it. Token ids, positions in the rotary table and the rows that logits are
// wanted of are checked before they become addresses. A token id below zero is no mistake but a reference: -1 - r is
// what output row r of the step before has sampled. Rotary angles come from a table and rotate with one fma for each
// output, so that no bit depends on the C library.
//
//===----------------------------------------------------------------------===//
#include "Evaluation.h"
#include <cmath>

namespace k2c::evaluation {

/// The id of a token row.
static Expected<int64_t> idOfToken(const k2rt_ir_step &step, int64_t row) {
  const int64_t id = as<int32_t>(step.token_ids)[row];
  if (id >= 0)
    return id;
  if (-1 - id >= step.earlier_rows)
    return invalid("token row " + std::to_string(row) + " names sample " + std::to_string(-1 - id) +
                   " of the step before, which has " + std::to_string(step.earlier_rows));
  return as<int32_t>(step.earlier_samples)[-1 - id];
}

/// Row `id` of `table` as row `row` of y.
static Status lookUp(const void *table, DType type, int64_t vocab, int64_t id, void *y, const Rows &rows, int64_t row) {
  if (id < 0 || id >= vocab)
    return invalid("token id " + std::to_string(id) + " in a vocabulary of " + std::to_string(vocab));
  for (int64_t i = 0; i < rows.width; ++i)
    store(y, row * rows.stride + i, rows.type, load(table, id * rows.width + i, type));
  return Status::success();
}

Status run(const EmbedDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *table = args.pointer();
  args.pointer();
  void *y = args.pointer();
  for (int64_t row = 0; row < step.token_rows; ++row) {
    Expected<int64_t> id = idOfToken(step, row);
    if (!id)
      return id.takeError();
    if (Status found = lookUp(table, d.table, d.vocab, *id, y, d.y, row); !found)
      return found;
  }
  return Status::success();
}

Status run(const TokenIdsDesc &, Arguments args, const k2rt_ir_step &step) {
  args.pointer();
  int32_t *ids = args.array<int32_t>();
  for (int64_t row = 0; row < step.token_rows; ++row) {
    Expected<int64_t> id = idOfToken(step, row);
    if (!id)
      return id.takeError();
    ids[row] = static_cast<int32_t>(*id);
  }
  return Status::success();
}

Status run(const LookupDesc &d, Arguments args, const k2rt_ir_step &step) {
  const int32_t *ids = args.array<int32_t>();
  const void *table = args.pointer();
  void *y = args.pointer();
  for (int64_t row = 0; row < step.token_rows; ++row)
    if (Status found = lookUp(table, d.table, d.vocab, ids[row], y, d.y, row); !found)
      return found;
  return Status::success();
}

Status run(const RmsNormDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *x = args.pointer(), *weight = args.pointer();
  void *y = args.pointer();
  if (d.x.space == RowSpace::Slot)
    return invalid("a norm over slots has no row count");
  for (int64_t row = 0; row < rowCount(d.x.space, step); ++row) {
    std::vector<float> values = loadRow(x, d.x, row);
    for (auto head = values.begin(); head != values.end(); head += d.width()) {
      std::vector<float> part(head, head + d.width());
      normalize(part, weight, d.weight, d.eps, d.y.type);
      std::copy(part.begin(), part.end(), head);
    }
    for (int64_t i = 0; i < d.y.width; ++i)
      store(y, row * d.y.stride + i, d.y.type, values[i]);
  }
  return Status::success();
}

/// Rotates `count` elements of one head in place by the angles of `position`.
static void rotate(float *head, const RotaryDesc &d, const float *table, int64_t position) {
  int64_t half = d.count / 2;
  const float *cosines = table + position * d.count, *sines = cosines + half;
  for (int64_t j = 0; j < half; ++j) {
    float &a = head[d.first + (d.interleaved ? 2 * j : j)];
    float &b = head[d.first + (d.interleaved ? 2 * j + 1 : j + half)];
    float rotatedA = std::fma(a, cosines[j], -(b * sines[j]));
    float rotatedB = std::fma(b, cosines[j], a * sines[j]);
    a = rotatedA;
    b = rotatedB;
  }
}

Status run(const RotaryDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *x = args.pointer();
  const float *table = args.array<float>();
  args.pointer();
  void *y = args.pointer();
  for (int64_t row = 0; row < step.token_rows; ++row) {
    int64_t position = as<int32_t>(step.positions)[row];
    if (position < 0 || position >= d.positions)
      return invalid("position " + std::to_string(position) + " in a rotary table of " + std::to_string(d.positions),
                     "compile with a larger --max-context");
    for (int64_t head = 0; head < d.heads; ++head) {
      std::vector<float> values = loadRow(x, row * d.x.stride + head * d.headDim, d.headDim, d.x.type);
      rotate(values.data(), d, table, position);
      for (int64_t i = 0; i < d.headDim; ++i)
        store(y, row * d.y.stride + head * d.headDim + i, d.y.type, values[i]);
    }
  }
  return Status::success();
}

Status run(const AppendDesc &d, Arguments args, const k2rt_ir_step &step) {
  std::vector<const void *> sources;
  for (size_t i = 0; i < d.x.size(); ++i)
    sources.push_back(args.pointer());
  const int64_t *slots = as<int64_t>(as<const void *>(step.append_slots)[d.group]);
  for (size_t i = 0; i < d.x.size(); ++i) {
    void *plane = args.pointer();
    const Rows &rows = d.x[i];
    for (int64_t row = 0; row < step.token_rows; ++row)
      for (int64_t e = 0; e < rows.width; ++e)
        store(plane, slots[row] * rows.width + e, d.planes[i], load(sources[i], row * rows.stride + e, rows.type));
  }
  return Status::success();
}

Status run(const RowwiseDesc &d, Arguments args, const k2rt_ir_step &step) {
  std::vector<const void *> inputs;
  for (size_t i = 0; i < d.inputs.size(); ++i)
    inputs.push_back(args.pointer());
  void *y = args.pointer();
  for (int64_t row = 0; row < rowCount(d.y.space, step, d.slotsPerToken); ++row)
    for (int64_t i = 0; i < d.y.width; ++i)
      store(y, row * d.y.stride + i, d.y.type, elementOf(d.list, [&](int64_t input) {
              return load(inputs[input], row * d.inputs[input].stride + i, d.inputs[input].type);
            }));
  return Status::success();
}

Status run(const OutputRowsDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *x = args.pointer();
  args.pointer();
  void *y = args.pointer();
  for (int64_t row = 0; row < step.output_rows; ++row) {
    int64_t from = as<int32_t>(step.outputs)[row];
    if (from < 0 || from >= step.token_rows)
      return invalid("output row " + std::to_string(from) + " of " + std::to_string(step.token_rows));
    for (int64_t i = 0; i < d.y.width; ++i)
      store(y, row * d.y.stride + i, d.y.type, load(x, from * d.x.stride + i, d.x.type));
  }
  return Status::success();
}

Status run(const CaptureDesc &d, Arguments args, const k2rt_ir_step &step) {
  const void *x = args.pointer();
  args.pointer();
  int64_t layer = args.ordinal();
  float *captured = static_cast<float *>(step.capture_hidden);
  if (!captured)
    return Status::success();
  for (int64_t row = 0; row < step.token_rows; ++row)
    for (int64_t i = 0; i < d.x.width; ++i)
      captured[(layer * step.layer_rows + row) * d.x.width + i] = load(x, row * d.x.stride + i, d.x.type);
  return Status::success();
}

} // namespace k2c::evaluation
