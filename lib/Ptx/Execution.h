//===- Execution.h - What a launch has while it runs ----------------------===//
#ifndef K2C_LIB_PTX_EXECUTION_H
#define K2C_LIB_PTX_EXECUTION_H

#include "Clock.h"
#include "Program.h"
#include "k2c/Ptx/Machine.h"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>

namespace k2c::ptx {

constexpr int warpLanes = 32;
constexpr uint32_t warpsOfGroup = 4; ///< of a warpgroup
constexpr uint32_t allLanes = ~uint32_t(0);

struct Cta;
struct Cluster;

/// Lanes of a warp at one instruction.
struct Split {
  static constexpr int notWaiting = -1;

  uint32_t pc = 0;
  uint32_t lanes = 0;
  int barrier = notWaiting;        ///< of the CTA: they have arrived there
  uint64_t generation = 0;         ///< of that barrier when they arrived
  std::optional<uint64_t> awaited; ///< the phase of an mbarrier that they have begun to wait for
};

/// What the lanes of a warp know of other threads (Races.h).
struct WarpClocks {
  uint32_t number = 0; ///< of the warp in the launch, cluster after cluster
  uint32_t time = 0;   ///< instructions so far
  Knowledge known[warpLanes];
  Knowledge fenced[3][warpLanes]; ///< what strong writes publish since the last fence of a scope or more
  uint32_t isFenced[3] = {};      ///< lanes that have one
  /// What strong reads have seen, and the next fence of the scope acquires.
  std::vector<std::pair<Scope, Knowledge>> pending[warpLanes];
  std::vector<Agent> made[warpLanes]; ///< mbarriers since the last fence
};

/// A part of a bulk copy: bytes that lie together on both sides.
struct Piece {
  uint64_t shared;   ///< an address of a CTA
  std::byte *global; ///< null: outside of the tensor, zeros
  uint32_t bytes;
};

/// A copy from shared memory to global memory that its thread has begun.
struct Outgoing {
  std::vector<Piece> pieces;
  std::vector<std::byte> read; ///< what they hold, once it has been read
  bool isRead = false;
  Combine combine = nullptr; ///< with what is there; null: it is overwritten
};

/// Copies of a thread, in the groups in which it waits for them. (PTX ISA, Bulk copy)
struct BulkGroups {
  std::vector<Outgoing> open;
  std::deque<std::vector<Outgoing>> closed; ///< those that are not complete, the oldest first
  uint32_t count = 0;                       ///< closed so far
  Agent reads{}, writes{};                  ///< stand for the copies of group n, at time n + 1
};

/// A cp.async that its thread has begun.
struct Fetch {
  uint32_t number; ///< among those of the thread, from 1
  Cta *cta;
  std::vector<Piece> pieces;
};

/// Those of a thread.
struct Fetches {
  std::deque<Fetch> pending;    ///< that are not done, the oldest first
  uint32_t number = 0;          ///< of the last
  std::vector<uint32_t> groups; ///< the last number of each
  Agent agent{};                ///< stands for number n at time n
};

/// A matrix product that its warp has begun.
struct Product {
  const Operation *operation = nullptr;
  uint64_t descriptorA = 0, descriptorB = 0;
  uint32_t a[4][warpLanes] = {}; ///< registers of A
  bool isAdded = false;          ///< to what the accumulators hold
};

/// Those of a warp, in the groups in which it waits for them. (PTX ISA, wgmma.commit_group)
struct Products {
  std::vector<Product> open;
  std::deque<std::vector<Product>> groups; ///< those that are not complete, the oldest first
  uint32_t closed = 0;                     ///< groups so far
  uint32_t count = 0;                      ///< products that are not complete
  std::vector<uint32_t> inFlight;          ///< by number of a register: products that have it
  std::vector<bool> isTouched;             ///< written since the last fence
  bool isFenced = false;
  Agent agent{}; ///< stands for the reads of group n, at time n + 1
};

struct Warp {
  Cta *cta = nullptr;
  uint32_t index = 0;             ///< in its CTA
  uint32_t started = 0, live = 0; ///< lanes
  std::vector<Split> splits;
  size_t current = 0; ///< the split that runs
  std::unique_ptr<uint64_t[]> registers;
  const std::byte *bases[2] = {};     ///< registers, constants
  std::vector<uint32_t> defined;      ///< by number of a tracked slot: lanes that have written it
  std::unique_ptr<WarpClocks> clocks; ///< null: races are not looked for
  std::vector<std::byte> local;       ///< of lane after lane
  Products products;
  std::map<int, BulkGroups> bulk; ///< by lane
  std::map<int, Fetches> fetches; ///< by lane
  uint32_t arrivedInCluster = 0;  ///< lanes, at the cluster's barrier
  uint64_t clusterGeneration = 0; ///< of that barrier when they arrived
  bool hasMetCluster = false;     ///< it has passed that barrier once
  uint32_t maxRegisters = 0;      ///< that a thread may have; 0: nothing says it
  uint32_t registerSteps = 0;     ///< times that it has changed that

  /// The lanes of an operand.
  template <class T> const T *source(Slot slot) const {
    return reinterpret_cast<const T *>(bases[slot >> 31] + (slot & ~constantSlot));
  }
  template <class T> T *destination(Slot slot) {
    return reinterpret_cast<T *>(reinterpret_cast<std::byte *>(registers.get()) + slot);
  }
  uint32_t predicate(Slot slot) const { return *source<uint32_t>(slot); }
  /// Writes the lanes of `active`.
  void setPredicate(Slot slot, uint32_t active, uint32_t lanes) {
    uint32_t *word = destination<uint32_t>(slot);
    *word = (*word & ~active) | (lanes & active);
  }
};

/// A barrier of a CTA or a cluster: who has arrived since it was passed last. (PTX ISA, bar, barrier)
struct Barrier {
  uint32_t arrived = 0;  ///< threads
  uint32_t expected = 0; ///< threads, as those said who have arrived; 0: all that run
  uint64_t generation = 0;
  uint32_t holds = 0, heldAtLast = 0;  ///< threads whose predicate of bar.red holds
  uint32_t asked = 0, askedAtLast = 0; ///< threads that have one
  Knowledge given;                     ///< by those who have arrived
  Knowledge passed;                    ///< by those who had when it was passed last
};

/// An mbarrier object in shared memory. (PTX ISA, mbarrier)
struct MBarrier {
  uint32_t expected = 0;         ///< arrivals of a phase
  int64_t pending = 0;           ///< arrivals that the current phase still waits for
  int64_t bytes = 0;             ///< of copies that it still waits for
  uint64_t phase = 0;            ///< the current one; those before are complete
  Knowledge given;               ///< by those of its CTA who have arrived in this phase
  Knowledge passed;              ///< by those of the phases before
  Knowledge givenFar, passedFar; ///< the same by other CTAs, in the scope of the cluster
  Agent agent{};                 ///< stands for the copies that complete on it: those of phase p at time p + 1
  Agent object{};                ///< has made it, at time 1
};

struct Cta {
  static constexpr int barriers = 16;

  Cluster *cluster = nullptr;
  Extent id{};
  uint32_t rank = 0; ///< in its cluster
  uint32_t threads = 0;
  std::vector<Warp> warps;
  std::vector<std::byte> shared; ///< from firstSharedAddress on
  ByteSet sharedWritten;
  uint32_t runningWarps = 0;
  std::map<uint32_t, std::vector<uint32_t>> registerSteps; ///< by warpgroup: what its warps have asked for
  Knowledge ended;                                         ///< what those knew who have ended
  Barrier barrier[barriers];
  std::map<uint64_t, MBarrier> mbarriers; ///< by address

  bool holdsMBarrier(uint64_t address, uint64_t bytes) const {
    const auto found = mbarriers.upper_bound(address > 8 ? address - 8 : 0);
    return found != mbarriers.end() && found->first < address + bytes;
  }
};

struct Cluster {
  uint64_t number = 0;
  std::vector<Cta> ctas;
  Barrier barrier;
  uint32_t runningWarps = 0;
};

enum class Access : uint8_t { Read, Write, ReadWrite };

class Races;

/// A memory that an address lies in.
struct Place {
  const char *space = nullptr; ///< for messages
  uint64_t first = 0;          ///< its first address
  uint64_t size = 0;
  std::byte *data = nullptr;
  ByteSet *written = nullptr; ///< null: it is not looked at
  Cta *cta = nullptr;         ///< of shared memory

  bool holdsMBarrier(uint64_t address, uint64_t bytes) const { return cta && cta->holdsMBarrier(address, bytes); }
};

class Machine {
public:
  Machine(const Program &program, const Launch &launch, GlobalMemory &memory, const Options &options);
  ~Machine();

  Expected<bool> goOn(uint64_t instructions);

  // What handlers use.

  const Program &program;
  const Launch &launch;
  const Options &options;
  std::mt19937_64 random;
  std::unique_ptr<Races> races; ///< null: not strict
  uint64_t quiet = 0;           ///< instructions since the last that changed something
  Symptom symptom = Symptom::Other;
  Counts counts;

  /// The bytes at the address of lane `lane`, checked for bounds, alignment and, of a read, for having been written.
  /// Null: a finding has been recorded.
  std::byte *reach(Warp &warp, const Operation &operation, uint64_t address, int lane, uint32_t bytes, Access access);
  /// The same for all lanes of `active` at once, if they access one memory and nothing is wrong with it; else, a place
  /// without data.
  Place reachTogether(Warp &warp, const Operation &operation, const uint64_t *addresses, uint32_t active,
                      uint32_t bytes, Access access);
  /// Counts an access of lanes at an address each, in the memory that the first of them lies in.
  void countTraffic(Warp &warp, const Operation &operation, const uint64_t *addresses, uint32_t active, uint32_t bytes,
                    Access access);
  /// Ends the launch with `what` of an access that nothing orders with `other`, as Races describes it.
  Outcome failRace(const Warp &warp, const Operation &operation, uint32_t lanes, const std::string &what,
                   const std::string &other, bool isProxy);
  /// Ends the launch with what `warp` did wrong at `operation`.
  Outcome fail(const Warp &warp, const Operation &operation, uint32_t lanes, std::string what, std::string remedy = "");
  /// Registers that a thread may have when it begins; 0: nothing says it.
  uint32_t launchedRegisters() const;
  Split &split(Warp &warp) const { return warp.splits[warp.current]; }
  void end(Warp &warp, uint32_t lanes);
  /// Does `work` of the warp's cluster at some time that is drawn, at the latest when nothing else can go on.
  void defer(Warp &warp, std::function<void()> work);
  /// The allocation that holds all of `bytes` bytes; null: none does.
  GlobalMemory::Range *globalAt(const std::byte *data, uint64_t bytes) {
    return memory.find(reinterpret_cast<uint64_t>(data), bytes);
  }
  /// What address operand `number` is for `lane`.
  uint64_t addressAt(const Warp &warp, uint32_t number, int lane) const {
    const AddressOf &at = program.addresses[number];
    if (at.bytes == 8)
      return warp.source<uint64_t>(at.base)[lane] + at.offset;
    return static_cast<uint32_t>(warp.source<uint32_t>(at.base)[lane] + at.offset);
  }
  /// The CTA and the address in it of a shared address; null: there is none.
  Cta *sharedAt(Warp &warp, uint64_t &address);

private:
  void start(uint64_t number);
  void startWarp(Cta &cta, Warp &warp);
  void retire(size_t index);
  bool runWarp(Warp &warp);
  bool step(Warp &warp);
  bool pick(Warp &warp);
  bool runDeferred(bool isForced);
  void finishDeferred(const Cluster *cluster);
  void merge(Warp &warp);
  bool checkTouched(Warp &warp, const Operation &operation, uint32_t lanes);
  bool checkDefined(Warp &warp, const Operation &operation, uint32_t lanes, uint32_t active);
  void reportDeadlock(const std::string &what);
  Place place(Warp &warp, Window window, uint64_t &address, int lane);
  bool mayNotHaveBegun(const Warp &warp, const Place &found) const;
  bool prepare();
  void refuse(std::string what, std::string remedy);

  GlobalMemory &memory;
  Extent clusterShape{};
  bool isPrepared = false;
  uint64_t nextCluster = 0, clusterCount = 0;
  uint32_t warpsOfCta = 0, threadsOfCta = 0;
  std::vector<std::unique_ptr<Cluster>> resident;
  std::vector<Warp *> running;
  struct Deferred {
    Cluster *cluster;
    std::function<void()> work;
  };
  std::vector<Deferred> deferred;
  std::vector<std::byte> parameters;
  GlobalMemory::Range *lastRange = nullptr;
  std::optional<Error> finding;
};

/// The address that an operation with one of them has for `lane`: its first source and what is added to it.
inline uint64_t addressOf(const Warp &warp, const Operation &operation, int lane) {
  if (operation.addressBytes == 8)
    return warp.source<uint64_t>(operation.sources[0])[lane] + operation.immediate;
  return static_cast<uint32_t>(warp.source<uint32_t>(operation.sources[0])[lane] + operation.immediate);
}

/// Calls `body` for each lane of `active`.
template <class Body> inline void forLanes(uint32_t active, Body body) {
  if (active == allLanes) {
#pragma GCC ivdep
    for (int lane = 0; lane < warpLanes; ++lane)
      body(lane);
    return;
  }
  for (uint32_t left = active; left != 0; left &= left - 1)
    body(__builtin_ctz(left));
}

/// Whether the lanes of `mask` that still run are all in `active`, whose masks have to be the same: Next, or Wait.
Outcome membersAreHere(Machine &machine, Warp &warp, const Operation &operation, uint32_t active, Slot mask);

/// Generic writes that the lanes know of, to the memories whose bits are set in `target`, are seen by copies and matrix
/// products from now on.
Outcome fenceProxy(Machine &machine, Warp &warp, const Operation &operation, uint32_t active);

/// "(0, 1, 0)"
std::string text(const Extent &extent);

/// What a CTA may have, static and dynamic; a device gives 227 KiB of it.
constexpr uint64_t maxSharedBytes = uint64_t(227) << 10;

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_EXECUTION_H
