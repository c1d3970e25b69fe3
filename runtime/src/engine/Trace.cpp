// Perfetto reads Chrome's trace events: complete events ("X") with times in microseconds, one track per worker.
#include "engine/Trace.h"
#include "base/FormatBytes.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <sys/mman.h>
#include <unistd.h>

namespace k2c::runtime {

Expected<std::unique_ptr<Trace>> Trace::create(const std::string &path, int32_t workers) {
  std::unique_ptr<Trace> trace(new Trace);
  trace->path = path;
  trace->file = std::fopen(path.c_str(), "we");
  if (!trace->file)
    return Error{K2RT_INVALID_ARGUMENT, "--trace " + path, std::string("cannot be written: ") + std::strerror(errno),
                 "name a file in an existing folder"};
  const size_t ringBytes = ringRecords * sizeof(TraceRecord);
  const size_t bytes = ringBytes * (static_cast<size_t>(workers) + 1);
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
  for (int32_t ring = 0; ring <= workers; ++ring)
    trace->rings.push_back(Ring{reinterpret_cast<TraceRecord *>(static_cast<char *>(mapping) + ring * ringBytes)});
  return trace;
}

Trace::~Trace() {
  if (mapping)
    ::munmap(mapping, mappingBytes);
  if (file)
    std::fclose(file);
}

int64_t Trace::nowNs() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

/// Kernel and variant names come from a program: anything but plain characters is replaced.
static std::string plain(const std::string &name) {
  std::string text = name;
  for (char &c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\' || static_cast<unsigned char>(c) > 0x7e)
      c = '?';
  return text;
}

static void writeRecord(FILE *file, const TraceRecord &record, size_t track, bool isStep, const Program &program) {
  const std::string name = isStep ? "step" : plain(program.kernelName(record.kernel));
  std::fprintf(file, ",\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%zu,\"ts\":%.3f,\"dur\":%.3f,\"args\":{",
               name.c_str(), track, record.beginNs / 1e3, (record.endNs - record.beginNs) / 1e3);
  if (isStep)
    std::fprintf(file, "\"sequences\":%lld,\"wanted\":%lld,", static_cast<long long>(record.itemBegin),
                 static_cast<long long>(record.itemEnd));
  else
    std::fprintf(file, "\"variant\":\"%s\",\"worker\":%zu,\"begin\":%lld,\"end\":%lld,",
                 plain(program.variantName(record.kernel, record.variant)).c_str(), track,
                 static_cast<long long>(record.itemBegin), static_cast<long long>(record.itemEnd));
  std::fprintf(file, "\"rows\":%lld,\"step\":%lld}}", static_cast<long long>(record.rows),
               static_cast<long long>(record.step));
}

Status Trace::write(const Program &program) {
  int64_t lost = 0;
  std::fprintf(file, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
                     "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"k2rt\"}}");
  for (size_t track = 0; track < rings.size(); ++track) {
    const bool isStep = track + 1 == rings.size();
    const std::string name = isStep ? "steps" : "worker " + std::to_string(track);
    std::fprintf(file, ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%zu,\"args\":{\"name\":\"%s\"}}",
                 track, name.c_str());
    const Ring &ring = rings[track];
    const int64_t first = std::max<int64_t>(0, ring.written - ringRecords);
    lost += first;
    for (int64_t i = first; i < ring.written; ++i)
      writeRecord(file, ring.records[i % ringRecords], track, isStep, program);
  }
  std::fprintf(file, "\n],\"otherData\":{\"lost_records\":%lld}}\n", static_cast<long long>(lost));
  const bool failed = std::fflush(file) != 0 || std::ferror(file) != 0;
  const int reason = errno;
  const bool closed = std::fclose(std::exchange(file, nullptr)) == 0;
  if (failed || !closed)
    return Error{K2RT_SYSTEM, "--trace " + path,
                 std::string("could not be written completely: ") + std::strerror(failed ? reason : errno),
                 "free space on its disk"};
  return {};
}

} // namespace k2c::runtime
