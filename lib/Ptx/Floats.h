//===- Floats.h - Forms of floating point that are rare -------------------===//
#ifndef K2C_LIB_PTX_FLOATS_H
#define K2C_LIB_PTX_FLOATS_H

#include "Decoder.h"

namespace k2c::ptx {

enum class HalfKind : uint8_t { Add, Subtract, Multiply, Fused, Minimum, Maximum, Negate, Magnitude, Power, Tangent };
enum class RoundedKind : uint8_t { Add, Subtract, Multiply, Fused, Divide, Reciprocal, Root };

/// Whether a later modifier is a type of 16 bits, or of pairs of them.
bool isHalf(const Decoder &decoder);
/// Decodes an operation of such a type.
void decodeHalf(Decoder &decoder, HalfKind kind);
/// Decodes an operation whose next modifier is a rounding other than to nearest; false: it is not.
bool decodeDirected(Decoder &decoder, RoundedKind kind);

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_FLOATS_H
