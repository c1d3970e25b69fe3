//===- Moves.cpp - mov and addresses --------------------------------------===//
//
// PTX ISA, Data Movement and Conversion Instructions: mov, with the packing of halves, cvta, isspacep. A generic
// address says in its highest byte which window it lies in.
//
//===----------------------------------------------------------------------===//
#include "Integers.h"

namespace k2c::ptx {

namespace {

template <class T> Outcome move(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const T *a = warp.source<T>(o.sources[0]);
  T *d = warp.destination<T>(o.destinations[0]);
  forLanes(active, [=](int lane) { d[lane] = a[lane]; });
  return Outcome::Next;
}

Outcome movePredicate(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  warp.setPredicate(o.destinations[0], active, warp.predicate(o.sources[0]));
  return Outcome::Next;
}

uint64_t lane64(const Warp &warp, Slot slot, int lane, int bytes) {
  return bytes == 8 ? warp.source<uint64_t>(slot)[lane] : warp.source<uint32_t>(slot)[lane];
}

void setLane(Warp &warp, Slot slot, int lane, int bytes, uint64_t value) {
  if (bytes == 8)
    warp.destination<uint64_t>(slot)[lane] = value;
  else
    warp.destination<uint32_t>(slot)[lane] = static_cast<uint32_t>(value);
}

/// The `count` parts of `bytes` bytes in `lists` become one register, the first the lowest.
Outcome pack(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  forLanes(active, [&](int lane) {
    uint64_t whole = 0;
    for (uint32_t i = 0; i < o.count; ++i)
      whole |= lane64(warp, machine.program.lists[o.first + i], lane, o.bytes) << (8 * o.bytes * i);
    setLane(warp, o.destinations[0], lane, o.bytes * o.count, whole);
  });
  return Outcome::Next;
}

Outcome unpack(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  forLanes(active, [&](int lane) {
    const uint64_t whole = lane64(warp, o.sources[0], lane, o.bytes * o.count);
    for (uint32_t i = 0; i < o.count; ++i)
      if (const Slot part = machine.program.lists[o.first + i]; part != noSlot)
        setLane(warp, part, lane, o.bytes, whole >> (8 * o.bytes * i) & ((uint64_t(1) << (8 * o.bytes)) - 1));
  });
  return Outcome::Next;
}

void decodePacked(Decoder &d, Type type, const Operand &parts, bool isUnpacked) {
  Operation &made = d.operation();
  const size_t count = parts.parts.size();
  if (type == Type::Pred || (count != 2 && count != 4) || bitsOf(type) % static_cast<int>(8 * count) != 0 ||
      (bitsOf(type) / static_cast<int>(count) != 16 && bitsOf(type) / static_cast<int>(count) != 32))
    return d.fail("'" + d.instruction().spelling() + "' has a vector of " + std::to_string(count) +
                  " parts, which is not supported for its type");
  const Type part = bitsOf(type) / static_cast<int>(count) == 16 ? Type::B16 : Type::B32;
  made.count = static_cast<uint8_t>(count);
  made.bytes = static_cast<uint8_t>(bytesOf(part));
  std::vector<Slot> slots;
  for (const Operand &operand : parts.parts)
    slots.push_back(isUnpacked ? d.destinationOrSink(operand, part) : d.sourceOf(operand, part));
  made.first = d.addList(slots);
  made.run = isUnpacked ? unpack : pack;
  if (isUnpacked)
    made.sources[0] = d.source(1, type);
  else
    made.destinations[0] = d.destination(0, type);
}

void decodeMov(Decoder &d) {
  const Type type = d.takeType();
  d.expectOperands(2, 2);
  if (d.hasFailed())
    return;
  if (d.operandAt(0).kind == Operand::Kind::Vector)
    return decodePacked(d, type, d.operandAt(0), true);
  if (d.operandAt(1).kind == Operand::Kind::Vector)
    return decodePacked(d, type, d.operandAt(1), false);
  decodeForm(d,
             type == Type::Pred   ? movePredicate
             : bitsOf(type) == 64 ? move<uint64_t>
             : bitsOf(type) >= 16 ? move<uint32_t>
                                  : nullptr,
             {type, type});
}

/// `immediate` is added (to generic), or the window removed; sources of .shared may have 32 bits.
Outcome toGeneric(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const uint64_t *a = warp.source<uint64_t>(o.sources[0]);
  uint64_t *d = warp.destination<uint64_t>(o.destinations[0]);
  forLanes(active, [=](int lane) { d[lane] = a[lane] | o.immediate; });
  return Outcome::Next;
}

Outcome fromGeneric(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  const uint64_t *a = warp.source<uint64_t>(o.sources[0]);
  uint64_t *d = warp.destination<uint64_t>(o.destinations[0]);
  uint32_t strangers = 0;
  forLanes(active, [&](int lane) {
    strangers |= uint32_t((a[lane] & ~windowMask) != o.immediate) << lane;
    d[lane] = a[lane] & windowMask;
  });
  if (strangers != 0)
    return machine.fail(warp, o, strangers, "the address lies in another window");
  return Outcome::Next;
}

std::optional<uint64_t> windowOf(Decoder &d) {
  constexpr uint64_t windows[] = {0,           0,           sharedWindow, sharedWindow, sharedWindow,
                                  localWindow, paramWindow, paramWindow};
  const int which =
      d.acceptOneOf({"global", "const", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry"});
  if (which >= 0)
    return windows[which];
  d.fail("'" + d.instruction().spelling() + "' is not supported: its state space is not known");
  return std::nullopt;
}

/// cvta.shared.u64 (to generic), cvta.to.shared.u64 (from it). The window of .param is in its addresses already.
void decodeCvta(Decoder &d) {
  const bool isFromGeneric = d.accept("to");
  const std::optional<uint64_t> window = windowOf(d);
  const Type type = d.takeType();
  decodeForm(d, type == Type::U64 ? (isFromGeneric ? fromGeneric : toGeneric) : nullptr, {type, type});
  d.operation().immediate = window.value_or(0);
}

Outcome isInWindow(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const uint64_t *a = warp.source<uint64_t>(o.sources[0]);
  uint32_t lanes = 0;
  forLanes(active, [&](int lane) { lanes |= uint32_t((a[lane] & ~windowMask) == o.immediate) << lane; });
  warp.setPredicate(o.destinations[0], active, lanes);
  return Outcome::Next;
}

} // namespace

void addMoves(Opcodes &opcodes) {
  opcodes["mov"] = decodeMov;
  opcodes["cvta"] = decodeCvta;
  opcodes["isspacep"] = [](Decoder &d) {
    const std::optional<uint64_t> window = windowOf(d);
    decodeForm(d, isInWindow, {Type::Pred, Type::U64});
    d.operation().immediate = window.value_or(0);
  };
}

} // namespace k2c::ptx
