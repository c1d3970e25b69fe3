//===- WeightMap.cpp - Sizes of packed operands ---------------------------===//
//
// The arithmetic every reader of a weight map shares: the packer, the memory certificate, the index.
//
//===----------------------------------------------------------------------===//
#include "k2c/Weights/WeightMap.h"
#include "base/Utf8.h"
#include "k2c/Kernels/WeightShare.h"

namespace k2c {

const Matrix *matrixOf(const Transform &transform) {
  if (const auto *panels = std::get_if<PanelLayout>(&transform))
    return &panels->matrix;
  const auto *rows = std::get_if<RowLayout>(&transform);
  return rows ? &rows->matrix : nullptr;
}

static int64_t bytesOf(const RowMajor &rows) { return rows.elements * byteWidth(rows.type); }
static int64_t bytesOf(const PanelLayout &panels) { return panels.bytes(); }
static int64_t bytesOf(const RowLayout &rows) { return rows.bytes(); }
static int64_t bytesOf(const Table &table) { return table.bytes; }

int64_t payloadBytes(const Transform &transform) {
  return std::visit([](const auto &known) { return bytesOf(known); }, transform);
}

int64_t rangeBytes(const WeightSlot &slot) { return slotBytes(payloadBytes(slot.transform), slot.experts); }

WeightSlot slotOfExpert(const WeightSlot &slot, int64_t expert) {
  WeightSlot part{slot.slot, slot.family, slot.layer, {}, slot.transform, 0};
  if (auto *panels = std::get_if<PanelLayout>(&part.transform))
    panels->matrix.count = 1;
  else
    std::get<RowLayout>(part.transform).matrix.count = 1;
  const auto count = static_cast<std::ptrdiff_t>(slot.sources.size()) / slot.experts;
  const auto first = slot.sources.begin() + expert * count;
  part.sources.assign(first, first + count);
  return part;
}

static Error refuse(const WeightSlot &slot, std::string message) {
  return Error{"weights '" + shortened(slot.family) + "' (slot " + std::to_string(slot.slot) + ")", std::move(message),
               ""};
}

/// True when the product of sizes, padded, stays far from the end of int64.
static bool reasonable(std::initializer_list<int64_t> sizes) {
  constexpr int64_t most = int64_t(1) << 50;
  int64_t product = 1;
  for (int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(product, size, &product) || product > most)
      return false;
  return true;
}

/// Element type and scales of matrices, and that the sources have scales when the matrices do.
static Status checkStorage(const WeightSlot &slot, const Matrix &matrix) {
  bool scaled = matrix.type == DType::F8E4M3;
  if (matrix.type != DType::BF16 && matrix.type != DType::F32 && !scaled)
    return refuse(slot, "matrices of " + std::string(name(matrix.type)) + ": only bf16, f32 and f8E4M3FN are packed");
  bool sound = matrix.blockColumns > 0 && matrix.blockRows > 0 && 128 % matrix.blockRows == 0;
  if (scaled ? !sound : matrix.blockColumns != 0 || matrix.blockRows != 0)
    return refuse(slot, "scales of " + std::to_string(matrix.blockColumns) + " columns x " +
                            std::to_string(matrix.blockRows) + " rows do not fit matrices of " +
                            std::string(name(matrix.type)));
  for (const SourceTensor &source : slot.sources) {
    if (bool(source.scales) != scaled)
      return refuse(slot, "tensor '" + shortened(source.name) + "' has " +
                              (scaled ? "no scales, its matrices do" : "scales, its matrices have none"));
    if (scaled && (source.scales->blockRows < 1 || source.scales->blockColumns < 1))
      return refuse(slot, "tensor '" + shortened(source.name) + "' is in blocks of " +
                              std::to_string(source.scales->blockRows) + " x " +
                              std::to_string(source.scales->blockColumns));
  }
  return Status::success();
}

Status check(const WeightSlot &slot) {
  if (slot.experts < 0 || (slot.experts > 0 && !matrixOf(slot.transform)))
    return refuse(slot, std::to_string(slot.experts) + " experts: only matrices are of experts");
  if (const auto *rows = std::get_if<RowMajor>(&slot.transform)) {
    if (!reasonable({rows->elements}))
      return refuse(slot, std::to_string(rows->elements) + " elements");
    if (rows->type == DType::F8E4M3)
      return refuse(slot, "elements of f8E4M3FN: scaled blocks are packed in matrices only");
  } else if (const Matrix *matrix = matrixOf(slot.transform)) {
    if (matrix->parts != 1 && matrix->parts != 2)
      return refuse(slot, std::to_string(matrix->parts) + " parts: must be 1 or 2");
    if (matrix->count < 1 || matrix->n < 1 || matrix->k < 1)
      return refuse(slot, std::to_string(matrix->count) + " matrices of " + std::to_string(matrix->n) + " x " +
                              std::to_string(matrix->k) + ": each of these is 1 or more");
    if (Status status = checkStorage(slot, *matrix); !status)
      return status;
    if (matrix->k > maxContraction || !reasonable({matrix->n}) || !reasonable({matrix->k}) ||
        !reasonable({matrix->count, matrix->n + panelColumns, matrix->k + 16}))
      return refuse(slot, std::to_string(matrix->count) + " matrices of " + std::to_string(matrix->n) + " x " +
                              std::to_string(matrix->k) + ": too large (k at most " + std::to_string(maxContraction) +
                              ")");
    if (slot.experts > 0 &&
        (slot.experts != matrix->count || slot.sources.empty() || slot.sources.size() % slot.experts))
      return refuse(slot, std::to_string(slot.experts) + " experts: the layout has " + std::to_string(matrix->count) +
                              " matrices, of " + std::to_string(slot.sources.size()) + " sources");
    if (matrix->n % matrix->parts || slot.sources.size() % matrix->parts)
      return refuse(slot, "gate and up come in pairs: n = " + std::to_string(matrix->n) + ", " +
                              std::to_string(slot.sources.size()) + " sources");
  } else if (const auto &table = std::get<Table>(slot.transform); !reasonable({table.bytes}) || !slot.sources.empty()) {
    return refuse(slot, "a table of " + std::to_string(table.bytes) + " bytes with " +
                            std::to_string(slot.sources.size()) + " sources");
  }
  return Status::success();
}

int64_t WeightMap::experts() const {
  int64_t experts = 0;
  for (const WeightSlot &slot : slots)
    experts += slot.experts;
  return experts;
}

int64_t WeightMap::referenceBytes() const {
  int64_t bytes = 0;
  for (const WeightSlot &slot : slots)
    if (isReference && !std::holds_alternative<Table>(slot.transform))
      bytes += rangeBytes(slot);
  return bytes;
}

int64_t WeightMap::totalBytes() const {
  int64_t bytes = 0;
  for (const WeightSlot &slot : slots)
    bytes += rangeBytes(slot);
  return bytes;
}

} // namespace k2c
