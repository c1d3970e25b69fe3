//===- Conversion.h - What a cvt does -------------------------------------===//
#ifndef K2C_LIB_PTX_CONVERSION_H
#define K2C_LIB_PTX_CONVERSION_H

#include "k2c/Ptx/Module.h"

namespace k2c::ptx {

enum class Rounding : uint8_t { Nearest, Zero, Down, Up };

struct Conversion {
  Type to, from;
  Rounding rounding;
  bool isIntegral; ///< .rni, ..: to an integer
  bool isFlushed, isClamped, isRectified;
  uint8_t toBytes, fromBytes; ///< of the registers' lanes
};

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_CONVERSION_H
