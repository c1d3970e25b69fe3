//===- GpuTopology.cpp - This machine's GPU as a topology -------------------===//
//
// Stated by the driver: memory, multiprocessors, architecture, clocks, the width of the memory. No driver states rates:
// a device that a built-in topology has, by the name of its model, the number of its multiprocessors and about its
// memory, has the rates of its datasheet there and what kernels reach of them; of any other they are estimated from its
// clocks. Each constant's source says which of these it is.
//
//===----------------------------------------------------------------------===//
#include "GpuTopology.h"
#include "EmbeddedTopologies.h"
#include "base/Utf8.h"
#include "k2c/Cluster/Topology.h"

#include <cctype>
#include <cmath>

namespace k2c {

using namespace cluster;

namespace {

/// What tells generations of multiprocessors apart, in multiply-adds a cycle.
/// (CUDA C++ Programming Guide, arithmetic instructions; the architectures' white papers, products without sparsity)
struct Generation {
  int capability;   ///< 90: of 9.0 and later ones, up to the next generation
  const char *arch; ///< the latest code that runs on it
  double f32, bf16; ///< of a multiprocessor, bf16 summed in f32
};
constexpr Generation generations[] = {{80, "sm_80", 64, 1024},   {86, "sm_80", 128, 512},    {89, "sm_89", 128, 512},
                                      {90, "sm_90a", 128, 2048}, {100, "sm_100", 128, 4096}, {120, "sm_120", 128, 512}};

Error refusal(std::string message, std::string remedy) {
  return Error{K2RT_DEVICE_FAILED, "topology 'gpu'", std::move(message), std::move(remedy)};
}

Error unnamed(const Error &error) {
  return refusal(error.where + ": " + error.message,
                 "install NVIDIA's driver, or name a topology, as h200x1, which needs no GPU to compile for");
}

Expected<GpuClocks> readClocks(const Driver &driver, const GpuFacts &gpu) {
  GpuClocks clocks;
  const std::pair<int *, CUdevice_attribute> asked[] = {
      {&clocks.multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
      {&clocks.kilohertz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
      {&clocks.memoryKilohertz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
      {&clocks.memoryBits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
      {&clocks.l2Bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE}};
  for (const auto &[value, attribute] : asked)
    if (Status done = driver.call<&Cuda::cuDeviceGetAttribute>(value, attribute, gpu.device); !done)
      return unnamed(done.error());
  return clocks;
}

Expected<Generation> generationOf(const GpuFacts &gpu) {
  const Generation *found = nullptr;
  for (const Generation &each : generations)
    if (each.capability <= gpu.major * 10 + gpu.minor)
      found = &each;
  if (found && found->arch == std::string("sm_90a") && gpu.minor != 0)
    found = nullptr;
  if (found)
    return *found;
  return refusal(shortened(gpu.name) + " has compute capability " + std::to_string(gpu.major) + "." +
                     std::to_string(gpu.minor) + ", k2c has code for 8.0 and later ones",
                 "use --topology host");
}

bool hasWord(const std::string &text, const std::string &word) {
  auto isPart = [&](size_t at) { return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])); };
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    if ((at == 0 || !isPart(at - 1)) && !isPart(at + word.size()))
      return true;
  return false;
}

/// Whether it is the product: the A100 of 40 GB has slower memory than that of 80 GB, the H100 NVL another one than the
/// SXM. Datasheets say GB and mean nearly as many GiB.
bool isMemoryOf(const GpuFacts &gpu, Bytes datasheet) {
  return std::abs(double(gpu.memory) / double(datasheet.value) - 1) < 0.1;
}

/// The built-in topology of such devices; none: there is none.
std::optional<Topology> builtInLike(const GpuFacts &gpu, const GpuClocks &clocks) {
  for (const EmbeddedFile &file : embeddedTopologies())
    if (Expected<Topology> known = parseTopology(file.text, file.name);
        known && known->device.kind == DeviceKind::Nvidia && known->device.cores == clocks.multiprocessors &&
        isMemoryOf(gpu, known->device.memory.value))
      if (const std::string &model = known->device.model; hasWord(gpu.name, model.substr(0, model.find(' '))))
        return std::move(*known);
  return std::nullopt;
}

Sourced<FlopRate> estimatedRate(double multiplyAdds, const GpuClocks &clocks) {
  return {FlopRate(2 * multiplyAdds * clocks.multiprocessors * clocks.kilohertz * 1e3),
          "estimate: " + formatNumber(multiplyAdds, 6) + " multiply-adds a cycle of each of " +
              std::to_string(clocks.multiprocessors) + " multiprocessors at " +
              formatNumber(clocks.kilohertz * 1e-3, 6) + " MHz, stated by the driver"};
}

/// Refuses a driver that does not state what rates are estimated from.
Status checkClocks(const GpuFacts &gpu, const GpuClocks &clocks) {
  const std::pair<int, const char *> stated[] = {{clocks.multiprocessors, "multiprocessors"},
                                                 {clocks.kilohertz, "kHz"},
                                                 {clocks.memoryKilohertz, "kHz of memory"},
                                                 {clocks.memoryBits, "bits of memory at a time"}};
  for (const auto &[value, what] : stated)
    if (value <= 0)
      return refusal("the driver states " + std::to_string(value) + " " + what + " of " + shortened(gpu.name),
                     "write a topology file with its rates, docs/Topology.md");
  return {};
}

void estimateRates(const Generation &generation, const GpuClocks &clocks, Device &device) {
  device.memoryRead = {Bandwidth(2.0 * clocks.memoryBits / 8 * clocks.memoryKilohertz * 1e3),
                       "estimate: " + std::to_string(clocks.memoryBits) + " bits twice a cycle at " +
                           formatNumber(clocks.memoryKilohertz * 1e-3, 6) + " MHz, stated by the driver"};
  device.f32 = estimatedRate(generation.f32, clocks);
  device.bf16 = estimatedRate(generation.bf16, clocks);
}

} // namespace

Expected<Topology> cluster::topologyOf(const GpuFacts &gpu, const GpuClocks &clocks) {
  Expected<Generation> generation = generationOf(gpu);
  if (!generation)
    return generation.takeError();
  const std::string source = "stated by the driver, " + versionText(gpu.driverVersion);
  Topology topology;
  if (std::optional<Topology> known = builtInLike(gpu, clocks)) {
    topology.device = std::move(known->device);
    topology.host = std::move(known->host);
  } else if (Status status = checkClocks(gpu, clocks); !status) {
    return status.takeError();
  } else {
    estimateRates(*generation, clocks, topology.device);
  }
  topology.name = "gpu";
  topology.description = "this machine's " + shortened(gpu.name);
  topology.device.kind = DeviceKind::Nvidia;
  topology.device.model = shortened(gpu.name);
  topology.device.arch = generation->arch;
  topology.device.cores = clocks.multiprocessors;
  topology.device.memory = {Bytes(gpu.memory), source};
  if (clocks.l2Bytes > 0)
    topology.device.l2 = {Bytes(clocks.l2Bytes), source};
  return topology;
}

Expected<Topology> gpuTopology(const std::string &driverFile) {
  Expected<std::unique_ptr<Driver>> driver = Driver::open(driverFile);
  if (!driver)
    return unnamed(driver.error());
  Expected<int32_t> count = countGpus(**driver);
  if (!count)
    return unnamed(count.error());
  if (*count > 1)
    return Error{"topology 'gpu'",
                 "this machine has " + std::to_string(*count) + " GPUs; programs of several are not in this build",
                 "let the driver show one, CUDA_VISIBLE_DEVICES=0"};
  Expected<GpuFacts> gpu = readGpu(**driver, 0);
  if (!gpu)
    return unnamed(gpu.error());
  return gpuTopology(**driver, *gpu);
}

Expected<Topology> gpuTopology(const Driver &driver, const GpuFacts &gpu) {
  Expected<GpuClocks> clocks = readClocks(driver, gpu);
  if (!clocks)
    return clocks.takeError();
  return topologyOf(gpu, *clocks);
}

} // namespace k2c
