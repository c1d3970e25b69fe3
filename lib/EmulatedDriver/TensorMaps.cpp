//===- TensorMaps.cpp - Objects of tensor copies --------------------------===//
#include "Driver.h"
#include "k2c/Ptx/TensorMap.h"

#include <cstring>

using namespace k2c::emulated;
namespace ptx = k2c::ptx;

namespace {

/// None: there is no such type.
std::optional<ptx::Type> typeOf(CUtensorMapDataType type) {
  switch (type) {
  case CU_TENSOR_MAP_DATA_TYPE_UINT8:
    return ptx::Type::U8;
  case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    return ptx::Type::U16;
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    return ptx::Type::F16;
  case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
    return ptx::Type::BF16;
  case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    return ptx::Type::U32;
  case CU_TENSOR_MAP_DATA_TYPE_INT32:
    return ptx::Type::S32;
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    return ptx::Type::F32;
  case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    return ptx::Type::U64;
  case CU_TENSOR_MAP_DATA_TYPE_INT64:
    return ptx::Type::S64;
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
    return ptx::Type::F64;
  }
  return std::nullopt;
}

/// What is wrong with a map, by the rules of cuda.h; empty: nothing.
std::string problemOf(const ptx::TensorMap &map, const uint32_t *elementStrides) {
  if (map.base == 0 || map.base % 16 != 0)
    return "the address is no multiple of 16";
  for (uint32_t axis = 0; axis < map.rank; ++axis) {
    const std::string which = " " + std::to_string(axis) + " is ";
    if (map.extents[axis] == 0 || map.extents[axis] > uint64_t(1) << 32)
      return "extent" + which + std::to_string(map.extents[axis]) + ", and not from 1 to 2^32";
    if (map.box[axis] == 0 || map.box[axis] > 256)
      return "box" + which + std::to_string(map.box[axis]) + ", and not from 1 to 256";
    if (axis != 0 && (map.strides[axis] % 16 != 0 || map.strides[axis] >= uint64_t(1) << 40))
      return "stride" + which + std::to_string(map.strides[axis]) + ", and no multiple of 16 below 2^40";
    if (axis == 1 && map.strides[1] < map.extents[0] * map.elementBytes)
      return "stride" + which + std::to_string(map.strides[axis]) + ", and less than a line";
    if (elementStrides[axis] != 1)
      return "element stride" + which + std::to_string(elementStrides[axis]) + ", and only 1 is emulated";
  }
  const uint64_t line = uint64_t(map.box[0]) * map.elementBytes;
  if (line % 16 != 0)
    return "a line of the box has " + std::to_string(line) + " bytes, which is no multiple of 16";
  if (map.swizzleBytes != 0 && line > map.swizzleBytes)
    return "a line of the box has " + std::to_string(line) + " bytes, more than the swizzle's " +
           std::to_string(map.swizzleBytes);
  return "";
}

} // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *address,
                                const uint64_t *extents, const uint64_t *strides, const uint32_t *box,
                                const uint32_t *elementStrides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
  return enter(Entry::cuTensorMapEncodeTiled, [&](Driver &driver) {
    const std::optional<ptx::Type> elements = typeOf(type);
    if (!map || reinterpret_cast<uint64_t>(map) % 64 != 0 || !elements || rank == 0 || rank > ptx::TensorMap::maxRank ||
        !extents || (rank > 1 && !strides) || !box || !elementStrides || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
        swizzle < CU_TENSOR_MAP_SWIZZLE_NONE || swizzle > CU_TENSOR_MAP_SWIZZLE_128B ||
        promotion < CU_TENSOR_MAP_L2_PROMOTION_NONE || promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B ||
        fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
      return CUDA_ERROR_INVALID_VALUE;
    if (driver.settings.arch.major < 9)
      return CUDA_ERROR_NOT_SUPPORTED;
    ptx::TensorMap tensor;
    tensor.base = reinterpret_cast<uint64_t>(address);
    tensor.rank = rank;
    tensor.elementBytes = static_cast<uint32_t>(ptx::bytesOf(*elements));
    tensor.type = *elements;
    tensor.swizzleBytes = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 0 : 16u << swizzle;
    for (uint32_t axis = 0; axis < rank; ++axis) {
      tensor.extents[axis] = extents[axis];
      tensor.strides[axis] = axis == 0 ? tensor.elementBytes : strides[axis - 1];
      tensor.box[axis] = box[axis];
    }
    if (const std::string problem = problemOf(tensor, elementStrides); !problem.empty())
      return refuse(CUDA_ERROR_INVALID_VALUE, "tensor map: " + problem);
    const auto encoded = ptx::encode(tensor);
    std::memcpy(map, encoded.data(), encoded.size());
    return CUDA_SUCCESS;
  });
}
