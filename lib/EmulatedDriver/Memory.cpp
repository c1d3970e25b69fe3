//===- Memory.cpp - Memory of devices and pinned memory -------------------===//
#include "Memory.h"

#include <algorithm>
#include <cstring>

namespace k2c::emulated {

namespace {

constexpr uint64_t alignment = 256;
constexpr uint64_t maxFilled = uint64_t(64) << 20; ///< bytes; larger allocations are left as they come

} // namespace

Memory::Allocation *Memory::allocate(uint64_t bytes, uint32_t owner, uint64_t context, const std::string &name,
                                     bool isWritten) {
  const uint64_t rounded = (bytes + alignment - 1) / alignment * alignment + alignment;
  Allocation made{
      {static_cast<std::byte *>(std::aligned_alloc(alignment, rounded)), &std::free}, bytes, owner, context};
  if (!made.data)
    return nullptr;
  if (isWritten)
    std::memset(made.data.get(), 0, bytes);
  else
    std::memset(made.data.get(), 0xcd, std::min(bytes, maxFilled));
  const auto address = reinterpret_cast<uint64_t>(made.data.get());
  global.add(made.data.get(), bytes, name, isWritten, owner);
  return &allocations.emplace(address, std::move(made)).first->second;
}

Memory::Allocation *Memory::find(uint64_t address) {
  const auto found = allocations.find(address);
  return found == allocations.end() ? nullptr : &found->second;
}

void Memory::free(uint64_t address) {
  global.remove(reinterpret_cast<void *>(address));
  allocations.erase(address);
}

bool Memory::isPinned(uint64_t address, uint64_t bytes) {
  const ptx::GlobalMemory::Range *range = global.find(address, bytes);
  return range && range->owner == hostOwner;
}

bool Memory::isOfDevice(uint64_t address, uint64_t bytes) {
  const ptx::GlobalMemory::Range *range = global.find(address, bytes);
  return range && range->owner != hostOwner;
}

bool Memory::copy(uint64_t to, uint64_t from, uint64_t bytes) {
  ptx::GlobalMemory::Range *target = global.find(to, bytes), *source = global.find(from, bytes);
  if (!target || !source)
    return false;
  const uint64_t toOffset = to - reinterpret_cast<uint64_t>(target->data);
  const uint64_t fromOffset = from - reinterpret_cast<uint64_t>(source->data);
  std::memmove(target->data + toOffset, source->data + fromOffset, bytes);
  target->written.assign(toOffset, bytes, source->written, fromOffset);
  return true;
}

} // namespace k2c::emulated
