//===- Allocations.h - What operator new has given and not taken back -----------------------------===//
//
// The program that links Allocations.cpp keeps a list of its own: so a kernel that runs on an emulated GPU may use what
// tests have allocated, to the byte, and nothing else.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_KERNELS_ALLOCATIONS_H
#define K2C_UNIT_KERNELS_ALLOCATIONS_H

#include <cstddef>
#include <utility>
#include <vector>

namespace k2c::test {

/// All of them, by address.
std::vector<std::pair<void *, size_t>> allocations();

/// While it lives, what operator new gives is none of them.
struct Unlisted {
  Unlisted();
  ~Unlisted();
};

} // namespace k2c::test

#endif // K2C_UNIT_KERNELS_ALLOCATIONS_H
