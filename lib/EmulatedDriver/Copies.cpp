//===- Copies.cpp - Copies and memsets of streams -------------------------===//
//
// Pinned memory is read or written when a copy is done. Pageable memory is read when the copy is enqueued, up to 64 KiB
// of it; a longer copy, and one to pageable memory, is done when the call returns. (CUDA, API synchronization behavior)
//
//===----------------------------------------------------------------------===//
#include "Driver.h"

using namespace k2c::emulated;

namespace {

constexpr uint64_t maxStaged = uint64_t(64) << 10;

/// Whether memory that an address of the host begins is not known to the driver, or is pinned and long enough.
enum class HostMemory { Pageable, Pinned, Wrong };

HostMemory kindOf(Memory &memory, uint64_t address, uint64_t bytes) {
  if (address == 0)
    return HostMemory::Wrong;
  if (!memory.global.find(address, 1))
    return HostMemory::Pageable;
  return memory.isPinned(address, bytes) ? HostMemory::Pinned : HostMemory::Wrong;
}

CUresult copyWithHost(Driver &driver, Stream &stream, Copy copy) {
  if (copy.bytes == 0)
    return CUDA_SUCCESS;
  const bool isToDevice = copy.direction == Copy::Direction::ToDevice;
  const HostMemory kind = kindOf(driver.memory, isToDevice ? copy.from : copy.to, copy.bytes);
  if (kind == HostMemory::Wrong || !driver.memory.isOfDevice(isToDevice ? copy.to : copy.from, copy.bytes))
    return CUDA_ERROR_INVALID_VALUE;
  copy.isPinned = kind == HostMemory::Pinned;
  if (copy.isPinned)
    return driver.enqueue(stream, {stream.context, std::move(copy)});
  if (stream.capture != 0)
    return driver.invalidate(stream.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  const bool isStaged = isToDevice && copy.bytes <= maxStaged;
  if (isStaged) {
    const auto *first = reinterpret_cast<const std::byte *>(copy.from);
    copy.staged.assign(first, first + copy.bytes);
  }
  driver.enqueue(stream, {stream.context, std::move(copy)});
  if (isStaged)
    return CUDA_SUCCESS;
  driver.queue.finish(stream.tail);
  return driver.errorOf(stream.context);
}

CUresult copyOnDevice(Driver &driver, Stream &stream, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  if (bytes == 0)
    return CUDA_SUCCESS;
  if (!driver.memory.isOfDevice(to, bytes) || !driver.memory.isOfDevice(from, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  Copy copy;
  copy.to = to;
  copy.from = from;
  copy.bytes = bytes;
  return driver.enqueue(stream, {stream.context, std::move(copy)});
}

} // namespace

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream handle) {
  return enterStream(Entry::cuMemcpyHtoDAsync_v2, handle, [&](Driver &driver, Stream &stream) {
    return copyWithHost(driver, stream,
                        {Copy::Direction::ToDevice, to, reinterpret_cast<uint64_t>(from), bytes, false, {}});
  });
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream handle) {
  return enterStream(Entry::cuMemcpyDtoHAsync_v2, handle, [&](Driver &driver, Stream &stream) {
    return copyWithHost(driver, stream,
                        {Copy::Direction::ToHost, reinterpret_cast<uint64_t>(to), from, bytes, false, {}});
  });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle) {
  return enterStream(Entry::cuMemcpyDtoDAsync_v2, handle,
                     [&](Driver &driver, Stream &stream) { return copyOnDevice(driver, stream, to, from, bytes); });
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext toContext, CUdeviceptr from, CUcontext fromContext, size_t bytes,
                           CUstream handle) {
  return enterStream(Entry::cuMemcpyPeerAsync, handle, [&](Driver &driver, Stream &stream) {
    const Context *target = driver.contexts.find(idOf(toContext)), *source = driver.contexts.find(idOf(fromContext));
    if (!target || !source)
      return CUDA_ERROR_INVALID_CONTEXT;
    const auto isOf = [&](uint64_t address, const Context &context) {
      return driver.memory.isOfDevice(address, bytes) && driver.memory.deviceOf(address) == context.device;
    };
    if (bytes != 0 && (!isOf(to, *target) || !isOf(from, *source)))
      return CUDA_ERROR_INVALID_VALUE;
    return copyOnDevice(driver, stream, to, from, bytes);
  });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream handle) {
  return enterStream(Entry::cuMemsetD8Async, handle, [&](Driver &driver, Stream &stream) {
    if (bytes == 0)
      return CUDA_SUCCESS;
    if (!driver.memory.isOfDevice(to, bytes))
      return CUDA_ERROR_INVALID_VALUE;
    return driver.enqueue(stream, {stream.context, Fill{to, bytes, value}});
  });
}
