//===- Topology.h - The machines a program is compiled for ----------------===//
//
// Nodes of equal devices joined by links, with the few constants the planner's models need. Every constant carries its
// source: a measurement, a datasheet, or the file and line of the user who wrote it.
//
// A topology file (models/topologies has examples):
//
//   name: cpu2x1
//   description: two one-core ranks on two hosts
//   nodes: 2
//   devices_per_node: 1
//   device:
//     kind: cpu                 # the only kind of this build
//     cores: 1
//     memory: 8 GiB             # one device's share
//     memory_read: {value: 43 GB/s, source: "measured ..."}   # all cores of the device together
//     f32: 270 GFLOP/s          # one core
//     bf16: 540 GFLOP/s         # one core; f32's rate where the core has no bf16 dot product
//     l1: 48 KiB                # data cache of a core
//     l2: 1 MiB                 # of a core
//     l3: 32 MiB                # shared by the device's cores
//   links:                      # none for a single device
//     network: {bandwidth: 25 MB/s, latency: 100 us, source: "..."}      # between nodes, each way, one device
//     node: {bandwidth: 20 GB/s, latency: 1 us}                          # between devices of a node
//
// A number is written with its unit, `48 KiB`, or as {value: 48 KiB, source: "..."}. Unknown keys are errors.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_CLUSTER_TOPOLOGY_H
#define K2C_CLUSTER_TOPOLOGY_H

#include "k2c/Support/Error.h"
#include "k2c/Support/Units.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace k2c {

/// Floating-point operations per second; a multiply-add counts as two.
using FlopRate = Quantity<struct FlopRateTag, double>;

/// Time of `flops` at `rate`.
constexpr Seconds operator/(Flops flops, FlopRate rate) { return Seconds(flops.value / rate.value); }

/// A constant and where it comes from.
template <class T> struct Sourced {
  T value{};
  std::string source;
};

/// One device: the memory and the cores of one rank.
struct Device {
  std::string kind = "cpu";
  int64_t cores = 1;
  Sourced<Bytes> memory;         ///< the most a program may use of it
  Sourced<Bandwidth> memoryRead; ///< all cores together
  Sourced<FlopRate> f32;         ///< one core
  Sourced<FlopRate> bf16;        ///< one core, dot products of bf16 pairs into f32
  Sourced<Bytes> l1;             ///< data cache of a core
  Sourced<Bytes> l2;             ///< of a core
  Sourced<Bytes> l3;             ///< shared by the cores
};

/// What joins two devices, each way, for one device.
struct Link {
  Bandwidth bandwidth;
  Seconds latency;
  std::string source;
};

struct Topology {
  std::string name;
  std::string description;
  int64_t nodes = 1;
  int64_t devicesPerNode = 1;
  Device device;
  std::optional<Link> node;    ///< between devices of a node
  std::optional<Link> network; ///< between nodes

  int64_t ranks() const { return nodes * devicesPerNode; }
};

/// Reads a topology. `file` names it in errors, which carry line and column; constants without a source get `file`'s.
Expected<Topology> parseTopology(const std::string &text, const std::string &file);

/// A name (`host`, a built-in) or the path of a YAML file. Errors: an unknown name (lists the known), a name reserved
/// for a later build, a bad file.
Expected<Topology> loadTopology(const std::string &nameOrPath);

/// This machine as one CPU device: processors and memory this process may use (affinity, cgroup v1 and v2), caches and
/// instruction sets from proc and sys. What cannot be read is a stated estimate. `root` is "/" except in tests.
Topology hostTopology(const std::string &root = "/");

/// How many processors' time the container may use; none: no quota.
std::optional<double> cpuQuota(const std::string &root = "/");

/// For `k2c topologies`: name and description, `host` first.
struct TopologyName {
  std::string name;
  std::string description;
};
std::vector<TopologyName> knownTopologies();

} // namespace k2c

#endif // K2C_CLUSTER_TOPOLOGY_H
