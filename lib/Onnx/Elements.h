//===- Elements.h - numbers of tensor bytes ------------------------------------===//
#ifndef K2C_LIB_ONNX_ELEMENTS_H
#define K2C_LIB_ONNX_ELEMENTS_H

#include "Graph.h"

namespace k2c::onnx {

/// Whether elements are integers or conditions.
bool isWhole(ElementType type);

/// Whether elements are real numbers of 16 or 32 bits, as weights and scales may be.
bool isReal(ElementType type);

/// How far, relative, a number may be from what 16 bits rounded to it; 0: of a type of other bits.
double roundoffOf16(ElementType type);

/// Element `index` of tensor bytes, as a number; none: of a type that is not read.
std::optional<double> decodeElement(ElementType type, const char *bytes, int64_t index);

/// Whether `widenElements` takes elements of the type: all integers up to 32 bits and real numbers up to 32.
bool canWiden(ElementType type);

/// Elements [first, first + count) of tensor bytes as floats, of a type that can be widened: exact, but for integers of
/// 32 bits, which are rounded to nearest.
void widenElements(ElementType type, const char *bytes, int64_t first, int64_t count, float *out);

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_ELEMENTS_H
