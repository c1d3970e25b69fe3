//===- Memory.h - Memory of devices and pinned memory ---------------------===//
//
// All of it is memory of this process, and an address of a device is the address here. An allocation begins at a
// multiple of 256 bytes, and behind it lie 256 that belong to none. What was never written is known for each byte.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_EMULATEDDRIVER_MEMORY_H
#define K2C_LIB_EMULATEDDRIVER_MEMORY_H

#include "k2c/Ptx/Machine.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

namespace k2c::emulated {

/// Who owns pinned memory, as GlobalMemory numbers owners; a device owns its own.
constexpr uint32_t hostOwner = 63;

class Memory {
public:
  struct Allocation {
    std::unique_ptr<std::byte, decltype(&std::free)> data;
    uint64_t bytes = 0;
    uint32_t owner = 0;
    uint64_t context = 0; ///< 0: it counts for none, as variables of modules do
  };

  /// null: this process has no such memory. `isWritten`: its bytes are zeros, and may be read.
  Allocation *allocate(uint64_t bytes, uint32_t owner, uint64_t context, const std::string &name, bool isWritten);
  /// The allocation that begins at `address`; null: none does.
  Allocation *find(uint64_t address);
  void free(uint64_t address);
  /// Whether all of it is in one allocation of the host's, or of a device's.
  bool isPinned(uint64_t address, uint64_t bytes);
  bool isOfDevice(uint64_t address, uint64_t bytes);
  /// The device that has it; it has to be of one.
  uint32_t deviceOf(uint64_t address) { return global.find(address, 1)->owner; }

  /// Copies, and what was never written stays so. False: one of them is not known (any more).
  bool copy(uint64_t to, uint64_t from, uint64_t bytes);

  const std::map<uint64_t, Allocation> &all() const { return allocations; }

  ptx::GlobalMemory global;

private:
  std::map<uint64_t, Allocation> allocations; ///< by address
};

} // namespace k2c::emulated

#endif // K2C_LIB_EMULATEDDRIVER_MEMORY_H
