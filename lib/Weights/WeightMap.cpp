//===- WeightMap.cpp - Sizes of packed operands ---------------------------===//
//
// The arithmetic every reader of a weight map shares: the packer, the memory certificate, the index.
//
//===----------------------------------------------------------------------===//
#include "k2c/Weights/WeightMap.h"
#include "base/Utf8.h"

namespace k2c {

int64_t payloadBytes(const Transform &transform) {
  if (const auto *rows = std::get_if<RowMajor>(&transform))
    return rows->elements * byteWidth(rows->type);
  if (const auto *panels = std::get_if<PanelLayout>(&transform))
    return panels->bytes();
  return std::get<Table>(transform).bytes;
}

int64_t blobBytes(const Transform &transform) {
  return (payloadBytes(transform) + blobAlignment - 1) / blobAlignment * blobAlignment;
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

/// Element type and scales of panels, and that the sources have scales when the panels do.
static Status checkStorage(const WeightSlot &slot, const PanelLayout &panels) {
  bool scaled = panels.type == DType::F8E4M3;
  if (panels.type != DType::BF16 && panels.type != DType::F32 && !scaled)
    return refuse(slot, "panels of " + std::string(name(panels.type)) + ": only bf16, f32 and f8E4M3FN are packed");
  auto divides = [](int64_t part, int64_t whole) { return part > 0 && whole % part == 0; };
  bool sound = divides(panels.scaleColumns, PanelLayout::columns / panels.interleave) && divides(panels.scaleRows, 128);
  if (scaled ? !sound : panels.scaleColumns != 0 || panels.scaleRows != 0)
    return refuse(slot, "scales of " + std::to_string(panels.scaleColumns) + " columns x " +
                            std::to_string(panels.scaleRows) + " rows do not fit panels of " +
                            std::string(name(panels.type)));
  for (const SourceTensor &source : slot.sources) {
    if (bool(source.scales) != scaled)
      return refuse(slot, "tensor '" + shortened(source.name) + "' has " +
                              (scaled ? "no scales, its panels do" : "scales, its panels have none"));
    if (scaled && (source.scales->blockRows < 1 || source.scales->blockColumns < 1))
      return refuse(slot, "tensor '" + shortened(source.name) + "' is in blocks of " +
                              std::to_string(source.scales->blockRows) + " x " +
                              std::to_string(source.scales->blockColumns));
  }
  return Status::success();
}

Status check(const WeightSlot &slot) {
  if (const auto *rows = std::get_if<RowMajor>(&slot.transform)) {
    if (!reasonable({rows->elements}))
      return refuse(slot, std::to_string(rows->elements) + " elements");
    if (rows->type == DType::F8E4M3)
      return refuse(slot, "rows of f8E4M3FN: scaled blocks are packed in panels only");
  } else if (const auto *panels = std::get_if<PanelLayout>(&slot.transform)) {
    if (panels->interleave != 1 && panels->interleave != 2)
      return refuse(slot, "interleave " + std::to_string(panels->interleave) + ": must be 1 or 2");
    if (Status status = checkStorage(slot, *panels); !status)
      return status;
    if (panels->k > maxContraction || !reasonable({panels->n}) || !reasonable({panels->k}) ||
        !reasonable({panels->matrices, panels->n + PanelLayout::columns, panels->k + 1}))
      return refuse(slot, std::to_string(panels->matrices) + " matrices of " + std::to_string(panels->n) + " x " +
                              std::to_string(panels->k) + ": too large (k at most " + std::to_string(maxContraction) +
                              ")");
    if (panels->n % panels->interleave || slot.sources.size() % panels->interleave)
      return refuse(slot, "gate and up come in pairs: n = " + std::to_string(panels->n) + ", " +
                              std::to_string(slot.sources.size()) + " sources");
  } else if (const auto &table = std::get<Table>(slot.transform); !reasonable({table.bytes}) || !slot.sources.empty()) {
    return refuse(slot, "a table of " + std::to_string(table.bytes) + " bytes with " +
                            std::to_string(slot.sources.size()) + " sources");
  }
  return Status::success();
}

int64_t WeightMap::totalBytes() const {
  int64_t bytes = 0;
  for (const WeightSlot &slot : slots)
    bytes += blobBytes(slot.transform);
  return bytes;
}

} // namespace k2c
