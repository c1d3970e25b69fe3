//===- Control.cpp - Branches, ends and barriers --------------------------===//
//
// PTX ISA, Control Flow, Parallel Synchronization and Communication Instructions: bra, ret, exit, trap; bar, barrier,
// bar.warp, barrier.cluster. Who waits at a barrier has arrived, and asks again until it has been passed.
//
//===----------------------------------------------------------------------===//
#include "Integers.h"
#include "Races.h"

#include <algorithm>
#include <utility>

namespace k2c::ptx {

namespace {

Outcome branch(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  Split &at = machine.split(warp);
  if (const uint32_t rest = at.lanes & ~active; rest != 0) {
    ++machine.counts.divergentBranches;
    at.lanes = rest;
    ++at.pc;
    Split taken;
    taken.pc = o.target;
    taken.lanes = active;
    warp.splits.push_back(taken);
    return Outcome::Jumped;
  }
  at.pc = o.target;
  return Outcome::Jumped;
}

/// brx.idx: sources: which; `immediate` targets in `lists`.
Outcome branchByTable(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  const uint32_t *which = warp.source<uint32_t>(o.sources[0]);
  uint32_t strangers = 0;
  forLanes(active, [&](int lane) { strangers |= uint32_t(which[lane] >= o.immediate) << lane; });
  if (strangers != 0)
    return machine.fail(warp, o, strangers, "it takes a branch behind the " + std::to_string(o.immediate) + " it has");
  const auto targetOf = [&](int lane) { return machine.program.lists[o.first + which[lane]]; };
  const uint32_t rest = machine.split(warp).lanes & ~active;
  Split taken;
  for (uint32_t left = active; left != 0; left &= ~taken.lanes) {
    taken.pc = targetOf(__builtin_ctz(left));
    taken.lanes = 0;
    forLanes(left, [&](int lane) { taken.lanes |= uint32_t(targetOf(lane) == taken.pc) << lane; });
    warp.splits.push_back(taken);
  }
  Split &at = machine.split(warp);
  at.lanes = rest;
  ++at.pc;
  if (rest == 0)
    warp.splits.erase(warp.splits.begin() + static_cast<ptrdiff_t>(warp.current));
  return Outcome::Jumped;
}

void decodeTable(Decoder &d) {
  const bool isIndex = d.accept("idx");
  d.accept("uni");
  d.expectOperands(2, 2);
  if (d.hasFailed())
    return;
  const Instruction *table = d.instructionAt(d.operandAt(1));
  if (!isIndex || !table || table->opcode != "branchtargets")
    return d.fail("'" + d.instruction().spelling() + "' needs a label of .branchtargets");
  std::vector<Slot> targets;
  for (const Operand &target : table->operands)
    targets.push_back(target.index);
  Operation &made = d.operation();
  made.first = d.addList(targets);
  made.immediate = targets.size();
  made.sources[0] = d.source(0, Type::B32);
  made.flow = Flow::Table;
  made.run = branchByTable;
}

Outcome endLanes(Machine &machine, Warp &warp, const Operation &, uint32_t active) {
  Split &at = machine.split(warp);
  if (at.lanes != active)
    ++at.pc; // of those that go on
  machine.end(warp, active);
  return Outcome::Jumped;
}

Outcome trap(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  return machine.fail(warp, o, active, "the kernel traps");
}

Outcome nothing(Machine &, Warp &, const Operation &, uint32_t) { return Outcome::Next; }

uint32_t liveThreads(const Cta &cta) {
  uint32_t threads = 0;
  for (const Warp &warp : cta.warps)
    threads += static_cast<uint32_t>(__builtin_popcount(warp.live));
  return threads;
}

/// Whether all have arrived whom `barrier` waits for; it is passed then. `all`: who run.
bool isPassed(Barrier &barrier, uint32_t all) {
  const uint32_t expected = barrier.expected != 0 ? barrier.expected : all;
  if (barrier.arrived < expected)
    return false;
  barrier.arrived = barrier.expected = 0;
  barrier.heldAtLast = std::exchange(barrier.holds, 0);
  barrier.askedAtLast = std::exchange(barrier.asked, 0);
  ++barrier.generation;
  barrier.passed = std::move(barrier.given);
  barrier.given = {};
  return true;
}

uint32_t sameInAll(Machine &machine, Warp &warp, const Operation &o, uint32_t active, Slot slot, bool &isSame) {
  const uint32_t *lanes = warp.source<uint32_t>(slot), value = lanes[__builtin_ctz(active)];
  forLanes(active, [&](int lane) { isSame &= lanes[lane] == value; });
  if (!isSame)
    machine.fail(warp, o, active, "its lanes name different barriers or numbers of threads");
  return value;
}

void giveTo(Barrier &barrier, Machine &machine, Warp &warp, uint32_t lanes) {
  if (machine.races)
    machine.races->release(warp, lanes, barrier.given);
}

Outcome leave(const Barrier &barrier, Machine &machine, Warp &warp, uint32_t lanes) {
  if (machine.races)
    machine.races->acquire(warp, lanes, barrier.passed);
  machine.quiet = 0;
  return Outcome::Next;
}

/// What a barrier does beside, in Operation::immediate.
enum Beside : uint64_t { Nothing, OnlyArrives, Counts, Conjunction, Disjunction };

/// bar.red: what the predicates of all threads give.
void reduce(const Barrier &barrier, Warp &warp, const Operation &o, uint32_t active) {
  if (o.immediate == Counts) {
    uint32_t *d = warp.destination<uint32_t>(o.destinations[0]);
    forLanes(active, [&](int lane) { d[lane] = barrier.heldAtLast; });
  } else if (o.immediate > Counts) {
    const bool holds = o.immediate == Conjunction ? barrier.heldAtLast == barrier.askedAtLast : barrier.heldAtLast != 0;
    warp.setPredicate(o.destinations[0], active, holds ? allLanes : 0);
  }
}

/// sources: barrier, threads (or none: all that run), the predicate of bar.red, which `isSigned` negates.
Outcome barrier(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  Cta &cta = *warp.cta;
  Split &at = machine.split(warp);
  if (at.barrier != Split::notWaiting) {
    Barrier &own = cta.barrier[at.barrier];
    if (own.generation == at.generation && !isPassed(own, liveThreads(cta)))
      return Outcome::Wait;
    at.barrier = Split::notWaiting;
    reduce(own, warp, o, active);
    return leave(own, machine, warp, active);
  }
  bool isSame = true;
  const uint32_t number = sameInAll(machine, warp, o, active, o.sources[0], isSame);
  const uint32_t expected = o.sources[1] == noSlot ? 0 : sameInAll(machine, warp, o, active, o.sources[1], isSame);
  if (!isSame)
    return Outcome::Failed;
  if (number >= Cta::barriers)
    return machine.fail(warp, o, active, "barrier " + std::to_string(number) + " of " + std::to_string(Cta::barriers));
  if (o.sources[1] != noSlot && (expected == 0 || expected % warpLanes != 0))
    return machine.fail(warp, o, active, "a barrier of " + std::to_string(expected) + " threads",
                        "give a multiple of " + std::to_string(warpLanes));
  Barrier &own = cta.barrier[number];
  if (own.arrived != 0 && own.expected != expected)
    return machine.fail(warp, o, active,
                        "barrier " + std::to_string(number) + " is of " + std::to_string(expected) +
                            " threads here, and of " + std::to_string(own.expected) +
                            " threads for who has arrived (0: all)",
                        "let all who meet there name the same number");
  own.expected = expected;
  // A warp counts whole where a number is named, as its threads that have ended cannot arrive.
  own.arrived += static_cast<uint32_t>(expected != 0 && o.isAligned ? warpLanes : __builtin_popcount(active));
  if (expected != 0 && own.arrived > expected)
    return machine.fail(warp, o, active,
                        "barrier " + std::to_string(number) + " is of " + std::to_string(expected) + " threads, and " +
                            std::to_string(own.arrived) + " have arrived");
  if (o.sources[2] != noSlot) {
    const uint32_t held = warp.predicate(o.sources[2]);
    own.holds += static_cast<uint32_t>(__builtin_popcount((o.isSigned ? ~held : held) & active));
    own.asked += static_cast<uint32_t>(__builtin_popcount(active));
  }
  giveTo(own, machine, warp, active);
  at.generation = own.generation;
  machine.quiet = 0;
  const bool isLast = isPassed(own, liveThreads(cta));
  if (o.immediate == OnlyArrives)
    return Outcome::Next;
  if (isLast) {
    reduce(own, warp, o, active);
    return leave(own, machine, warp, active);
  }
  at.barrier = static_cast<int>(number);
  return Outcome::Wait;
}

/// Lanes of a mask meet. They do where their paths do: who is at another place is waited for.
Outcome warpBarrier(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  const Outcome met = membersAreHere(machine, warp, o, active, o.sources[0]);
  if (met == Outcome::Next && machine.races)
    machine.races->meet(warp, active);
  return met;
}

Outcome arriveInCluster(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  Cluster &cluster = *warp.cta->cluster;
  if ((warp.arrivedInCluster & active) != 0)
    return machine.fail(warp, o, warp.arrivedInCluster & active, "they have arrived at the cluster's barrier before",
                        "wait in between");
  warp.arrivedInCluster |= active;
  warp.clusterGeneration = cluster.barrier.generation;
  if (o.strength == Strength::Release)
    giveTo(cluster.barrier, machine, warp, active);
  else if (machine.races)
    machine.races->releaseFenced(warp, active, Scope::Cluster, cluster.barrier.given);
  cluster.barrier.arrived += static_cast<uint32_t>(__builtin_popcount(active));
  machine.quiet = 0;
  return Outcome::Next;
}

Outcome waitInCluster(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  Cluster &cluster = *warp.cta->cluster;
  if ((active & ~warp.arrivedInCluster) != 0)
    return machine.fail(warp, o, active & ~warp.arrivedInCluster, "they have not arrived at the cluster's barrier",
                        "arrive before");
  uint32_t threads = 0;
  for (const Cta &cta : cluster.ctas)
    threads += liveThreads(cta);
  if (warp.clusterGeneration == cluster.barrier.generation && !isPassed(cluster.barrier, threads))
    return Outcome::Wait;
  warp.arrivedInCluster &= ~active;
  warp.hasMetCluster = true;
  return leave(cluster.barrier, machine, warp, active);
}

void decodeClusterBarrier(Decoder &d) {
  const bool isWait = d.accept("wait");
  if (!isWait && !d.accept("arrive"))
    return decodeForm(d, nullptr, {});
  Operation &made = d.operation();
  made.strength = isWait ? Strength::Acquire : Strength::Release;
  made.scope = Scope::Cluster;
  if (!isWait && d.accept("relaxed"))
    made.strength = Strength::Relaxed;
  else
    d.accept(isWait ? "acquire" : "release");
  made.isAligned = d.accept("aligned");
  d.expectOperands(0, 0);
  made.run = isWait ? waitInCluster : arriveInCluster;
}

/// bar.red.popc.u32 d, barrier, threads, predicate; .and.pred and .or.pred; behind .red.
void decodeBarrierReduction(Decoder &d, bool isAligned) {
  Operation &made = d.operation();
  const int kind = d.acceptOneOf({"popc", "and", "or"});
  made.isAligned = d.accept("aligned") || isAligned;
  const Type type = d.takeType();
  d.expectOperands(3, 4);
  if (kind < 0 || type != (kind == 0 ? Type::U32 : Type::Pred) || d.hasFailed())
    return decodeForm(d, nullptr, {});
  made.immediate = Counts + static_cast<uint64_t>(kind);
  const size_t last = d.operandCount() - 1;
  made.sources[0] = d.source(1, Type::B32);
  if (last == 3)
    made.sources[1] = d.source(2, Type::B32);
  made.sources[2] = d.source(last, Type::Pred);
  made.isSigned = d.operandAt(last).isNegated;
  made.destinations[0] = d.destination(0, type);
  made.run = barrier;
}

/// bar is barrier.aligned.
void decodeBarrier(Decoder &d, bool isAligned) {
  Operation &made = d.operation();
  if (d.accept("warp")) {
    if (isAligned && d.accept("sync")) {
      d.expectOperands(1, 1);
      made.sources[0] = d.source(0, Type::B32);
      made.run = warpBarrier;
      return;
    }
    return decodeForm(d, nullptr, {});
  }
  if (!isAligned && d.accept("cluster"))
    return decodeClusterBarrier(d);
  d.accept("cta");
  if (d.accept("red"))
    return decodeBarrierReduction(d, isAligned);
  const int what = d.acceptOneOf({"sync", "arrive"});
  if (what < 0)
    return decodeForm(d, nullptr, {});
  made.isAligned = d.accept("aligned") || isAligned;
  made.immediate = static_cast<uint64_t>(what);
  d.expectOperands(1 + static_cast<size_t>(what), 2);
  made.sources[0] = d.source(0, Type::B32);
  if (d.operandCount() == 2)
    made.sources[1] = d.source(1, Type::B32);
  made.run = barrier;
}

} // namespace

Outcome membersAreHere(Machine &machine, Warp &warp, const Operation &o, uint32_t active, Slot mask) {
  const uint32_t *masks = warp.source<uint32_t>(mask), members = masks[__builtin_ctz(active)];
  uint32_t others = 0; ///< lanes of other masks meet apart
  forLanes(active, [&](int lane) { others |= uint32_t(masks[lane] != members) << lane; });
  if ((active & ~others & ~members) != 0)
    return machine.fail(warp, o, active & ~others, "they are no members of its mask",
                        "let all who meet name themselves");
  if (others != 0) {
    Split &at = machine.split(warp);
    Split apart = at;
    apart.lanes &= others;
    at.lanes &= ~others;
    warp.splits.push_back(apart);
    return Outcome::Wait;
  }
  return (members & warp.live & ~active) == 0 ? Outcome::Next : Outcome::Wait;
}

void addControl(Opcodes &opcodes) {
  opcodes["bra"] = [](Decoder &d) {
    d.accept("uni");
    d.expectOperands(1, 1);
    const Operand &to = d.operandAt(0);
    if (to.kind != Operand::Kind::Label)
      return d.fail("'" + d.instruction().spelling() + "' needs a label");
    d.operation().run = branch;
    d.operation().flow = Flow::Branch;
    d.operation().target = to.index;
  };
  opcodes["brx"] = decodeTable;
  opcodes["branchtargets"] = [](Decoder &d) {
    for (size_t i = 0; i < d.operandCount(); ++i)
      if (d.operandAt(i).kind != Operand::Kind::Label)
        return d.fail("'.branchtargets' needs labels");
    d.operation().run = nothing;
  };
  for (const char *name : {"ret", "exit"})
    opcodes[name] = [](Decoder &d) {
      d.accept("uni");
      d.expectOperands(0, 0);
      d.operation().run = endLanes;
      d.operation().flow = Flow::End;
    };
  opcodes["trap"] = [](Decoder &d) {
    d.expectOperands(0, 0);
    d.operation().run = trap;
  };
  opcodes["bar"] = [](Decoder &d) { decodeBarrier(d, true); };
  opcodes["barrier"] = [](Decoder &d) { decodeBarrier(d, false); };
  opcodes["nanosleep"] = [](Decoder &d) {
    if (d.takeType() != Type::U32)
      return decodeForm(d, nullptr, {});
    d.expectOperands(1, 1);
    d.operation().sources[0] = d.source(0, Type::U32);
    d.operation().run = nothing;
  };
}

} // namespace k2c::ptx
