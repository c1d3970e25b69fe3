//===- Memory.cpp - Loads and stores --------------------------------------===//
//
// PTX ISA, Data Movement and Conversion Instructions: ld, ld.global.nc, ldu, st, prefetch. Hints for caches are
// checked, and change nothing.
//
//===----------------------------------------------------------------------===//
#include "Integers.h"
#include "MBarriers.h"

namespace k2c::ptx {

namespace {

/// Where the bytes of each lane are, which all have been checked; false: a finding has been recorded.
bool reachAll(Machine &machine, Warp &warp, const Operation &o, uint32_t active, Access access, std::byte **bytes) {
  uint64_t addresses[warpLanes];
  if (o.addressBytes == 8) {
    const auto *base = warp.source<uint64_t>(o.sources[0]);
    for (int lane = 0; lane < warpLanes; ++lane)
      addresses[lane] = base[lane] + o.immediate;
  } else {
    const auto *base = warp.source<uint32_t>(o.sources[0]);
    for (int lane = 0; lane < warpLanes; ++lane)
      addresses[lane] = uint32_t(base[lane] + o.immediate);
  }
  const uint32_t size = uint32_t(o.bytes) * o.count;
  if (machine.options.isTrafficCounted)
    machine.countTraffic(warp, o, addresses, active, size, access);
  if (const Place place = machine.reachTogether(warp, o, addresses, active, size, access); place.data) {
    const uint64_t base = reinterpret_cast<uint64_t>(place.data) - place.first; // other lanes have any address
    for (int lane = 0; lane < warpLanes; ++lane)
      bytes[lane] = reinterpret_cast<std::byte *>(base + addresses[lane]);
    return true;
  }
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    bytes[lane] = machine.reach(warp, o, addresses[lane], lane, size, access);
    if (!bytes[lane])
      return false;
  }
  return true;
}

template <class T> T read(const std::byte *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Loads `count` elements T into the slots of `lists`, whose lanes are R; as wide as the register, where T is signed.
template <class R, class T> Outcome load(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  std::byte *bytes[warpLanes];
  if (!reachAll(machine, warp, o, active, Access::Read, bytes))
    return Outcome::Failed;
  for (uint32_t i = 0; i < o.count; ++i)
    if (const Slot slot = machine.program.lists[o.first + i]; slot != noSlot) {
      R *d = warp.destination<R>(slot);
      forLanes(active, [&, mask = static_cast<R>(o.valueMask)](int lane) {
        d[lane] = static_cast<R>(read<T>(bytes[lane] + i * sizeof(T))) & mask;
      });
    }
  return Outcome::Next;
}

template <class R, class T> Outcome store(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  std::byte *bytes[warpLanes];
  if (!reachAll(machine, warp, o, active, Access::Write, bytes))
    return Outcome::Failed;
  for (uint32_t i = 0; i < o.count; ++i) {
    const R *from = warp.source<R>(machine.program.lists[o.first + i]);
    forLanes(active, [&](int lane) {
      const T value = static_cast<T>(from[lane]);
      std::memcpy(bytes[lane] + i * sizeof value, &value, sizeof value);
    });
  }
  machine.quiet = 0;
  return Outcome::Next;
}

Outcome nothing(Machine &, Warp &, const Operation &, uint32_t) { return Outcome::Next; }

template <class R> Handler handlerOf(bool isStore, int bytes, bool isSigned) {
  switch (bytes) {
  case 1:
    return isStore ? store<R, uint8_t> : isSigned ? load<R, int8_t> : load<R, uint8_t>;
  case 2:
    return isStore ? store<R, uint16_t> : isSigned ? load<R, int16_t> : load<R, uint16_t>;
  case 4:
    return isStore ? store<R, uint32_t> : isSigned ? load<R, int32_t> : load<R, uint32_t>;
  default:
    return isStore ? store<uint64_t, uint64_t> : load<uint64_t, uint64_t>;
  }
}

Handler handlerOf(bool isStore, bool isWide, int bytes, bool isSigned) {
  return isWide ? handlerOf<uint64_t>(isStore, bytes, isSigned) : handlerOf<uint32_t>(isStore, bytes, isSigned);
}

/// .relaxed.gpu, .acquire.sys, .volatile, ..: how strong the access is.
void decodeStrength(Decoder &d, bool isStore) {
  Operation &made = d.operation();
  if (d.accept("weak"))
    return;
  if (d.accept("volatile")) { // as .relaxed.sys, and every access happens
    made.strength = Strength::Relaxed;
    return;
  }
  if (d.accept("relaxed"))
    made.strength = Strength::Relaxed;
  else if (!isStore && d.accept("acquire"))
    made.strength = Strength::Acquire;
  else if (isStore && d.accept("release"))
    made.strength = Strength::Release;
  else
    return;
  made.scope = takeScope(d);
}

Window acceptWindow(Decoder &d) {
  switch (d.acceptOneOf(
      {"global", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "const"})) {
  case 0:
  case 7:
    return Window::Global;
  case 1:
  case 2:
  case 3:
    return Window::Shared;
  case 4:
    return Window::Local;
  case 5:
  case 6:
    return Window::Param;
  default:
    return Window::Generic;
  }
}

/// Cache operators, eviction priorities and prefetch sizes; whether a cache policy is an operand.
bool acceptHints(Decoder &d) {
  bool hasPolicy = false;
  for (bool isHint = true; isHint;) {
    isHint = d.acceptOneOf({"ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::evict_normal", "L1::evict_unchanged",
                            "L1::evict_first", "L1::evict_last", "L1::no_allocate", "L2::evict_normal",
                            "L2::evict_first", "L2::evict_last", "L2::64B", "L2::128B", "L2::256B"}) >= 0;
    if (d.accept("L2::cache_hint"))
      isHint = hasPolicy = true;
  }
  return hasPolicy;
}

void decodeAccess(Decoder &d, bool isStore) {
  if (isStore && d.accept("async"))
    return decodeAsyncStore(d);
  Operation &made = d.operation();
  decodeStrength(d, isStore);
  const Window window = acceptWindow(d);
  made.isConstant = !isStore && d.accept("nc");
  bool hasPolicy = acceptHints(d);
  const int vector = d.acceptOneOf({"v2", "v4", "v8"});
  hasPolicy |= acceptHints(d);
  const Type type = d.takeType();
  if (d.hasFailed() || type == Type::Pred)
    return decodeForm(d, nullptr, {});
  const size_t count = vector < 0 ? 1 : size_t(2) << vector, value = isStore ? 1 : 0;
  made.count = static_cast<uint8_t>(count);
  made.bytes = static_cast<uint8_t>(bytesOf(type));
  made.isSigned = kindOf(type) == TypeKind::Signed;
  d.expectOperands(hasPolicy ? 3 : 2, hasPolicy ? 3 : 2);
  const Operand &values = d.operandAt(value);
  const bool isVector = values.kind == Operand::Kind::Vector;
  if (isVector != (vector >= 0) || (isVector && values.parts.size() != count))
    return d.fail("'" + d.instruction().spelling() + "' moves " + std::to_string(count) + " elements, and has " +
                  std::to_string(isVector ? values.parts.size() : 1));
  if (uint32_t(made.bytes) * made.count > 32)
    return d.fail("'" + d.instruction().spelling() + "' moves " + std::to_string(made.bytes * made.count) +
                  " bytes, and 32 can be moved");
  std::vector<Slot> slots;
  int bits = 0; // of the registers
  for (size_t i = 0; i < count; ++i) {
    const Operand &one = isVector ? values.parts[i] : values;
    if (one.kind == Operand::Kind::Register) {
      const int own = bitsOf(d.typeOfRegister(one));
      if (bits != 0 && own != bits)
        return d.fail("'" + d.instruction().spelling() + "' has registers of " + std::to_string(bits) + " and " +
                      std::to_string(own) + " bits");
      bits = own;
    }
    if (isStore && one.kind == Operand::Kind::Integer && made.bytes == 1)
      slots.push_back(d.constantSlotOf(one.bits & 0xff, false));
    else
      slots.push_back(isStore ? d.sourceOf(one, type, true) : d.destinationOrSink(one, type, true));
    if (isStore && one.kind != Operand::Kind::Register)
      bits = std::max(bits, bitsOf(type));
  }
  if (isStore && bits == 64 && made.bytes < 8 && count > 1)
    return decodeForm(d, nullptr, {}); // numbers have slots of their type
  const bool isWide = bits == 64 || made.bytes == 8;
  if (bits != 0 && bits < 64)
    made.valueMask = (uint64_t(1) << bits) - 1;
  made.first = d.addList(slots);
  made.run = handlerOf(isStore, isWide, made.bytes, made.isSigned);
  d.address(d.operandAt(isStore ? 0 : 1), 0, window);
  if (hasPolicy)
    d.source(2, Type::B64);
}

} // namespace

Scope takeScope(Decoder &d) {
  switch (d.acceptOneOf({"cta", "cluster", "gpu", "sys"})) {
  case 0:
    return Scope::Cta;
  case 1:
    return Scope::Cluster;
  case 2:
    return Scope::Gpu;
  case 3:
    return Scope::System;
  default:
    d.fail("'" + d.instruction().spelling() + "' needs a scope: .cta, .cluster, .gpu or .sys");
    return Scope::System;
  }
}

void addMemory(Opcodes &opcodes) {
  opcodes["ld"] = [](Decoder &d) { decodeAccess(d, false); };
  opcodes["st"] = [](Decoder &d) { decodeAccess(d, true); };
  opcodes["prefetch"] = [](Decoder &d) {
    d.acceptOneOf({"param", "const", "global", "local"});
    if (d.acceptOneOf({"L1", "L2", "tensormap"}) < 0)
      return decodeForm(d, nullptr, {});
    d.expectOperands(1, 1);
    d.address(d.operandAt(0), 0, Window::Generic);
    d.operation().run = nothing;
  };
}

} // namespace k2c::ptx
