//===- TensorMap.h - What a tensor copy knows of a tensor -----------------===//
#ifndef K2C_PTX_TENSORMAP_H
#define K2C_PTX_TENSORMAP_H

#include "k2c/Ptx/Module.h"

namespace k2c::ptx {

/// A tensor in global memory and the box of it that a copy moves. (PTX ISA, Tensors; cuTensorMapEncodeTiled of CUDA)
struct TensorMap {
  static constexpr uint32_t maxRank = 5;

  uint64_t base = 0; ///< a multiple of 16
  uint32_t rank = 1;
  uint32_t elementBytes = 1; ///< 1, 2, 4 or 8
  Type type = Type::B8;      ///< of an element, which copies that reduce add to; of .b8 they do not
  uint32_t swizzleBytes = 0; ///< 0, 32, 64 or 128: within how many bytes of a box's line chunks of 16 are exchanged
  std::array<uint64_t, maxRank> extents{};
  std::array<uint64_t, maxRank> strides{}; ///< bytes from one to the next; the first is elementBytes
  std::array<uint32_t, maxRank> box{};

  uint64_t boxBytes() const;
};

constexpr size_t tensorMapBytes = 128;

/// The opaque object of a map. It has a meaning for the machine of this library alone.
std::array<std::byte, tensorMapBytes> encode(const TensorMap &map);
/// The map of an object; none: it is not one, or has been damaged.
std::optional<TensorMap> decodeTensorMap(const std::byte *object);

} // namespace k2c::ptx

#endif // K2C_PTX_TENSORMAP_H
