//===- Launch.cpp - Whether a kernel can run as it is launched ------------===//
#include "Races.h"
#include "base/Utf8.h"

namespace k2c::ptx {

const Function &Kernel::function() const { return decoded->function; }
uint64_t Kernel::sharedBytes() const { return decoded->sharedBytes; }
uint64_t Kernel::localBytes() const { return decoded->localBytes; }

std::string text(const Extent &extent) {
  return "(" + std::to_string(extent[0]) + ", " + std::to_string(extent[1]) + ", " + std::to_string(extent[2]) + ")";
}

Machine::Machine(const Program &program, const Launch &launch, GlobalMemory &memory, const Options &options)
    : program(program), launch(launch), options(options), random(options.seed), memory(memory) {}

Machine::~Machine() = default;

Outcome Machine::fail(const Warp &warp, const Operation &operation, uint32_t lanes, std::string what,
                      std::string remedy) {
  if (finding)
    return Outcome::Failed;
  const Instruction &instruction = operation.instruction < program.function.code.size()
                                       ? program.function.code[operation.instruction]
                                       : Instruction{"exit", {}, {}}; // behind the last
  char mask[16];
  std::snprintf(mask, sizeof mask, "0x%x", lanes);
  finding = Error{program.moduleName + ":" + std::to_string(operation.line),
                  "kernel '" + shortened(program.function.name) + "', CTA " + text(warp.cta->id) + ", warp " +
                      std::to_string(warp.index) + ", lanes " + mask + ", '" + shortened(instruction.spelling()) +
                      "': " + std::move(what),
                  std::move(remedy)};
  return Outcome::Failed;
}

void Machine::refuse(std::string what, std::string remedy) {
  if (!finding)
    finding = Error{program.moduleName + ":" + std::to_string(program.function.line),
                    "kernel '" + shortened(program.function.name) + "' " + std::move(what), std::move(remedy)};
}

/// The shape of the launch and what the kernel says of it.
bool Machine::prepare() {
  const Function &kernel = program.function;
  clusterShape = {1, 1, 1};
  for (const Extent &said : {kernel.requiredCluster, launch.cluster})
    if (product(said) != 0)
      clusterShape = said;
  const uint64_t threads = product(launch.block);
  if (product(kernel.requiredCluster) != 0 && clusterShape != kernel.requiredCluster)
    refuse("is of clusters of " + text(kernel.requiredCluster) + " and is launched in clusters of " +
               text(clusterShape),
           "launch it as it says");
  else if (product(launch.grid) == 0 || threads == 0 || threads > 1024 || product(clusterShape) > 16)
    refuse("cannot run with a grid of " + text(launch.grid) + ", blocks of " + text(launch.block) +
               " and clusters of " + text(clusterShape),
           "blocks have up to 1024 threads, clusters up to 16 blocks");
  else if (product(kernel.requiredThreads) != 0 && kernel.requiredThreads != launch.block)
    refuse("is of blocks of " + text(kernel.requiredThreads) + " and is launched in blocks of " + text(launch.block),
           "launch it as it says");
  else if (product(kernel.maximalThreads) != 0 && threads > product(kernel.maximalThreads))
    refuse("is of blocks of up to " + std::to_string(product(kernel.maximalThreads)) +
               " threads and is launched with " + std::to_string(threads),
           "launch fewer");
  else if (launch.parameters.size() != kernel.parameters.size())
    refuse("has " + std::to_string(kernel.parameters.size()) + " parameters and is given " +
               std::to_string(launch.parameters.size()),
           "give as many");
  else if (program.sharedBytes + launch.sharedBytes > maxSharedBytes)
    refuse("needs " + std::to_string(program.sharedBytes + launch.sharedBytes) +
               " bytes of shared memory, and there are " + std::to_string(maxSharedBytes),
           "launch it with fewer");
  else
    for (size_t axis = 0; axis < 3; ++axis)
      if (launch.grid[axis] % clusterShape[axis] != 0)
        refuse("has a grid of " + text(launch.grid) + ", which clusters of " + text(clusterShape) + " do not divide",
               "launch whole clusters");
  if (finding)
    return false;
  parameters.resize(program.paramBytes);
  for (size_t i = 0; i < kernel.parameters.size(); ++i)
    std::memcpy(parameters.data() + program.paramOffsets[i], launch.parameters[i], kernel.parameters[i].bytes());
  threadsOfCta = static_cast<uint32_t>(threads);
  warpsOfCta = (threadsOfCta + warpLanes - 1) / warpLanes;
  clusterCount = product(launch.grid) / product(clusterShape);
  if (options.isStrict)
    races = std::make_unique<Races>(program, warpsOfCta, static_cast<uint32_t>(warpsOfCta * product(clusterShape)));
  return true;
}

} // namespace k2c::ptx
