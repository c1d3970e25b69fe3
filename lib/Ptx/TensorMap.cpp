//===- TensorMap.cpp - What a tensor copy knows of a tensor ---------------===//
#include "k2c/Ptx/TensorMap.h"

#include <cstring>

namespace k2c::ptx {

namespace {

/// As an object holds it.
struct Encoded {
  uint64_t mark;
  uint64_t base;
  uint64_t extents[TensorMap::maxRank];
  uint64_t strides[TensorMap::maxRank - 1];
  uint16_t box[TensorMap::maxRank];
  uint8_t rank, elementBytes, swizzleBytes, type;
};
static_assert(sizeof(Encoded) <= tensorMapBytes);

constexpr uint64_t mark = 0x6b32632d74656e73;

} // namespace

uint64_t TensorMap::boxBytes() const {
  uint64_t bytes = elementBytes;
  for (uint32_t axis = 0; axis < rank; ++axis)
    bytes *= box[axis];
  return bytes;
}

std::array<std::byte, tensorMapBytes> encode(const TensorMap &map) {
  Encoded made{};
  made.mark = mark;
  made.base = map.base;
  made.rank = static_cast<uint8_t>(map.rank);
  made.elementBytes = static_cast<uint8_t>(map.elementBytes);
  made.swizzleBytes = static_cast<uint8_t>(map.swizzleBytes);
  made.type = static_cast<uint8_t>(map.type);
  for (uint32_t axis = 0; axis < map.rank; ++axis) {
    made.extents[axis] = map.extents[axis];
    made.box[axis] = static_cast<uint16_t>(map.box[axis]);
    if (axis > 0)
      made.strides[axis - 1] = map.strides[axis];
  }
  std::array<std::byte, tensorMapBytes> object{};
  std::memcpy(object.data(), &made, sizeof made);
  return object;
}

std::optional<TensorMap> decodeTensorMap(const std::byte *object) {
  Encoded read;
  std::memcpy(&read, object, sizeof read);
  const bool isSize =
      read.elementBytes == 1 || read.elementBytes == 2 || read.elementBytes == 4 || read.elementBytes == 8;
  const bool isSwizzle =
      read.swizzleBytes == 0 || read.swizzleBytes == 32 || read.swizzleBytes == 64 || read.swizzleBytes == 128;
  const bool isType =
      read.type <= static_cast<uint8_t>(Type::F64) &&
      (static_cast<Type>(read.type) == Type::B8 || bytesOf(static_cast<Type>(read.type)) == read.elementBytes);
  if (read.mark != mark || !isType || read.rank == 0 || read.rank > TensorMap::maxRank || !isSize || !isSwizzle)
    return std::nullopt;
  TensorMap map;
  map.base = read.base;
  map.rank = read.rank;
  map.elementBytes = read.elementBytes;
  map.swizzleBytes = read.swizzleBytes;
  map.type = static_cast<Type>(read.type);
  map.strides[0] = map.elementBytes;
  for (uint32_t axis = 0; axis < map.rank; ++axis) {
    map.extents[axis] = read.extents[axis];
    map.box[axis] = read.box[axis];
    if (axis > 0)
      map.strides[axis] = read.strides[axis - 1];
    if (map.box[axis] == 0 || map.box[axis] > 256)
      return std::nullopt;
  }
  return map;
}

} // namespace k2c::ptx
