// PTX text: parsed, and what it defines decoded and run for a while. What is shown to have no bank conflicts has none.
#include "k2c/Ptx/BankConflicts.h"
#include "k2c/Ptx/Machine.h"
#include <cstring>

using namespace k2c;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Expected<ptx::Module> module = ptx::parse({reinterpret_cast<const char *>(data), size}, "fuzz.ptx");
  if (!module)
    return 0;
  for (const ptx::Function &function : module->functions) {
    const bool isFree = hasNoBankConflicts(*module, function);
    Expected<ptx::Kernel> kernel = ptx::Kernel::decode(*module, function.name);
    if (!kernel)
      continue;
    std::vector<std::byte> memory(4096);
    ptx::GlobalMemory global;
    global.add(memory.data(), memory.size(), "memory", true);
    const void *address = memory.data();
    std::vector<std::vector<std::byte>> values;
    ptx::Launch launch;
    launch.block = {48, 1, 1};
    launch.sharedBytes = 1024;
    for (const ptx::Variable &parameter : function.parameters) {
      values.emplace_back(parameter.bytes() + sizeof address);
      std::memcpy(values.back().data(), &address, sizeof address);
    }
    for (const std::vector<std::byte> &value : values)
      launch.parameters.push_back(value.data());
    ptx::Options options;
    options.maxInstructions = 2000;
    options.isStrict = size % 2 == 0;
    options.isTrafficCounted = true;
    const Expected<ptx::Counts> counts = ptx::run(*kernel, launch, global, options);
    if (counts && isFree && counts->sharedRead.conflicts + counts->sharedWritten.conflicts > 0)
      __builtin_trap();
  }
  return 0;
}
