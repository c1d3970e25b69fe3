//===- Calibration.h - What `k2c calibrate` measured of a machine ---------===//
//
// Rates of the kernels that the compiler emits for this CPU, as the workers of a program reach them: all of a team at
// the same time, over the runtime's own barrier. Part of a topology file (docs/Topology.md, "measured"); the planner
// turns it into times (Planner/KernelTime.h). No constant of a machine stands in the code.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_CLUSTER_CALIBRATION_H
#define K2C_CLUSTER_CALIBRATION_H

#include "k2c/Support/DType.h"
#include "k2c/Support/Units.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace k2c {

/// What a rate counts. Kernels that multiply matrices: FLOP/s of one worker. The others: bytes of activations read and
/// written in a second by one worker.
enum class RateUnit : uint8_t { Flops, Bytes };

/// A class of kernels that share a rate.
struct KernelKind {
  std::string_view name;
  RateUnit unit;
};

/// All classes, in the order of a file.
const std::vector<KernelKind> &kernelKinds();
/// Null: there is no such class.
const KernelKind *findKernelKind(std::string_view name);

/// Rates of one class at one depth, by rows. `depth` is what a row's work is proportional to: the length of a linear's
/// contraction, key and value elements of an attention, bytes of a row of the others.
struct KernelRates {
  std::string kind;
  DType x = DType::F32; ///< activations; queries
  DType w = DType::F32; ///< weights; keys and values; as x where there are none
  int64_t depth = 0;
  /// Rows that go through a matrix together; queries that see the same keys; rows of a worker. Ascending.
  std::vector<int64_t> rows;
  std::vector<double> near;   ///< for each of `rows`, what it reads being in caches of the core
  std::vector<double> memory; ///< linears, gqa: likewise, what they stream coming from memory; else empty
};

/// Bytes that move in a second, by the bytes of the set: a team's, reading it again and again, or those of a link.
struct ReadRate {
  Bytes bytes; ///< of the set that is read
  Bandwidth rate;
};

/// What a team of so many workers reaches.
struct TeamRates {
  int64_t workers = 1;        ///< threads, each on a core of its own
  Seconds launch;             ///< of a kernel beyond its work: the call, code that others displaced, the barrier
  std::vector<ReadRate> read; ///< by rising bytes
  std::vector<KernelRates> kernels;
};

/// What crosses between two units of this machine's processors that a tier joins (Cluster/HostTiers.h).
struct LinkRates {
  std::string name;            ///< what the tier ends at: core, cache, numa, socket, node
  int64_t count = 2;           ///< units of the tier below
  Seconds latency;             ///< one way: a flag of one cache line, until the other side sees it
  std::vector<ReadRate> read;  ///< one processor reads what one of another unit wrote last; by rising bytes
  std::vector<ReadRate> write; ///< it writes over that; likewise
};

/// The rates of one machine, as `k2c calibrate` measured and a topology file carries them.
struct Calibration {
  std::string tool;   ///< "k2c 0.1.0"
  std::string date;   ///< "2026-11-21"
  std::string target; ///< LLVM's name of the CPU
  std::vector<TeamRates> teams;
  std::vector<LinkRates> links; ///< the innermost first; none: one processor, or not measured

  /// Null: this many workers were not measured.
  const TeamRates *team(int64_t workers) const;
};

} // namespace k2c

#endif // K2C_CLUSTER_CALIBRATION_H
