//===- MBarriers.cpp - Barriers in shared memory --------------------------===//
//
// PTX ISA, mbarrier, mapa: mbarrier.init, inval, arrive, expect_tx, complete_tx, test_wait, try_wait; mapa. What
// an object holds is kept beside shared memory, whose bytes there have no meaning. A phase is complete when nobody is
// missing and no byte; who waits for it then knows what those knew who arrived.
//
//===----------------------------------------------------------------------===//
#include "MBarriers.h"
#include "Integers.h"
#include "Races.h"

#include <algorithm>
#include <optional>

namespace k2c::ptx {

namespace {

constexpr uint32_t objectBytes = 8;
constexpr int64_t maxCount = (1 << 20) - 1; ///< of arrivals, and of bytes

Outcome init(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    uint64_t address = addressOf(warp, o, lane);
    const uint32_t count = warp.source<uint32_t>(o.sources[1])[lane];
    uint64_t own = address;
    if (const Cta *found = machine.sharedAt(warp, own); found && found->mbarriers.count(own))
      return machine.fail(warp, o, uint32_t(1) << lane, "there is an mbarrier at this address already",
                          "use mbarrier.inval before");
    if (!machine.reach(warp, o, address, lane, objectBytes, Access::Write))
      return Outcome::Failed;
    Cta &cta = *machine.sharedAt(warp, address);
    if (count == 0 || count > maxCount)
      return machine.fail(warp, o, uint32_t(1) << lane, "an mbarrier of " + std::to_string(count) + " arrivals",
                          "give from 1 to " + std::to_string(maxCount));
    MBarrier &made = cta.mbarriers[address];
    made.expected = count;
    made.pending = count;
    if (machine.races) {
      made.agent = machine.races->addAgent(warp);
      made.object = machine.races->addAgent(warp);
      machine.races->make(warp, lane, made.object);
    }
  }
  machine.quiet = 0;
  return Outcome::Next;
}

Outcome invalidate(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    MBarrier *object = mbarrierAt(machine, warp, o, addressOf(warp, o, lane), lane);
    if (!object)
      return Outcome::Failed;
    if (object->pending != object->expected || object->bytes != 0)
      return machine.fail(warp, o, uint32_t(1) << lane, "its phase waits for arrivals or bytes", "wait for it before");
    uint64_t address = addressOf(warp, o, lane);
    machine.sharedAt(warp, address)->mbarriers.erase(address);
  }
  return Outcome::Next;
}

/// What an arrival is, in Operation::target.
enum Arrival : uint32_t { Arrives = 1, ExpectsBytes = 2, Drops = 4, CompletesBytes = 8 };

/// An arrival at an mbarrier of another CTA whose scope does not hold that orders reads before writes, and copies
/// before copies, as published kernels rely on, and no more.
void give(Races &races, Warp &warp, const Operation &o, uint32_t one, bool isFar, MBarrier &object) {
  Knowledge given;
  if (o.strength == Strength::Relaxed)
    races.releaseFenced(warp, one, isFar ? std::max(o.scope, Scope::Cluster) : o.scope, given);
  else
    races.release(warp, one, given);
  if (!isFar)
    return object.given.join(given);
  if (o.strength == Strength::Relaxed || o.scope != Scope::Cta)
    return object.givenFar.join(given);
  Knowledge reads;
  reads.reads = given.reads;
  object.given.join(reads);
}

/// sources: address, count of arrivals (or noSlot: 1), bytes; destination: the phase that it arrives in.
Outcome arrive(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const uint32_t one = uint32_t(1) << lane;
    MBarrier *object = mbarrierAt(machine, warp, o, addressOf(warp, o, lane), lane);
    if (!object)
      return Outcome::Failed;
    if (o.destinations[0] != noSlot)
      warp.destination<uint64_t>(o.destinations[0])[lane] = object->phase;
    const int64_t bytes = o.sources[2] == noSlot ? 0 : warp.source<uint32_t>(o.sources[2])[lane];
    if (o.target & ExpectsBytes)
      object->bytes += bytes;
    if (o.target & CompletesBytes)
      object->bytes -= bytes;
    if (machine.races && (o.target & Arrives)) {
      uint64_t address = addressOf(warp, o, lane);
      give(*machine.races, warp, o, one, machine.sharedAt(warp, address) != warp.cta, *object);
    }
    const int64_t count = !(o.target & Arrives)    ? 0
                          : o.sources[1] == noSlot ? 1
                                                   : warp.source<uint32_t>(o.sources[1])[lane];
    object->pending -= count;
    if (o.target & Drops)
      object->expected -= static_cast<uint32_t>(count);
    if (const std::string wrong = advance(*object); !wrong.empty())
      return machine.fail(warp, o, one, wrong);
  }
  machine.quiet = 0;
  return Outcome::Next;
}

/// What a wait is, in Operation::target.
enum Wait : uint32_t { ByParity = 1, MayBlock = 2 };

void take(Races &races, Warp &warp, const Operation &o, uint32_t one, const MBarrier &object) {
  if (o.strength == Strength::Relaxed) {
    races.acquireLater(warp, one, Scope::Cta, object.passed);
    return races.acquireLater(warp, one, Scope::Cluster, object.passedFar);
  }
  races.acquire(warp, one, object.passed);
  if (o.scope != Scope::Cta)
    return races.acquire(warp, one, object.passedFar);
  Knowledge reads;
  reads.reads = object.passedFar.reads;
  races.acquire(warp, one, reads);
}

/// sources: address, phase or parity; destination: whether it is complete. A wait that may block does, now and then
/// not, as the ISA allows; a lane whose phase is not complete holds all.
Outcome wait(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  Split &at = machine.split(warp);
  std::optional<bool> mayGoOn; // without the phase
  uint32_t complete = 0;
  uint64_t awaited = 0, before = 0; // the address of the lane before
  MBarrier *object = nullptr;
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const uint64_t address = addressOf(warp, o, lane);
    if (!object || address != before || machine.races) // which each lane has to know of
      object = mbarrierAt(machine, warp, o, address, lane);
    if (!object)
      return Outcome::Failed;
    before = address;
    awaited = object->phase;
    bool isComplete = false;
    if (o.target & ByParity) {
      const uint32_t parity = warp.source<uint32_t>(o.sources[1])[lane];
      if (parity > 1)
        return machine.fail(warp, o, uint32_t(1) << lane, "a parity of " + std::to_string(parity), "give 0 or 1");
      isComplete = (object->phase & 1) != parity;
    } else {
      const uint64_t phase = warp.source<uint64_t>(o.sources[1])[lane];
      if (phase > object->phase || phase + 1 < object->phase)
        return machine.fail(warp, o, uint32_t(1) << lane,
                            "it waits for phase " + std::to_string(phase) + ", and phase " +
                                std::to_string(object->phase) + " is the current one",
                            "wait for that or the one before");
      isComplete = phase < object->phase;
    }
    if (at.awaited && object->phase > *at.awaited + 1)
      return machine.fail(warp, o, uint32_t(1) << lane,
                          "it waits for phase " + std::to_string(*at.awaited) + ", and phase " +
                              std::to_string(object->phase) + " has begun: by its parity it cannot tell",
                          "let who arrives wait for who waits");
    isComplete |= at.awaited && object->phase > *at.awaited;
    if (!isComplete && (o.target & MayBlock) && !mayGoOn)
      mayGoOn = machine.random() % 16 == 0;
    if (!mayGoOn.value_or(true) && !machine.races)
      break; // whatever the other lanes would find
    complete |= uint32_t(isComplete) << lane;
    if (isComplete && machine.races)
      take(*machine.races, warp, o, uint32_t(1) << lane, *object);
  }
  if (!mayGoOn.value_or(true)) {
    at.awaited = awaited;
    return Outcome::Wait;
  }
  at.awaited.reset();
  warp.setPredicate(o.destinations[0], active, complete);
  return Outcome::Next;
}

/// The address in another CTA of the cluster: sources: address, rank.
template <class T> Outcome mapa(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  const T *a = warp.source<T>(o.sources[0]);
  const uint32_t *rank = warp.source<uint32_t>(o.sources[1]);
  T *d = warp.destination<T>(o.destinations[0]);
  const size_t ctas = warp.cta->cluster->ctas.size();
  uint32_t strangers = 0;
  forLanes(active, [&](int lane) {
    strangers |= uint32_t(rank[lane] >= ctas) << lane;
    const T offset = a[lane] & ((T(1) << sharedAddressBits) - 1);
    d[lane] = static_cast<T>((a[lane] & static_cast<T>(~windowMask)) | T(rank[lane] + 1) << sharedAddressBits | offset);
  });
  if (strangers != 0)
    return machine.fail(warp, o, strangers, "it names a CTA behind the " + std::to_string(ctas) + " of the cluster");
  return Outcome::Next;
}

void decodeSemantics(Decoder &d, Strength strength) {
  Operation &made = d.operation();
  made.strength = strength;
  made.scope = Scope::Cta;
  if (d.accept("relaxed"))
    made.strength = Strength::Relaxed;
  else
    d.accept(strength == Strength::Acquire ? "acquire" : "release");
  for (const std::string_view scope : {"cta", "cluster"})
    if (d.nextModifier() == scope)
      made.scope = takeScope(d);
}

void takeSpace(Decoder &d) {
  d.operation().window =
      d.acceptOneOf({"shared", "shared::cta", "shared::cluster"}) >= 0 ? Window::Shared : Window::Generic;
}

void decodeArrive(Decoder &d, uint32_t kind) {
  Operation &made = d.operation();
  if ((kind & Arrives) && d.accept("expect_tx"))
    kind |= ExpectsBytes;
  made.target = kind;
  decodeSemantics(d, (kind & Arrives) ? Strength::Release : Strength::Relaxed);
  takeSpace(d);
  if (!d.accept("b64"))
    return decodeForm(d, nullptr, {});
  const bool hasBytes = (kind & (ExpectsBytes | CompletesBytes)) != 0;
  const size_t state = d.operandCount() > 0 && d.operandAt(0).kind != Operand::Kind::Address ? 1 : 0;
  d.expectOperands(state + 1 + hasBytes, state + 2);
  if (d.hasFailed())
    return;
  made.run = arrive;
  if (state == 1)
    made.destinations[0] = d.destinationOrSink(d.operandAt(0), Type::B64);
  d.address(d.operandAt(state), 0, made.window);
  if (d.operandCount() == state + 2)
    made.sources[hasBytes ? 2 : 1] = d.source(state + 1, Type::B32);
}

void decodeWait(Decoder &d, uint32_t kind) {
  Operation &made = d.operation();
  if (d.accept("parity"))
    kind |= ByParity;
  decodeSemantics(d, Strength::Acquire);
  takeSpace(d);
  if (!d.accept("b64"))
    return decodeForm(d, nullptr, {});
  made.target = kind;
  d.expectOperands(3, (kind & MayBlock) ? 4 : 3);
  if (d.hasFailed())
    return;
  made.run = wait;
  made.sources[1] = d.source(2, (kind & ByParity) ? Type::B32 : Type::B64);
  if (d.operandCount() == 4) // how long it may block
    d.source(3, Type::B32);
  d.address(d.operandAt(1), 0, made.window);
  made.destinations[0] = d.destination(0, Type::Pred);
}

void decodeObject(Decoder &d, bool isInit) {
  takeSpace(d);
  if (!d.accept("b64"))
    return decodeForm(d, nullptr, {});
  d.expectOperands(isInit ? 2 : 1, isInit ? 2 : 1);
  if (d.hasFailed())
    return;
  Operation &made = d.operation();
  made.run = isInit ? init : invalidate;
  d.address(d.operandAt(0), 0, made.window);
  if (isInit)
    made.sources[1] = d.source(1, Type::B32);
}

void decodeMBarrier(Decoder &d) {
  if (d.accept("init"))
    return decodeObject(d, true);
  if (d.accept("inval"))
    return decodeObject(d, false);
  if (d.accept("arrive"))
    return decodeArrive(d, Arrives);
  if (d.accept("arrive_drop"))
    return decodeArrive(d, Arrives | Drops);
  if (d.accept("expect_tx"))
    return decodeArrive(d, ExpectsBytes);
  if (d.accept("complete_tx"))
    return decodeArrive(d, CompletesBytes);
  if (d.accept("test_wait"))
    return decodeWait(d, 0);
  if (d.accept("try_wait"))
    return decodeWait(d, MayBlock);
  decodeForm(d, nullptr, {});
}

} // namespace

static MBarrier *find(Machine &machine, Warp &warp, const Operation &operation, Cta *cta, uint64_t address, int lane,
                      bool isProxy) {
  const auto found = cta ? cta->mbarriers.find(address) : std::map<uint64_t, MBarrier>::iterator();
  if (!cta || found == cta->mbarriers.end()) {
    machine.fail(warp, operation, uint32_t(1) << lane,
                 "there is no mbarrier at shared address " + std::to_string(address), "use mbarrier.init before");
    return nullptr;
  }
  if (machine.races && !machine.races->isMade(warp, lane, found->second.object, isProxy)) {
    machine.fail(warp, operation, uint32_t(1) << lane,
                 "it uses the mbarrier at shared address " + std::to_string(address) +
                     ", and nothing orders it with its mbarrier.init",
                 isProxy ? "let fence.mbarrier_init or fence.proxy.async, and a barrier, be between them"
                         : "let a barrier be between them");
    return nullptr;
  }
  return &found->second;
}

MBarrier *mbarrierAt(Machine &machine, Warp &warp, const Operation &operation, uint64_t address, int lane) {
  Cta *cta = machine.sharedAt(warp, address);
  return find(machine, warp, operation, cta, address, lane, false);
}

MBarrier *mbarrierOf(Machine &machine, Warp &warp, const Operation &operation, Cta &cta, uint64_t address, int lane) {
  return find(machine, warp, operation, &cta, address, lane, true);
}

std::string advance(MBarrier &object) {
  if (object.pending < 0)
    return "more have arrived at an mbarrier than the " + std::to_string(object.expected) + " of a phase";
  if (object.bytes > maxCount || object.bytes < -int64_t(maxCount))
    return "an mbarrier waits for " + std::to_string(object.bytes) + " bytes, and can count up to " +
           std::to_string(maxCount);
  if (object.pending != 0 || object.bytes != 0)
    return "";
  ++object.phase;
  object.pending = object.expected;
  object.passed.join(object.given);
  object.given = {};
  object.passedFar.join(object.givenFar);
  object.givenFar = {};
  return "";
}

void addMBarriers(Opcodes &opcodes) {
  opcodes["mbarrier"] = decodeMBarrier;
  opcodes["mapa"] = [](Decoder &d) {
    const bool isOffset = d.acceptOneOf({"shared::cluster", "shared"}) >= 0;
    const Type type = d.takeType();
    const bool isKnown = type == Type::U64 || (type == Type::U32 && isOffset);
    decodeForm(d, !isKnown ? nullptr : type == Type::U64 ? mapa<uint64_t> : mapa<uint32_t>, {type, type, Type::U32});
  };
}

} // namespace k2c::ptx
