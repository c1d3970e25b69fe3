//===- Run.cpp - Which warp runs when -------------------------------------===//
//
// As many CTAs as allowed are resident. A warp that is drawn runs for a drawn number of instructions, or until it has
// to wait. Lanes that branch apart become splits; the one that is furthest behind runs, so that lanes meet again where
// their paths do, but now and then another, so that lanes which wait for others of their warp do not wait forever.
// (PTX ISA, independent thread scheduling)
//
//===----------------------------------------------------------------------===//
#include "Races.h"
#include "Special.h"
#include "base/Utf8.h"

#include <algorithm>

namespace k2c::ptx {

void Machine::startWarp(Cta &cta, Warp &warp) {
  const uint32_t first = warp.index * warpLanes, count = std::min<uint32_t>(warpLanes, threadsOfCta - first);
  warp.cta = &cta;
  warp.started = warp.live = count == warpLanes ? allLanes : (uint32_t(1) << count) - 1;
  warp.splits.assign(1, Split());
  warp.splits[0].lanes = warp.live;
  const size_t words = (program.registerBytes + 7) / 8;
  warp.registers.reset(new uint64_t[words]);
  std::fill_n(warp.registers.get(), words, 0xdeadbeefdeadbeefu); // what is undefined has no value that may be hoped for
  warp.bases[0] = reinterpret_cast<const std::byte *>(warp.registers.get());
  warp.bases[1] = reinterpret_cast<const std::byte *>(program.constants.data());
  if (races) {
    warp.clocks = std::make_unique<WarpClocks>();
    warp.clocks->number =
        static_cast<uint32_t>((cta.cluster->number * cta.cluster->ctas.size() + cta.rank) * warpsOfCta + warp.index);
  }
  warp.maxRegisters = launchedRegisters();
  warp.products.inFlight.assign(program.matrixSlots.size(), 0);
  warp.products.isTouched.assign(program.matrixSlots.size(), false);
  warp.defined.assign(program.tracked.size(), 0);
  warp.local.assign(program.localBytes * warpLanes, std::byte(0xcd));
  for (const auto &[special, slot] : program.specials)
    for (int lane = 0; lane < warpLanes; ++lane)
      warp.destination<uint32_t>(slot)[lane] = specialValue(special, warp, lane, launch, clusterShape);
}

/// Makes the CTAs of cluster `number` resident.
void Machine::start(uint64_t number) {
  Cluster &cluster = *resident.emplace_back(std::make_unique<Cluster>());
  cluster.number = number;
  cluster.ctas.resize(product(clusterShape));
  const uint64_t columns = launch.grid[0] / clusterShape[0], lines = launch.grid[1] / clusterShape[1];
  const Extent at{static_cast<uint32_t>(number % columns), static_cast<uint32_t>(number / columns % lines),
                  static_cast<uint32_t>(number / columns / lines)};
  for (uint32_t rank = 0; rank < cluster.ctas.size(); ++rank) {
    Cta &cta = cluster.ctas[rank];
    cta.cluster = &cluster;
    cta.rank = rank;
    cta.threads = threadsOfCta;
    const Extent within{rank % clusterShape[0], rank / clusterShape[0] % clusterShape[1],
                        rank / clusterShape[0] / clusterShape[1]};
    for (size_t axis = 0; axis < 3; ++axis)
      cta.id[axis] = at[axis] * clusterShape[axis] + within[axis];
    cta.shared.assign(program.sharedBytes + launch.sharedBytes, std::byte(0xcd));
    cta.sharedWritten = ByteSet(cta.shared.size());
    cta.warps.resize(warpsOfCta);
    cta.runningWarps = warpsOfCta;
    for (uint32_t i = 0; i < warpsOfCta; ++i) {
      cta.warps[i].index = i;
      startWarp(cta, cta.warps[i]);
      running.push_back(&cta.warps[i]);
    }
  }
  cluster.runningWarps = static_cast<uint32_t>(warpsOfCta * cluster.ctas.size());
}

void Machine::end(Warp &warp, uint32_t lanes) {
  warp.live &= ~lanes;
  if (races)
    races->release(warp, lanes, warp.cta->ended);
  Split &ended = split(warp);
  ended.lanes &= ~lanes;
  if (ended.lanes == 0)
    warp.splits.erase(warp.splits.begin() + static_cast<ptrdiff_t>(warp.current));
  quiet = 0;
}

/// Joins splits that have met; one that waits at a barrier has arrived there, and stays apart.
void Machine::merge(Warp &warp) {
  for (size_t i = 0; i < warp.splits.size(); ++i)
    for (size_t j = warp.splits.size(); j-- > i + 1;) {
      Split &one = warp.splits[i], &other = warp.splits[j];
      if (one.pc != other.pc || one.barrier != Split::notWaiting || other.barrier != Split::notWaiting)
        continue;
      one.lanes |= other.lanes;
      warp.splits.erase(warp.splits.begin() + static_cast<ptrdiff_t>(j));
    }
}

/// `lanes` read the guard, which comes first; those for which it holds, `active`, read the others.
bool Machine::checkDefined(Warp &warp, const Operation &operation, uint32_t lanes, uint32_t active) {
  for (uint32_t i = 0; i < operation.checkedCount; ++i) {
    const uint32_t number = program.lists[operation.checked + i];
    const uint32_t missing = (program.tracked[number] == operation.guard ? lanes : active) & ~warp.defined[number];
    if (missing == 0)
      continue;
    std::string name = "?";
    for (size_t r = 0; r < program.slotOfRegister.size(); ++r)
      if (program.slotOfRegister[r] == program.tracked[number])
        name = program.function.registers[r].name;
    fail(warp, operation, missing, "it reads register '" + shortened(name) + "', which was never written",
         "write it on every path");
    return false;
  }
  return true;
}

/// Registers of products that go on are left alone; those that are written need a fence.
bool Machine::checkTouched(Warp &warp, const Operation &operation, uint32_t lanes) {
  Products &products = warp.products;
  for (uint32_t i = 0; i < operation.readCount + operation.writtenCount; ++i) {
    const uint32_t number = program.lists[operation.touched + i];
    if (products.inFlight[number] != 0) {
      fail(warp, operation, lanes, "it touches a register of a wgmma that goes on",
           "let wgmma.wait_group be before it");
      return false;
    }
    if (i >= operation.readCount)
      products.isTouched[number] = true;
  }
  return true;
}

/// Runs the current split's next instruction; false: it waits, or the launch has ended.
bool Machine::step(Warp &warp) {
  Split &at = split(warp);
  const Operation &operation = program.code[at.pc];
  uint32_t active = at.lanes;
  if (operation.guard != noSlot) {
    const uint32_t guard = warp.predicate(operation.guard);
    active &= operation.isGuardNegated ? ~guard : guard;
  }
  if (operation.checkedCount != 0 && !checkDefined(warp, operation, at.lanes, active))
    return false;
  if (operation.isAligned && at.lanes != warp.live) // the others have to come here, too
    return false;
  if (operation.isAligned && active != 0 && active != at.lanes) {
    fail(warp, operation, at.lanes & ~active, "its guard does not hold for them, and does for others of the warp",
         "let all lanes of a warp execute it, or none");
    return false;
  }
  Outcome outcome = Outcome::Next;
  if (active != 0) {
    if (operation.readCount + operation.writtenCount != 0 && !checkTouched(warp, operation, active))
      return false;
    if (warp.clocks)
      ++warp.clocks->time;
    outcome = operation.run(*this, warp, operation, active);
    if (races && operation.strength != Strength::Weak)
      races->settle();
    if (outcome == Outcome::Wait || outcome == Outcome::Failed)
      return false;
    for (uint32_t i = 0; i < operation.markedCount; ++i)
      warp.defined[program.lists[operation.marked + i]] |= active;
  }
  ++counts.instructions;
  ++counts.byClass[operation.kind];
  counts.lanes += static_cast<uint64_t>(__builtin_popcount(active));
  ++quiet;
  if (outcome == Outcome::Next)
    ++warp.splits[warp.current].pc;
  if (warp.splits.size() > 1)
    merge(warp);
  return true;
}

/// Chooses the split that runs, among those that `warp.current` does not yet stand for.
bool Machine::pick(Warp &warp) {
  if (warp.splits.size() == 1) {
    warp.current = 0;
    return true;
  }
  warp.current = 0;
  if (random() % 8 == 0)
    warp.current = random() % warp.splits.size();
  else
    for (size_t i = 1; i < warp.splits.size(); ++i)
      if (warp.splits[i].pc < warp.splits[warp.current].pc)
        warp.current = i;
  return true;
}

/// Runs `warp` for a while; whether it has run at all.
bool Machine::runWarp(Warp &warp) {
  bool hasRun = false;
  for (uint64_t left = 1 + random() % 64; left > 0 && warp.live != 0; --left) {
    pick(warp);
    size_t tried = 0;
    while (!step(warp)) {
      if (finding || ++tried > warp.splits.size())
        return hasRun;
      warp.current = tried % warp.splits.size();
    }
    hasRun = true;
  }
  return hasRun;
}

void Machine::reportDeadlock(const std::string &what) {
  symptom = Symptom::Endless;
  std::string waiting;
  const Warp *first = nullptr;
  const Operation *at = nullptr;
  size_t listed = 0;
  for (const Warp *warp : running)
    for (const Split &split : warp->splits) {
      const Operation &operation = program.code[split.pc];
      if (!first) {
        first = warp;
        at = &operation;
      }
      if (++listed > 16)
        continue;
      waiting += (waiting.empty() ? "" : ", ") + text(warp->cta->id) + "." + std::to_string(warp->index) + " at line " +
                 std::to_string(operation.line);
      if (operation.isAligned && split.lanes != warp->live)
        waiting += " with some of its lanes, where all are needed";
    }
  if (listed > 16)
    waiting += " and " + std::to_string(listed - 16) + " more";
  fail(*first, *at, first->live, what + "; CTA and warp of who waits: " + waiting);
}

/// A warp has ended, and its cluster with the last of them.
void Machine::retire(size_t index) {
  Warp &ended = *running[index];
  Cta &cta = *ended.cta;
  Cluster *cluster = cta.cluster;
  const bool isLast = --cta.runningWarps == 0;
  for (const Warp &warp : cta.warps)
    if (isLast && warp.registerSteps != cta.registerSteps[warp.index / warpsOfGroup].size())
      fail(warp, program.code.back(), warp.started,
           "it has ended, and a warp of its warpgroup has used setmaxnreg without it",
           "let all warps of a warpgroup use it");
  if (isLast && races)
    if (const std::string other = races->strangerTo(ended, cta.shared.data(), cta.ended); !other.empty())
      failRace(ended, program.code.back(), ended.started, "its CTA ends", other, false);
  running[index] = running.back();
  running.pop_back();
  if (--cluster->runningWarps != 0)
    return;
  finishDeferred(cluster);
  if (races)
    for (const Cta &cta : cluster->ctas)
      races->forget(cta.shared.data());
  resident.erase(
      std::find_if(resident.begin(), resident.end(), [&](const auto &other) { return other.get() == cluster; }));
}

void Machine::defer(Warp &warp, std::function<void()> work) {
  deferred.push_back({warp.cta->cluster, std::move(work)});
  if (options.seed % 3 == 0) // as early as it may be
    finishDeferred(nullptr);
}

/// Does one of what was put off, if the seed has it done now; `isForced`: because nothing else can go on.
bool Machine::runDeferred(bool isForced) {
  const bool isLate = options.seed % 3 == 1; // as late as it may be
  if (deferred.empty() || (!isForced && (isLate || random() % 4 != 0)))
    return false;
  std::swap(deferred[random() % deferred.size()], deferred.back());
  const std::function<void()> work = std::move(deferred.back().work);
  deferred.pop_back();
  work();
  quiet = 0;
  return true;
}

/// Does all that was put off of `cluster`; null: of all.
void Machine::finishDeferred(const Cluster *cluster) {
  for (size_t i = 0; i < deferred.size();) {
    if (cluster && deferred[i].cluster != cluster) {
      ++i;
      continue;
    }
    const std::function<void()> work = std::move(deferred[i].work);
    deferred.erase(deferred.begin() + static_cast<ptrdiff_t>(i));
    work();
    i = 0;
  }
}

Expected<bool> Machine::goOn(uint64_t instructions) {
  if (!isPrepared && !prepare())
    return *finding;
  isPrepared = true;
  lastRange = nullptr; // what was there may be gone
  const uint64_t end = counts.instructions + std::min(instructions, ~counts.instructions);
  const uint64_t atATime = std::max<uint64_t>(1, options.residentCtas / product(clusterShape));
  while (!finding && counts.instructions < end) {
    while (resident.size() < atATime && nextCluster < clusterCount)
      start(nextCluster++);
    if (running.empty())
      return true;
    const size_t drawn = random() % running.size();
    size_t ran = drawn;
    bool hasRun = runWarp(*running[ran]);
    for (size_t i = 1; !hasRun && !finding && i < running.size(); ++i)
      hasRun = runWarp(*running[ran = (drawn + i) % running.size()]);
    constexpr uint64_t spinning = 4096; ///< instructions that change nothing: they wait for what was put off
    if (!finding && runDeferred(!hasRun || quiet > spinning))
      hasRun = true;
    if (finding)
      break;
    if (!hasRun)
      reportDeadlock("no warp can go on");
    else if (quiet > options.idleInstructions)
      reportDeadlock("no warp has written memory or passed a barrier for " + std::to_string(quiet) + " instructions");
    else if (counts.instructions > options.maxInstructions)
      reportDeadlock("the kernel has not ended after " + std::to_string(counts.instructions) + " instructions");
    if (!finding && running[ran]->live == 0)
      retire(ran);
  }
  if (finding)
    return *finding;
  return running.empty() && nextCluster == clusterCount;
}

Execution::Execution(const Kernel &kernel, const Launch &launch, GlobalMemory &memory, const Options &options)
    : launch(launch), options(options),
      machine(std::make_unique<Machine>(kernel.program(), this->launch, memory, this->options)) {}

Execution::~Execution() = default;

Expected<bool> Execution::goOn(uint64_t instructions) { return machine->goOn(instructions); }
const Counts &Execution::counts() const { return machine->counts; }
Symptom Execution::symptom() const { return machine->symptom; }

Expected<Counts> run(const Kernel &kernel, const Launch &launch, GlobalMemory &memory, const Options &options,
                     Symptom *symptom) {
  Execution execution(kernel, launch, memory, options);
  const Expected<bool> ended = execution.goOn(~uint64_t(0));
  if (symptom)
    *symptom = execution.symptom();
  if (!ended)
    return ended.error();
  return execution.counts();
}

} // namespace k2c::ptx
