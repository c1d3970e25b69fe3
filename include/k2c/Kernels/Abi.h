//===- Abi.h - Where a field of a runtime struct lies --------------------------------===//
//
// abi.def read by the compiler: abi::<struct>::<field> is a Field with the byte offset and type that generated code
// uses.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_ABI_H
#define K2C_KERNELS_ABI_H

#include "k2rt/program.h"
#include <cstddef>
#include <cstdint>

namespace k2c::abi {

enum class FieldType : uint8_t { PTR, I32, U32, I64, U64, F32 };

/// A field: bytes from the struct's start, and what is there.
struct Field {
  int64_t offset;
  FieldType type;
};

#define K2RT_STRUCT(name) namespace name {
#define K2RT_FIELD(name, type, field)                                                                                  \
  inline constexpr Field field{static_cast<int64_t>(offsetof(::name, field)), FieldType::type};
#define K2RT_END(name) }
#include "k2rt/abi.def"

namespace worker = k2rt_ir_worker;
namespace step = k2rt_ir_step;
namespace gpu_launch = k2rt_ir_gpu_launch;
namespace gpu_status = k2rt_ir_gpu_status;

} // namespace k2c::abi

#endif // K2C_KERNELS_ABI_H
