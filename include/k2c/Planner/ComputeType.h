//===- ComputeType.h - The default of --compute ---------------------------===//
#ifndef K2C_PLANNER_COMPUTETYPE_H
#define K2C_PLANNER_COMPUTETYPE_H

#include "k2c/Model/ModelSpec.h"
#include <string>

namespace k2c {

/// The type of activations, and why it is that one.
struct ComputeChoice {
  DType type = DType::F32;
  std::string reason; ///< "the checkpoint is stored as bf16 and the target has AVX512-BF16"
};

/// What of a target is fast at products of bf16.
enum class Bf16Unit : uint8_t { None, Avx512, Gpu };

/// As the checkpoint stores most elements of its weights where a target is fast at bf16 and no bit of a weight is lost,
/// else f32.
ComputeChoice chooseCompute(const ModelSpec &spec, Bf16Unit unit);

} // namespace k2c

#endif // K2C_PLANNER_COMPUTETYPE_H
