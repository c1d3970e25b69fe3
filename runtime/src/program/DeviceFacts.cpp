// Numbers are bounded so that grids, parameters and scratch of all workers are products that do not overflow.
#include "program/DeviceFacts.h"
#include "base/Utf8.h"
#include <algorithm>

namespace k2c::runtime {

static constexpr int64_t maxThreads = 1024; // of a CTA, of every GPU
static constexpr int64_t maxCtas = 1 << 16;
static constexpr int64_t maxBytes = int64_t(1) << 50;
static constexpr int64_t maxArguments = 64;
static constexpr size_t maxHashBytes = 128;

/// Code is PTX, which the driver compiles, or cubins as well.
static void readCode(const JsonFields &device, DeviceFacts &facts) {
  const std::string code = device.string("code", "ptx");
  facts.hasCubins = code == "cubin";
  if (!facts.hasCubins && code != "ptx")
    device.fail("code", "is \"" + shortened(code) + "\", must be cubin or ptx");
  facts.ptxas = device.string("ptxas", "");
}

/// "sm_90a" is capability 9.0 and no other, "sm_80" is 8.0 or a later one.
static void readArch(const JsonFields &device, DeviceFacts &facts) {
  facts.arch = device.string("arch");
  std::string digits = facts.arch.substr(0, 3) == "sm_" ? facts.arch.substr(3) : "";
  facts.isExact = !digits.empty() && digits.back() == 'a';
  if (facts.isExact)
    digits.pop_back();
  const bool isNumber = digits.size() >= 2 && digits.size() <= 3 &&
                        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!isNumber)
    device.fail("arch", "is \"" + shortened(facts.arch) + "\", must be sm_ and a number, as sm_80 or sm_90a");
  facts.major = std::stoll(digits) / 10;
  facts.minor = std::stoll(digits) % 10;
}

std::optional<DeviceFacts> readDevice(const JsonFields &root, int64_t ranks, int64_t scratchPerWorker,
                                      const k2rt_limits &limits) {
  if (!root.has("device"))
    return std::nullopt;
  const JsonFields device = root.object("device");
  if (const std::string kind = device.string("kind"); kind != "cuda")
    device.fail("kind", "is \"" + shortened(kind) + "\", this runtime knows cuda");
  if (ranks > 1)
    device.fail("kind", "is cuda and topology.ranks is " + std::to_string(ranks) +
                            ", this runtime runs programs of one rank on a GPU");
  DeviceFacts facts;
  readArch(device, facts);
  readCode(device, facts);
  facts.threads = device.integer("threads", 1, maxThreads);
  facts.workersPerCta = device.integer("workers_per_cta", 1, facts.threads);
  facts.ctas = device.integer("ctas", 1, maxCtas);
  facts.memory = device.integer("memory_bytes", 1, maxBytes);
  facts.referenceBytes = device.integer("reference_bytes", 0, maxBytes, 0);
  facts.reserve = device.integer("reserve_bytes", 0, maxBytes);
  if (const int64_t needed = k2rt_gpu_reserve_bytes(&limits); facts.reserve < needed)
    device.fail("reserve_bytes", "is " + std::to_string(facts.reserve) + ", this runtime needs " +
                                     std::to_string(needed) + " (k2rt/reserve.h)");
  if (scratchPerWorker > maxBytes / facts.workers())
    device.fail("ctas", "makes the scratch of all workers larger than 2^50 bytes");
  return facts;
}

void readLaunch(const JsonFields &kernel, int64_t &arguments) {
  arguments = kernel.integer("arguments", 0, maxArguments);
  const std::string &hash = kernel.string("hash", maxHashBytes);
  const bool isName = !hash.empty() && std::all_of(hash.begin(), hash.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
  if (!isName)
    kernel.fail("hash", "is \"" + shortened(hash) + "\", must be letters, digits and _: it names a file of code");
}

} // namespace k2c::runtime
