//===- Spec.h - a decoder as a ModelSpec and its tensors ------------------------------===//
#ifndef K2C_LIB_ONNX_SPEC_H
#define K2C_LIB_ONNX_SPEC_H

#include "Decoder.h"
#include "Tensors.h"

namespace k2c::onnx {

/// The description of a decoder, and its weights added to `tensors` by the names that its families have. `stated`: the
/// first guesses of rotary embeddings (ropeOf). Error: what a ModelSpec cannot say.
Expected<ModelSpec> specOf(Fold &fold, const Decoder &decoder, const std::vector<RopeSpec> &stated,
                           OnnxTensors &tensors);

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_SPEC_H
