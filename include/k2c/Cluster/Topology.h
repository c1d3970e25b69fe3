//===- Topology.h - The machines a program is compiled for ----------------===//
//
// Equal devices joined by tiers of links, from the innermost outwards, with the few constants the planner's models
// need. Every constant carries its source: a measurement, a datasheet, or the file and line of the user who wrote it.
// An eight-GPU box, a rack that is one NVLink domain and two hosts on a slow network are one shape: a list of tiers.
//
// docs/Topology.md describes the files; models/topologies has the built-ins.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_CLUSTER_TOPOLOGY_H
#define K2C_CLUSTER_TOPOLOGY_H

#include "base/Error.h"
#include "k2c/Cluster/Calibration.h"
#include "k2c/Support/Units.h"
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace k2c {

class Driver;
struct GpuFacts;

/// Floating-point operations per second; a multiply-add counts as two.
using FlopRate = Quantity<struct FlopRateTag, double>;

/// Time of `flops` at `rate`.
constexpr Seconds operator/(Flops flops, FlopRate rate) { return Seconds(flops.value / rate.value); }

/// What the source of a constant that k2c calibrate measured begins with.
inline constexpr const char *measuredSource = "measured by k2c calibrate";

/// A constant and where it comes from.
template <class T> struct Sourced {
  T value{};          ///< in base units: bytes, bytes/s, FLOP/s, seconds
  std::string source; ///< a measurement, a datasheet, "assumed: ...", or file:line:column of who wrote it

  /// Whether k2c calibrate measured it.
  bool isMeasured() const { return source.rfind(measuredSource, 0) == 0; }

  /// The same constant, whoever states it.
  bool operator==(const Sourced &other) const { return value == other.value; }
};

/// What a device is. It decides which constants a topology file gives of it.
enum class DeviceKind : uint8_t { Cpu, Nvidia, Amd };
/// The kind as topology files spell it: "cpu", "nvidia" or "amd".
std::string_view name(DeviceKind kind);
/// What people call a device: "GPU"; "device" where it is none.
std::string wordOf(DeviceKind kind);
/// The kind that is spelt so, or nothing.
std::optional<DeviceKind> parseDeviceKind(std::string_view word);
/// What topology files call the number of its cores: "cores", "sms" or "cus".
const char *coresKey(DeviceKind kind);

/// What published kernels reach of a device's peak rates, as shares of them, and what they take beside. A file that
/// does not state a share plans with the peak.
struct ReachedRates {
  Sourced<double> memory{1, "nominal"};            ///< of memory_read, by kernels that stream
  Sourced<double> bf16{1, "nominal"};              ///< of bf16, by large products of matrices
  Sourced<double> fp8{1, "nominal"};               ///< of fp8, likewise
  Sourced<double> attention{1, "nominal"};         ///< of bf16, by attention over long sequences
  Sourced<double> attentionBackward{1, "nominal"}; ///< of bf16, by its gradient
  Sourced<Seconds> launch;                         ///< of a kernel beyond its work: start, first loads, last stores
  Sourced<Bytes> fill;            ///< of a row, that a product of matrices could multiply while its tiles start and end
  Sourced<int64_t> attentionFill; ///< keys that a tile of queries could meet while it starts, ends and is masked
  Sourced<int64_t> tileRows{1, ""}; ///< of the smallest tile of a product of matrices
  Sourced<int64_t> transferSms;     ///< multiprocessors that all-to-alls of large batches take from kernels beside them
  Sourced<double> transferRate{1, "nominal"}; ///< of a link's rate, by these all-to-alls beside other kernels
  Sourced<Seconds> sendReceive; ///< in which an all-to-all of up to 128 generated tokens has all multiprocessors
};

/// One device: the memory and the arithmetic of one rank.
struct Device {
  DeviceKind kind = DeviceKind::Cpu;
  std::string model;                         ///< what people call it: "H100 SXM"; may be empty
  std::string arch;                          ///< of a GPU: sm_90a, gfx942; empty for a cpu
  std::string archPlace;                     ///< file:line:column of who wrote it; empty: nobody has
  int64_t cores = 1;                         ///< that a program may use; nvidia: multiprocessors; amd: compute units
  std::vector<int64_t> numa;                 ///< cpu: cores of each NUMA node, `cores` in all; empty: one node
  Sourced<Bytes> memory;                     ///< the most a program may use of it
  Sourced<Bandwidth> memoryRead;             ///< bytes/s, all cores together
  Sourced<FlopRate> f32;                     ///< peak; cpu: one core; GPU: the device, without sparsity
  Sourced<FlopRate> bf16;                    ///< likewise, products of bf16 summed in f32
  std::optional<Sourced<FlopRate>> fp8, fp4; ///< likewise; none: no such arithmetic
  Sourced<Bytes> l1;                         ///< cpu: data cache of a core
  Sourced<Bytes> l2;                         ///< cpu: of a core; GPU: of the device, 0 when not stated
  Sourced<Bytes> l3;                         ///< cpu: shared by the cores
  std::optional<Sourced<Bandwidth>> l2Read;  ///< GPU: between L2 and the multiprocessors; none: not stated
  ReachedRates kernels;                      ///< of a GPU
  std::optional<Calibration> measured;       ///< cpu: what `k2c calibrate` found

  /// A rate above as the device's, all cores together.
  FlopRate whole(FlopRate rate) const { return kind == DeviceKind::Cpu ? rate * double(cores) : rate; }
};

/// `count` units of the tier below (devices for the first), each device of which reaches those of the other units over
/// one link.
struct Tier {
  std::string name;                         ///< "node" marks what one operating system sees
  int64_t count = 1;                        ///< units of the tier below that it joins
  std::string link;                         ///< nvlink4, ib-ndr, ...; may be empty
  Sourced<Bandwidth> bandwidth;             ///< one way, one device, nominal
  Sourced<Seconds> latency;                 ///< one way, of the smallest message
  Sourced<double> efficiency{1, "nominal"}; ///< of the bandwidth, what large messages get; 0 to 1

  /// What large messages of one device get, one way.
  Bandwidth effective() const { return bandwidth.value * efficiency.value; }
};

/// What a node's processors have for its devices.
struct Host {
  Sourced<Bytes> memory;                    ///< of a node, what programs may use
  std::string link;                         ///< pcie5, nvlink-c2c, ...; may be empty
  Sourced<Bandwidth> bandwidth;             ///< one way, one device, nominal; both ways at once
  Sourced<double> efficiency{1, "nominal"}; ///< of the bandwidth, what large copies get; 0 to 1
  /// Read and written by a node's processors; none: not stated.
  std::optional<Sourced<Bandwidth>> memoryBandwidth;

  /// What large copies of one device get, one way.
  Bandwidth effective() const { return bandwidth.value * efficiency.value; }
};

/// A cluster of equal devices. A value: copies are independent, and nothing refers to the machine it describes.
struct Topology {
  std::string name;                   ///< "host", "gpu", "4x8-h100", or the file's own
  std::string description;            ///< one line; may be empty
  Device device;                      ///< every rank's
  std::optional<Host> host;           ///< of GPUs; none: not stated
  std::vector<Tier> tiers;            ///< innermost first; none: one device
  std::vector<std::string> nodeNames; ///< host names; empty: any hosts

  /// Devices in all: the product of the tiers' counts.
  int64_t ranks() const;
  /// Devices up to and including the tier called "node"; 1 when there is none.
  int64_t devicesPerNode() const;
  /// Operating systems: ranks() / devicesPerNode().
  int64_t nodes() const { return ranks() / devicesPerNode(); }
};

/// Reads a topology. `file` names it in errors, which carry line and column; constants without a source get `file`'s.
Expected<Topology> parseTopology(const std::string &text, const std::string &file);

/// The file that parseTopology reads back to the same values.
std::string printTopology(const Topology &topology);

/// A name (`host`, `gpu`, a built-in) or the path of a YAML or JSON file. Errors: an unknown name (lists the known), a
/// bad file.
Expected<Topology> loadTopology(const std::string &nameOrPath);

/// `devices` devices of `topology` under a name that loadTopology takes, in whole nodes as large as its own where they
/// are more than one node. None: names say no numbers of these devices, or the topology is a file of the user's own.
std::optional<Topology> resizedTopology(const Topology &topology, int64_t devices);

/// Whether a name means this topology: isSameMachine as what loadTopology finds under it among the built-ins.
bool isBuiltIn(const Topology &topology);
/// Whether two topologies have equal devices, hosts and tiers, whoever states their constants; names are not compared.
bool isSameMachine(const Topology &a, const Topology &b);

/// Ranks of a program, at most.
inline constexpr int64_t maxCompiledRanks = 4096;

/// Whether this build compiles for it, whatever the model; the error names what is missing. Every topology can be
/// planned for.
Status checkCompiles(const Topology &topology);

/// This machine as one CPU device: processors and memory this process may use (affinity, cgroup v1 and v2), caches and
/// instruction sets from proc and sys. What cannot be read is a stated estimate. `root` is "/" except in tests.
Topology hostTopology(const std::string &root = "/");

/// This machine's NVIDIA GPU as the driver states it: memory, multiprocessors, architecture; rates are those of a
/// built-in topology with such devices, or estimates. Errors: no driver or device (K2RT_DEVICE_FAILED), one that k2c
/// has no code for, several.
Expected<Topology> gpuTopology(const std::string &driverFile = "libcuda.so.1");
/// Likewise of one device of a driver that is open.
Expected<Topology> gpuTopology(const Driver &driver, const GpuFacts &gpu);

/// How many of `cores` cores belong to each NUMA node, of which node n has `processors[n]` processors; empty: all to
/// one. Fewer cores than processors are spread over the nodes as workers are; a node may then have none, and is left
/// out.
std::vector<int64_t> numaCores(const std::vector<int64_t> &processors, int64_t cores);

/// For `k2c topologies`: name and description, `host` and `gpu` first.
struct TopologyName {
  std::string name;        ///< as --topology takes it
  std::string description; ///< one line
};
/// `host`, `gpu` and the built-ins, which are those of models/topologies.
std::vector<TopologyName> knownTopologies();

} // namespace k2c

#endif // K2C_CLUSTER_TOPOLOGY_H
