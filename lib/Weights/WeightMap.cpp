//===- WeightMap.cpp - Sizes of packed operands ------------------------------===//
//
// The arithmetic every reader of a weight map shares: the packer, the memory certificate, the index.
//
//===----------------------------------------------------------------------===//
#include "k2c/Weights/WeightMap.h"

namespace k2c {

int64_t payloadBytes(const Transform &transform) {
  if (const auto *rows = std::get_if<RowMajor>(&transform))
    return rows->elements * byteWidth(rows->type);
  if (const auto *panels = std::get_if<PanelLayout>(&transform))
    return panels->elements() * byteWidth(panels->type);
  return std::get<Table>(transform).bytes;
}

int64_t blobBytes(const Transform &transform) {
  return (payloadBytes(transform) + blobAlignment - 1) / blobAlignment * blobAlignment;
}

bool isIdentity(const WeightSlot &slot, DType stored) {
  const auto *rows = std::get_if<RowMajor>(&slot.transform);
  return rows && rows->type == stored && slot.sources.size() == 1 && !slot.sources[0].slice &&
         !slot.sources[0].transpose;
}

int64_t WeightMap::totalBytes() const {
  int64_t bytes = 0;
  for (const WeightSlot &slot : slots)
    bytes += blobBytes(slot.transform);
  return bytes;
}

} // namespace k2c
