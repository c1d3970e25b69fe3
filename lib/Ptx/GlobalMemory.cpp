//===- GlobalMemory.cpp - Memory that kernels share -----------------------===//
#include "k2c/Ptx/Machine.h"

namespace k2c::ptx {

void GlobalMemory::add(void *data, uint64_t bytes, std::string name, bool isWritten, uint32_t owner) {
  const auto address = reinterpret_cast<uint64_t>(data);
  ranges[address] = {static_cast<std::byte *>(data), bytes, std::move(name), isWritten ? ByteSet() : ByteSet(bytes),
                     owner};
}

void GlobalMemory::remove(void *data) { ranges.erase(reinterpret_cast<uint64_t>(data)); }

GlobalMemory::Range *GlobalMemory::find(uint64_t address, uint64_t bytes) {
  auto found = ranges.upper_bound(address);
  if (found == ranges.begin())
    return nullptr;
  Range &range = (--found)->second;
  const uint64_t offset = address - found->first;
  return (shown >> range.owner & 1) != 0 && offset <= range.bytes && bytes <= range.bytes - offset ? &range : nullptr;
}

void GlobalMemory::markWritten(const void *data, uint64_t bytes) {
  if (Range *range = find(reinterpret_cast<uint64_t>(data), bytes))
    range->written.add(static_cast<uint64_t>(static_cast<const std::byte *>(data) - range->data), bytes);
}

} // namespace k2c::ptx
