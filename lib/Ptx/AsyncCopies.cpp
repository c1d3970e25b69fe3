//===- AsyncCopies.cpp - Copies of single threads -------------------------===//
//
// PTX ISA, Non-bulk copy and Asynchronous store: cp.async, its groups and its arrival at an mbarrier; st.async. They go
// on while their thread does, yet in the generic proxy: no proxy fence is needed. Each cp.async of a thread has a
// number, which is the time at which the thread's agent acts; who waits for a group, or for an mbarrier at which they
// arrive, knows of those up to some number.
//
//===----------------------------------------------------------------------===//
#include "Integers.h"
#include "MBarriers.h"
#include "Pieces.h"
#include "Races.h"

#include <algorithm>

namespace k2c::ptx {

namespace {

/// Does the copies up to `number` that have not been done.
void complete(Fetches &fetches, uint32_t number) {
  while (!fetches.pending.empty() && fetches.pending.front().number <= number) {
    fill(*fetches.pending.front().cta, fetches.pending.front().pieces);
    fetches.pending.pop_front();
  }
}

/// Addresses: destination, source; sources: bytes of the source (noSlot: all), whether it is ignored; `count`: bytes.
Outcome fetch(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const uint32_t own = uint32_t(1) << lane;
    uint64_t shared = machine.addressAt(warp, o.first, lane);
    const uint64_t global = machine.addressAt(warp, o.first + 1, lane);
    uint32_t read = o.sources[0] == noSlot ? o.count : warp.source<uint32_t>(o.sources[0])[lane];
    if (o.sources[1] != noSlot && ((warp.predicate(o.sources[1]) >> lane & 1) != 0) != o.isSigned)
      read = 0;
    if (machine.sharedAt(warp, shared) != warp.cta)
      return machine.fail(warp, o, own, "it copies to a CTA that is not its own");
    if (read > o.count || shared % o.count != 0 || global % o.count != 0)
      return machine.fail(warp, o, own,
                          "it copies " + std::to_string(read) + " of " + std::to_string(o.count) +
                              " bytes from or to addresses of which one may be no multiple of that",
                          "align them");
    Fetches &fetches = warp.fetches[lane];
    if (machine.races && fetches.number == 0)
      fetches.agent = machine.races->addAgent(warp);
    Fetch made{++fetches.number, warp.cta, {}};
    if (read > 0)
      made.pieces.push_back({shared, reinterpret_cast<std::byte *>(global), read});
    if (read < o.count)
      made.pieces.push_back({shared + read, nullptr, o.count - read});
    if (!mayCopy(machine, warp, o, lane, *warp.cta, made.pieces,
                 {true, false, fetches.agent, fetches.agent, made.number}))
      return Outcome::Failed;
    fetches.pending.push_back(std::move(made));
    machine.defer(warp, [&fetches, number = fetches.number] { complete(fetches, number); });
  }
  machine.quiet = 0;
  return Outcome::Next;
}

Outcome commit(Machine &, Warp &warp, const Operation &, uint32_t active) {
  for (uint32_t left = active; left != 0; left &= left - 1) {
    Fetches &fetches = warp.fetches[__builtin_ctz(left)];
    fetches.groups.push_back(fetches.number);
  }
  return Outcome::Next;
}

/// `immediate`: groups that may be open; `isSigned`: none, and nothing that is in no group.
Outcome waitForGroups(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    Fetches &fetches = warp.fetches[lane];
    const size_t groups = fetches.groups.size();
    const uint32_t number = o.isSigned             ? fetches.number
                            : groups > o.immediate ? fetches.groups[groups - 1 - o.immediate]
                                                   : 0;
    complete(fetches, number);
    if (machine.races && number != 0)
      machine.races->learn(warp, uint32_t(1) << lane, fetches.agent, number);
  }
  machine.quiet = 0;
  return Outcome::Next;
}

/// The barrier is arrived at when the copies so far are done; `isSigned`: .noinc, the arrival is among those expected.
Outcome arrive(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    MBarrier *object = mbarrierAt(machine, warp, o, machine.addressAt(warp, o.first, lane), lane);
    if (!object)
      return Outcome::Failed;
    Fetches &fetches = warp.fetches[lane];
    if (!o.isSigned)
      ++object->pending;
    machine.defer(warp, [&machine, &warp, &o, &fetches, object, lane, number = fetches.number] {
      complete(fetches, number);
      if (machine.races && number != 0)
        object->given.add(fetches.agent, 1, number);
      --object->pending;
      if (const std::string wrong = advance(*object); !wrong.empty())
        machine.fail(warp, o, uint32_t(1) << lane, wrong);
    });
  }
  machine.quiet = 0;
  return Outcome::Next;
}

/// Addresses: destination, mbarrier; `count` values of `bytes` bytes in `lists`.
Outcome storeAsync(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const uint32_t own = uint32_t(1) << lane, bytes = uint32_t(o.bytes) * o.count;
    uint64_t address = machine.addressAt(warp, o.first, lane), barrier = machine.addressAt(warp, o.first + 1, lane);
    MBarrier *object = mbarrierAt(machine, warp, o, barrier, lane);
    if (!object)
      return Outcome::Failed;
    Cta *cta = machine.sharedAt(warp, address);
    if (!cta || cta != machine.sharedAt(warp, barrier) || address % bytes != 0)
      return machine.fail(warp, o, own, "it stores to a CTA that its mbarrier is not of, or out of alignment",
                          "let both be in one CTA");
    const auto time = static_cast<uint32_t>(object->phase + 1);
    const std::vector<Piece> pieces{{address, nullptr, bytes}};
    if (!mayCopy(machine, warp, o, lane, *cta, pieces, {true, false, object->agent, object->agent, time}))
      return Outcome::Failed;
    std::vector<std::byte> value(bytes);
    for (uint32_t i = 0; i < o.count; ++i) {
      const Slot slot = machine.program.lists[o.target + i];
      const void *from = o.bytes == 8 ? static_cast<const void *>(warp.source<uint64_t>(slot) + lane)
                                      : warp.source<uint32_t>(slot) + lane;
      std::memcpy(value.data() + i * o.bytes, from, o.bytes);
    }
    machine.defer(warp, [&machine, &warp, &o, cta, object, address, lane, time, value = std::move(value)] {
      const uint64_t offset = address - firstSharedAddress;
      std::memcpy(cta->shared.data() + offset, value.data(), value.size());
      cta->sharedWritten.add(offset, value.size());
      object->bytes -= static_cast<int64_t>(value.size());
      if (machine.races)
        object->given.add(object->agent, 1, time);
      if (const std::string wrong = advance(*object); !wrong.empty())
        machine.fail(warp, o, uint32_t(1) << lane, wrong);
    });
  }
  machine.quiet = 0;
  return Outcome::Next;
}

void decodeFetch(Decoder &d) {
  const int level = d.acceptOneOf({"ca", "cg"});
  const bool isKnown = d.acceptOneOf({"shared", "shared::cta"}) >= 0 && d.accept("global") && level >= 0;
  const bool hasPolicy = d.accept("L2::cache_hint");
  d.acceptOneOf({"L2::64B", "L2::128B", "L2::256B"});
  d.expectOperands(3 + hasPolicy, 4 + hasPolicy);
  if (!isKnown || d.hasFailed())
    return decodeForm(d, nullptr, {});
  Operation &made = d.operation();
  made.window = Window::Generic;
  made.first = d.addAddress(d.operandAt(0));
  d.addAddress(d.operandAt(1));
  const uint64_t bytes = d.constant(d.operandAt(2), "the number of bytes");
  if (bytes != 16 && (level == 1 || (bytes != 4 && bytes != 8)))
    return d.fail("'" + d.instruction().spelling() + "' cannot copy " + std::to_string(bytes) + " bytes");
  made.count = static_cast<uint8_t>(bytes);
  if (d.operandCount() == size_t(4 + hasPolicy)) {
    const Operand &fourth = d.operandAt(3);
    if (fourth.kind == Operand::Kind::Register && d.typeOfRegister(fourth) == Type::Pred) {
      made.sources[1] = d.source(3, Type::Pred);
      made.isSigned = fourth.isNegated;
    } else {
      made.sources[0] = d.source(3, Type::B32);
    }
  }
  if (hasPolicy)
    d.source(d.operandCount() - 1, Type::B64);
  made.run = fetch;
}

} // namespace

void decodeAsyncCopy(Decoder &d) {
  Operation &made = d.operation();
  if (d.accept("commit_group")) {
    d.expectOperands(0, 0);
    made.run = commit;
  } else if (d.accept("wait_group")) {
    d.expectOperands(1, 1);
    made.immediate = d.constant(d.operandAt(0), "the number of groups");
    made.run = waitForGroups;
  } else if (d.accept("wait_all")) {
    d.expectOperands(0, 0);
    made.isSigned = true;
    made.run = waitForGroups;
  } else if (d.accept("mbarrier")) {
    if (!d.accept("arrive"))
      return decodeForm(d, nullptr, {});
    made.isSigned = d.accept("noinc");
    d.acceptOneOf({"shared", "shared::cta"});
    d.expectOperands(1, 1);
    if (!d.accept("b64") || d.hasFailed())
      return decodeForm(d, nullptr, {});
    made.first = d.addAddress(d.operandAt(0));
    made.run = arrive;
  } else {
    decodeFetch(d);
  }
}

/// st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [address], {..}, [mbarrier]; behind its first modifier.
void decodeAsyncStore(Decoder &d) {
  Operation &made = d.operation();
  d.accept("weak");
  d.accept("shared::cluster");
  const bool isKnown = d.accept("mbarrier::complete_tx::bytes");
  const int vector = d.acceptOneOf({"v2", "v4"});
  const Type type = d.takeType();
  d.expectOperands(3, 3);
  if (!isKnown || d.hasFailed() || bitsOf(type) < 32 || kindOf(type) == TypeKind::Packed)
    return decodeForm(d, nullptr, {});
  const Operand &value = d.operandAt(1);
  const bool isVector = value.kind == Operand::Kind::Vector;
  made.count = static_cast<uint8_t>(vector < 0 ? 1 : 2 << vector);
  made.bytes = static_cast<uint8_t>(bytesOf(type));
  if (isVector != (vector >= 0) || (isVector && value.parts.size() != made.count))
    return d.fail("'" + d.instruction().spelling() + "' stores " + std::to_string(made.count) + " values");
  std::vector<Slot> slots;
  for (size_t i = 0; i < made.count; ++i)
    slots.push_back(d.sourceOf(isVector ? value.parts[i] : value, type));
  made.target = d.addList(slots);
  made.first = d.addAddress(d.operandAt(0));
  d.addAddress(d.operandAt(2));
  made.run = storeAsync;
}

} // namespace k2c::ptx
