//===- Image.h - A module that is loaded ----------------------------------===//
#ifndef K2C_LIB_EMULATEDDRIVER_IMAGE_H
#define K2C_LIB_EMULATEDDRIVER_IMAGE_H

#include "Memory.h"

#include <cstdint>
#include <string>
#include <vector>

namespace k2c::emulated {

/// Bytes of shared memory that a block may have: without asking for more, and at most.
constexpr uint64_t defaultShared = uint64_t(48) << 10, maxShared = uint64_t(227) << 10;

/// Kernels of a PTX text, decoded once, or for each device if the text has variables in .global or .const.
struct Image {
  explicit Image(Memory &memory) : memory(memory) {}
  ~Image() {
    for (const uint64_t variable : variables)
      memory.free(variable);
  }
  Image(const Image &) = delete;
  Image &operator=(const Image &) = delete;

  const ptx::Kernel &kernel(size_t index, uint32_t device) const {
    return kernels[kernels.size() == 1 ? 0 : device][index];
  }

  Memory &memory;
  std::vector<uint64_t> variables; ///< their addresses
  std::vector<std::string> names;
  std::vector<std::vector<ptx::Kernel>> kernels; ///< by device, or of all of them
};

} // namespace k2c::emulated

#endif // K2C_LIB_EMULATEDDRIVER_IMAGE_H
