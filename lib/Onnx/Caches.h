//===- Caches.h - what a graph keeps of past tokens -----------------------------------===//
#ifndef K2C_LIB_ONNX_CACHES_H
#define K2C_LIB_ONNX_CACHES_H

#include "Decoder.h"

namespace k2c::onnx {

/// Checks that every output but `logits` is an input with rows of past tokens, continued by those of the step, and that
/// keys and values of past tokens are what they would be if they were of the step. Error: the output or the layer.
Status checkCaches(Matcher &matcher, const std::vector<DecoderLayer> &layers, ValueId logits);

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_CACHES_H
