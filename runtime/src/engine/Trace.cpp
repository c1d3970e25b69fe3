// The memory of the rings.
#include "engine/Trace.h"
#include "base/FormatBytes.h"
#include <cerrno>
#include <ctime>
#include <sys/mman.h>
#include <unistd.h>

namespace k2c::runtime {

Expected<std::unique_ptr<Trace>> Trace::create(int32_t workers) {
  std::unique_ptr<Trace> trace(new Trace);
  const int64_t count = int64_t(workers) + otherRings;
  const size_t ringBytes = ringRecords * sizeof(TraceRecord), bytes = ringBytes * static_cast<size_t>(count);
  const int memory = ::memfd_create("k2rt-trace", MFD_CLOEXEC);
  if (memory < 0)
    return systemError("--trace", "cannot create the rings", errno);
  const bool sized = ::ftruncate(memory, static_cast<off_t>(bytes)) == 0;
  void *mapping = sized ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0) : MAP_FAILED;
  const int refused = errno;
  ::close(memory);
  if (mapping == MAP_FAILED)
    return systemError("--trace", "cannot map " + formatBytes(static_cast<int64_t>(bytes)) + " for the rings", refused);
  trace->mapping = mapping;
  trace->mappingBytes = bytes;
  for (int64_t ring = 0; ring < count; ++ring)
    trace->rings.push_back(Ring{reinterpret_cast<TraceRecord *>(static_cast<char *>(mapping) + ring * ringBytes)});
  return trace;
}

Trace::~Trace() {
  if (mapping)
    ::munmap(mapping, mappingBytes);
}

int64_t Trace::nowNs() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

int64_t Trace::lost() const {
  int64_t sum = 0;
  for (int32_t ring = 0; ring < static_cast<int32_t>(rings.size()); ++ring)
    sum += lost(ring);
  return sum;
}

} // namespace k2c::runtime
