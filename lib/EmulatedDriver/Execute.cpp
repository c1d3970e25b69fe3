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

/// Of warps: some hundredths of a second.
static constexpr uint64_t instructionsOfPart = uint64_t(1) << 20;

static CUresult refuseFreed(const char *what, uint64_t bytes) {
  return refuse(CUDA_ERROR_ILLEGAL_ADDRESS, std::string("a ") + what + " of " + std::to_string(bytes) +
                                                " bytes is of memory that is freed by now; free it behind the work");
}

bool Driver::run(Work &work) {
  const auto *launch = std::get_if<KernelLaunch>(&work.body);
  Context *context = contexts.find(work.context);
  if (!context || context->error != CUDA_SUCCESS) {
    if (launch) // it may have begun
      kernel.reset();
    return true;
  }
  if (launch) {
    if (!kernel)
      begin(*launch);
    context->error = goOn(*context);
  } else if (const Copy *copy = std::get_if<Copy>(&work.body)) {
    context->error = run(*copy);
  } else if (const Fill *fill = std::get_if<Fill>(&work.body)) {
    context->error = run(*fill);
  } else if (const Mark *mark = std::get_if<Mark>(&work.body)) {
    if (Event *event = events.find(mark->event); event && event->records == mark->record)
      event->time = std::chrono::steady_clock::now();
  }
  return !launch || !kernel;
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

void Driver::begin(const KernelLaunch &launch) {
  ptx::Launch given;
  given.grid = launch.grid;
  given.block = launch.block;
  given.cluster = launch.cluster;
  given.sharedBytes = launch.sharedBytes;
  for (const std::vector<std::byte> &value : launch.parameters)
    given.parameters.push_back(value.data());
  ptx::Options options;
  options.seed = queue.random();
  options.residentCtas = static_cast<uint32_t>(settings.multiprocessors);
  options.isStrict = settings.isStrict;
  if (settings.instructions != 0)
    options.maxInstructions = settings.instructions;
  kernel = std::make_unique<ptx::Execution>(*launch.kernel, given, memory.global, options);
  ++statistics.kernels;
}

/// A part of the kernel that has begun.
CUresult Driver::goOn(const Context &context) {
  memory.global.show(uint64_t(1) << hostOwner | uint64_t(1) << context.device | context.peers);
  const Expected<bool> isDone = kernel->goOn(instructionsOfPart);
  memory.global.show(~uint64_t(0));
  if (isDone && !*isDone)
    return CUDA_SUCCESS;
  const std::unique_ptr<ptx::Execution> ended = std::move(kernel);
  if (isDone) {
    statistics.instructions += ended->counts().instructions;
    return CUDA_SUCCESS;
  }
  switch (ended->symptom()) {
  case ptx::Symptom::IllegalAddress:
    return refuse(CUDA_ERROR_ILLEGAL_ADDRESS, isDone.error().text());
  case ptx::Symptom::Misaligned:
    return refuse(CUDA_ERROR_MISALIGNED_ADDRESS, isDone.error().text());
  case ptx::Symptom::Endless:
    return refuse(CUDA_ERROR_LAUNCH_TIMEOUT, isDone.error().text());
  case ptx::Symptom::Other:
    break;
  }
  return refuse(CUDA_ERROR_LAUNCH_FAILED, isDone.error().text());
}

} // namespace k2c::emulated
