//===- Special.h - Special registers --------------------------------------===//
#ifndef K2C_LIB_PTX_SPECIAL_H
#define K2C_LIB_PTX_SPECIAL_H

#include "Execution.h"

#include <optional>
#include <string_view>

namespace k2c::ptx {

/// The special register that a text calls %name, if it is known. (PTX ISA, Special Registers)
std::optional<Special> specialNamed(std::string_view name);

/// What `lane` of `warp` reads there.
uint32_t specialValue(Special special, const Warp &warp, int lane, const Launch &launch, const Extent &cluster);

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_SPECIAL_H
