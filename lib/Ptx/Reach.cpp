//===- Reach.cpp - From an address to bytes -------------------------------===//
//
// An address lies in a window, and there in a memory; every access is checked for bounds, alignment, bytes that were
// never written and, in a strict launch, races. Lanes that access one memory are checked together; where something is
// wrong with one of them, lane by lane, which finds the one to name.
//
//===----------------------------------------------------------------------===//
#include "Counters.h"
#include "Races.h"

#include <algorithm>

#include <cstdio>

namespace k2c::ptx {

static std::string hexadecimal(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

Cta *Machine::sharedAt(Warp &warp, uint64_t &address) {
  address &= windowMask;
  const uint64_t rank = address >> sharedAddressBits;
  std::vector<Cta> &ctas = warp.cta->cluster->ctas;
  if (rank > ctas.size())
    return nullptr;
  address &= (uint64_t(1) << sharedAddressBits) - 1;
  return rank == 0 ? warp.cta : &ctas[rank - 1];
}

/// The memory that `address` lies in, of which it becomes the address; without data where there is none.
Place Machine::place(Warp &warp, Window window, uint64_t &address, int lane) {
  if (window == Window::Generic) {
    const uint64_t high = address & ~windowMask;
    window = high == sharedWindow  ? Window::Shared
             : high == localWindow ? Window::Local
             : high == paramWindow ? Window::Param
                                   : Window::Global;
  }
  if (window != Window::Global)
    address &= windowMask;
  switch (window) {
  case Window::Shared:
    if (Cta *cta = sharedAt(warp, address))
      return {"shared",
              firstSharedAddress,
              cta->shared.size(),
              cta->runningWarps == 0 ? nullptr : cta->shared.data(),
              &cta->sharedWritten,
              cta};
    return {"shared"};
  case Window::Local:
    return {"local", 0, program.localBytes, warp.local.data() + static_cast<uint64_t>(lane) * program.localBytes,
            nullptr};
  case Window::Param:
    return {"parameter", 0, parameters.size(), parameters.data(), nullptr};
  case Window::Global:
  case Window::Generic:
    break;
  }
  if (!lastRange || address - reinterpret_cast<uint64_t>(lastRange->data) >= lastRange->bytes)
    lastRange = memory.find(address, 1);
  if (!lastRange)
    return {"global"};
  return {"global", reinterpret_cast<uint64_t>(lastRange->data), lastRange->bytes, lastRange->data,
          &lastRange->written};
}

/// Whether `found` is of another CTA, and no barrier of the cluster has shown that all have begun.
bool Machine::mayNotHaveBegun(const Warp &warp, const Place &found) const {
  return races && found.cta && found.cta != warp.cta && !warp.hasMetCluster;
}

/// What lanes mostly do: they access one memory, each of them an aligned part of it. Anything else is left to reach(),
/// which says what is wrong with it.
Place Machine::reachTogether(Warp &warp, const Operation &operation, const uint64_t *addresses, uint32_t active,
                             uint32_t bytes, Access access) {
  if ((races && operation.strength != Strength::Weak) || operation.window == Window::Local ||
      (operation.window == Window::Param && access != Access::Read))
    return {};
  uint64_t lowest = ~uint64_t(0), highest = 0, bits = 0;
  forLanes(active, [&](int lane) {
    lowest = std::min(lowest, addresses[lane]);
    highest = std::max(highest, addresses[lane]);
    bits |= addresses[lane];
  });
  uint64_t address = lowest;
  Place found = place(warp, operation.window, address, 0);
  const uint64_t offset = address - found.first, reach = highest - lowest + bytes;
  if (!found.data || address < found.first || offset > found.size || reach > found.size - offset || bits % bytes != 0 ||
      (found.data == parameters.data() && access != Access::Read) ||
      (operation.window == Window::Generic && !found.written) || found.holdsMBarrier(address, reach) ||
      mayNotHaveBegun(warp, found))
    return {};
  if (found.written && !found.written->isAll()) {
    bool isWritten = access == Access::Write;
    if (!isWritten && reach <= 64)
      isWritten = found.written->has(offset, reach);
    const bool isEach = !isWritten;
    isWritten = true;
    forLanes(active, [&](int lane) {
      const uint64_t own = offset + (addresses[lane] - lowest);
      if (isEach)
        isWritten &= found.written->has(own, bytes);
      if (access != Access::Read)
        found.written->add(own, bytes);
    });
    if (!isWritten)
      return {};
  }
  if (races && found.written) {
    uint64_t offsets[warpLanes];
    forLanes(active, [&](int lane) { offsets[lane] = offset + (addresses[lane] - lowest); });
    const Touched at{found.data, found.size, found.cta ? Proxied::Shared : Proxied::Global, 0, 0};
    if (!races->accessTogether(warp, operation, active, at, offsets, bytes, access).empty())
      return {};
  }
  found.first += lowest - address; // as the lanes see it
  return found;
}

void Machine::countTraffic(Warp &warp, const Operation &operation, const uint64_t *addresses, uint32_t active,
                           uint32_t bytes, Access access) {
  const int lane = __builtin_ctz(active);
  uint64_t address = addresses[lane];
  const Place found = place(warp, operation.window, address, lane);
  if (found.cta)
    countShared(access == Access::Read ? counts.sharedRead : counts.sharedWritten, addresses, active, bytes);
  else if (found.written)
    countGlobal(access == Access::Read ? counts.globalRead : counts.globalWritten, addresses, active, bytes);
}

Outcome Machine::failRace(const Warp &warp, const Operation &operation, uint32_t lanes, const std::string &what,
                          const std::string &other, bool isProxy) {
  return fail(warp, operation, lanes, what + ", and nothing orders it with " + other,
              isProxy ? "let a barrier or a wait, and a proxy fence behind what threads have written, be between them"
                      : "let a barrier, or a release and an acquire, be between them");
}

std::byte *Machine::reach(Warp &warp, const Operation &operation, uint64_t address, int lane, uint32_t bytes,
                          Access access) {
  const Place found = place(warp, operation.window, address, lane);
  const uint64_t offset = address - found.first;
  const auto refuse = [&](const std::string &what, std::string remedy) {
    fail(warp, operation, uint32_t(1) << lane,
         "it accesses " + std::to_string(bytes) + " bytes at " + found.space + " address " + hexadecimal(address) +
             ", " + what,
         std::move(remedy));
    return nullptr;
  };
  const bool isOutside = !found.data || address < found.first || offset > found.size || bytes > found.size - offset;
  if (isOutside || address % bytes != 0)
    symptom = isOutside ? Symptom::IllegalAddress : Symptom::Misaligned;
  if (!found.data && found.cta)
    return refuse("of a CTA that has ended", "let a barrier of the cluster be before its end");
  if (!found.data)
    return refuse("where there is no memory", "stay within what the launch gives");
  if (isOutside)
    return refuse("and there are " + std::to_string(found.size) + " from " + hexadecimal(found.first) + " on",
                  "stay within what the launch gives");
  if (address % bytes != 0)
    return refuse("which is no multiple of that", "align it");
  if (access != Access::Read && found.data == parameters.data())
    return refuse("and parameters are not written", "copy it");
  if (found.holdsMBarrier(address, bytes))
    return refuse("and an mbarrier is there", "use mbarrier.inval before");
  if (mayNotHaveBegun(warp, found) && !races->hasBegun(warp, lane, found.cta->rank))
    return refuse("of a CTA that may not have begun", "let a barrier of the cluster be before");
  if (found.written) {
    if (access != Access::Write && !found.written->has(offset, bytes))
      return refuse("of which some were never written", "write them first");
    if (access != Access::Read)
      found.written->add(offset, bytes);
    if (races) {
      const Touched at{found.data, found.size, found.cta ? Proxied::Shared : Proxied::Global, offset, bytes};
      if (const std::string other = races->access(warp, operation, lane, at, access); !other.empty()) {
        failRace(warp, operation, uint32_t(1) << lane,
                 "it accesses " + std::to_string(bytes) + " bytes at " + found.space + " address " +
                     hexadecimal(address),
                 other, false);
        return nullptr;
      }
      if (access == Access::Read && operation.strength != Strength::Weak)
        if (const std::byte *older = races->older(warp, operation, lane, at, random()))
          return const_cast<std::byte *>(older); // is read
    }
  }
  return found.data + offset;
}

} // namespace k2c::ptx
