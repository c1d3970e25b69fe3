//===- Execute.cpp - Does an operation of a stream ------------------------===//
//
// Addresses are looked up when an operation is done: memory that was freed behind its call is gone then. What fails
// makes the context fail, of which nothing is done any more, and each call gives its error from then on.
//
//===----------------------------------------------------------------------===//
#include "Driver.h"
#include "Image.h"

#include <cstring>

namespace k2c::emulated {

static CUresult refuseFreed(const char *what, uint64_t bytes) {
  return refuse(CUDA_ERROR_ILLEGAL_ADDRESS, std::string("a ") + what + " of " + std::to_string(bytes) +
                                                " bytes is of memory that is freed by now; free it behind the work");
}

void Driver::run(Work &work) {
  Context *context = contexts.find(work.context);
  if (!context || context->error != CUDA_SUCCESS)
    return;
  if (const Copy *copy = std::get_if<Copy>(&work.body))
    context->error = run(*copy);
  else if (const Fill *fill = std::get_if<Fill>(&work.body))
    context->error = run(*fill);
  else if (const KernelLaunch *launch = std::get_if<KernelLaunch>(&work.body))
    context->error = run(*context, *launch);
  else if (const Mark *mark = std::get_if<Mark>(&work.body))
    if (Event *event = events.find(mark->event); event && event->records == mark->record)
      event->time = std::chrono::steady_clock::now();
}

CUresult Driver::run(const Copy &copy) {
  const bool isToDevice = copy.direction == Copy::Direction::ToDevice;
  if (isToDevice && !copy.isPinned) {
    if (!memory.isOfDevice(copy.to, copy.bytes))
      return refuseFreed("copy", copy.bytes);
    std::memcpy(reinterpret_cast<void *>(copy.to),
                copy.staged.empty() ? reinterpret_cast<const void *>(copy.from) : copy.staged.data(), copy.bytes);
    memory.global.markWritten(reinterpret_cast<const void *>(copy.to), copy.bytes);
    return CUDA_SUCCESS;
  }
  if (!copy.isPinned) {
    if (!memory.isOfDevice(copy.from, copy.bytes))
      return refuseFreed("copy", copy.bytes);
    std::memcpy(reinterpret_cast<void *>(copy.to), reinterpret_cast<const void *>(copy.from), copy.bytes);
    return CUDA_SUCCESS;
  }
  return memory.copy(copy.to, copy.from, copy.bytes) ? CUDA_SUCCESS : refuseFreed("copy", copy.bytes);
}

CUresult Driver::run(const Fill &fill) {
  if (!memory.isOfDevice(fill.to, fill.bytes))
    return refuseFreed("memset", fill.bytes);
  std::memset(reinterpret_cast<void *>(fill.to), fill.value, fill.bytes);
  memory.global.markWritten(reinterpret_cast<const void *>(fill.to), fill.bytes);
  return CUDA_SUCCESS;
}

CUresult Driver::run(const Context &context, const KernelLaunch &launch) {
  ptx::Launch given;
  given.grid = launch.grid;
  given.block = launch.block;
  given.cluster = launch.cluster;
  given.sharedBytes = launch.sharedBytes;
  for (const std::vector<std::byte> &value : launch.parameters)
    given.parameters.push_back(value.data());
  ptx::Options options;
  options.seed = queue.random();
  options.residentCtas = multiprocessors;
  options.isStrict = settings.isStrict;
  if (settings.instructions != 0)
    options.maxInstructions = settings.instructions;
  memory.global.show(uint64_t(1) << hostOwner | uint64_t(1) << context.device | context.peers);
  ptx::Symptom symptom{};
  const Expected<ptx::Counts> counts = ptx::run(*launch.kernel, given, memory.global, options, &symptom);
  memory.global.show(~uint64_t(0));
  ++statistics.kernels;
  if (counts) {
    statistics.instructions += counts->instructions;
    return CUDA_SUCCESS;
  }
  switch (symptom) {
  case ptx::Symptom::IllegalAddress:
    return refuse(CUDA_ERROR_ILLEGAL_ADDRESS, counts.error().text());
  case ptx::Symptom::Misaligned:
    return refuse(CUDA_ERROR_MISALIGNED_ADDRESS, counts.error().text());
  case ptx::Symptom::Endless:
    return refuse(CUDA_ERROR_LAUNCH_TIMEOUT, counts.error().text());
  case ptx::Symptom::Other:
    break;
  }
  return refuse(CUDA_ERROR_LAUNCH_FAILED, counts.error().text());
}

} // namespace k2c::emulated
