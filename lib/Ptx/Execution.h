//===- Execution.h - What a launch has while it runs ----------------------===//
#ifndef K2C_LIB_PTX_EXECUTION_H
#define K2C_LIB_PTX_EXECUTION_H

#include "Clock.h"
#include "Program.h"
#include "k2c/Ptx/Machine.h"

#include <memory>
#include <optional>
#include <random>

namespace k2c::ptx {

constexpr int warpLanes = 32;
constexpr uint32_t allLanes = ~uint32_t(0);

struct Cta;
struct Cluster;

/// Lanes of a warp at one instruction.
struct Split {
  static constexpr int notWaiting = -1;

  uint32_t pc = 0;
  uint32_t lanes = 0;
  int barrier = notWaiting; ///< of the CTA: they have arrived there
  uint64_t generation = 0;  ///< of that barrier when they arrived
};

/// What the lanes of a warp know of other threads (Races.h).
struct WarpClocks {
  uint32_t number = 0; ///< of the warp in the launch, cluster after cluster
  uint32_t time = 0;   ///< instructions so far
  Clock known[warpLanes];
  Clock fenced[warpLanes];  ///< what a strong write publishes since the last fence
  Clock pending[warpLanes]; ///< what strong reads have seen, and the next fence acquires
  Scope fenceScope[warpLanes] = {};
  uint32_t isFenced = 0; ///< lanes
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
  uint32_t arrivedInCluster = 0;      ///< lanes, at the cluster's barrier
  uint64_t clusterGeneration = 0;     ///< of that barrier when they arrived

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

/// A barrier of a CTA or a cluster: who has arrived since it was passed last. (PTX ISA 9.7.13.1)
struct Barrier {
  uint32_t arrived = 0;  ///< threads
  uint32_t expected = 0; ///< threads, as those said who have arrived; 0: all that run
  uint64_t generation = 0;
  Clock given;  ///< by those who have arrived
  Clock passed; ///< by those who had when it was passed last
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
  Barrier barrier[barriers];
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
};

class Machine {
public:
  Machine(const Program &program, const Launch &launch, GlobalMemory &memory, const Options &options);
  ~Machine();

  Expected<Counts> run();

  // What handlers use.

  const Program &program;
  const Launch &launch;
  const Options &options;
  std::mt19937_64 random;
  std::unique_ptr<Races> races; ///< null: not strict
  uint64_t quiet = 0;           ///< instructions since the last that changed something

  /// The bytes at the address of lane `lane`, checked for bounds, alignment and, of a read, for having been written.
  /// Null: a finding has been recorded.
  std::byte *reach(Warp &warp, const Operation &operation, uint64_t address, int lane, uint32_t bytes, Access access);
  /// The same for all lanes of `active` at once, if they access one memory and nothing is wrong with it; else, a place
  /// without data.
  Place reachTogether(Warp &warp, const Operation &operation, const uint64_t *addresses, uint32_t active,
                      uint32_t bytes, Access access);
  /// Ends the launch with what `warp` did wrong at `operation`.
  Outcome fail(const Warp &warp, const Operation &operation, uint32_t lanes, std::string what, std::string remedy = "");
  Split &split(Warp &warp) const { return warp.splits[warp.current]; }
  void end(Warp &warp, uint32_t lanes);

private:
  void start(uint64_t number);
  void startWarp(Cta &cta, Warp &warp);
  void retire(size_t index);
  bool runWarp(Warp &warp);
  bool step(Warp &warp);
  bool pick(Warp &warp);
  void merge(Warp &warp);
  bool checkDefined(Warp &warp, const Operation &operation, uint32_t lanes);
  void reportDeadlock(const std::string &what);
  Place place(Warp &warp, Window window, uint64_t &address, int lane);
  bool prepare();
  void refuse(std::string what, std::string remedy);

  GlobalMemory &memory;
  Extent clusterShape{};
  uint64_t nextCluster = 0, clusterCount = 0;
  uint32_t warpsOfCta = 0, threadsOfCta = 0;
  std::vector<std::unique_ptr<Cluster>> resident;
  std::vector<Warp *> running;
  std::vector<std::byte> parameters;
  GlobalMemory::Range *lastRange = nullptr;
  Counts counts;
  std::optional<Error> finding;
};

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

/// "(0, 1, 0)"
std::string text(const Extent &extent);
uint64_t product(const Extent &extent);

/// What a CTA may have, static and dynamic; a device gives 227 KiB of it.
constexpr uint64_t maxSharedBytes = uint64_t(227) << 10;

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_EXECUTION_H
