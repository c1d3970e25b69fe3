// Chrome's trace events: complete events ("X") of launches and steps, a track for each worker and one for steps. Two
// collectives may be under way at once, so they are asynchronous events ("b" and "e"), which readers lay out beside
// each other. Times are in microseconds.
#include "engine/TraceFile.h"
#include <algorithm>
#include <iterator>
#include <utility>

namespace k2c::runtime {

Expected<std::unique_ptr<TraceFile>> TraceFile::create(const std::string &path) {
  Expected<OutputFile> created = OutputFile::create("--trace", path);
  if (!created)
    return created.takeError();
  return std::unique_ptr<TraceFile>(new TraceFile(std::move(*created)));
}

/// Kernel and variant names come from a program: anything but plain characters is replaced.
static std::string plain(const std::string &name) {
  std::string text = name;
  for (char &c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\' || static_cast<unsigned char>(c) > 0x7e)
      c = '?';
  return text;
}

void TraceFile::beginRank(int32_t rank, int64_t ranks, int32_t ofWorkers, const std::string &track) {
  process = rank + 1;
  workers = ofWorkers;
  const std::string name = ranks > 1 ? "rank " + std::to_string(rank) : "k2rt";
  std::fprintf(file, "%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"%s\"}}",
               hasEvents ? ",\n" : "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", process, name.c_str());
  hasEvents = true;
  for (int32_t number = 0; number <= workers; ++number)
    std::fprintf(file, ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"%s\"}}",
                 process, number, (number == workers ? "steps" : track + " " + std::to_string(number)).c_str());
}

/// What a site does; of those behind the program's own, what ranks tell each other of a step.
static std::string nameOfSite(int64_t site, const Manifest &manifest) {
  const std::vector<CollectiveFacts> &sites = manifest.ranks.collectives;
  const auto count = static_cast<int64_t>(sites.size());
  const char *others[] = {"records", "results", "loaded", "counters"};
  if (site < 0 || site >= count + static_cast<int64_t>(std::size(others)))
    return "?";
  if (site >= count)
    return others[site - count];
  const CollectiveFacts &facts = sites[static_cast<size_t>(site)];
  // Both ends of stages are of the site where rows are received.
  const std::string op = facts.axis == K2RT_AXIS_PP ? "send, receive" : facts.name;
  return op + " " + facts.group + " @" + std::to_string(site);
}

void TraceFile::writeCollective(const TraceRecord &record, const Manifest &manifest) {
  const std::string name = nameOfSite(record.kernel, manifest);
  const auto id = static_cast<long long>(collectives++);
  const auto event = [&](const char *phase, int64_t ns) {
    std::fprintf(file, ",\n{\"name\":\"%s\",\"cat\":\"collective\",\"ph\":\"%s\",\"id\":%lld,\"pid\":%d,\"ts\":%.3f",
                 name.c_str(), phase, id, process, static_cast<double>(ns) / 1e3);
  };
  event("b", record.beginNs);
  std::fprintf(file, ",\"args\":{\"layer\":%d,\"step\":%lld,\"bytes\":%lld,\"waited_us\":%.3f,\"waited_for\":%lld}}",
               record.variant, static_cast<long long>(record.step), static_cast<long long>(record.rows),
               static_cast<double>(std::max<int64_t>(record.endNs - record.itemBegin, 0)) / 1e3,
               static_cast<long long>(record.itemEnd));
  event("e", record.endNs);
  std::fprintf(file, "}");
}

void TraceFile::write(int32_t ring, const TraceRecord &record, const Program &program, const Manifest &manifest) {
  if (ring > workers)
    return writeCollective(record, manifest);
  const bool isStep = ring == workers;
  const std::string name = isStep ? "step" : plain(program.kernelName(record.kernel));
  std::fprintf(file, ",\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{",
               name.c_str(), process, ring, static_cast<double>(record.beginNs) / 1e3,
               static_cast<double>(record.endNs - record.beginNs) / 1e3);
  if (isStep)
    std::fprintf(file, "\"sequences\":%lld,\"wanted\":%lld,", static_cast<long long>(record.itemBegin),
                 static_cast<long long>(record.itemEnd));
  else
    std::fprintf(file, "\"variant\":\"%s\",\"worker\":%d,\"begin\":%lld,\"end\":%lld,",
                 plain(program.variantName(record.kernel, record.variant)).c_str(), ring,
                 static_cast<long long>(record.itemBegin), static_cast<long long>(record.itemEnd));
  std::fprintf(file, "\"rows\":%lld,\"step\":%lld}}", static_cast<long long>(record.rows),
               static_cast<long long>(record.step));
}

void TraceFile::write(const Trace &trace, int32_t rank, const Program &program, const Manifest &manifest) {
  beginRank(rank, manifest.ranks.count, trace.workers(), manifest.device ? "branch" : "worker");
  for (int32_t ring = 0; ring < trace.workers() + Trace::otherRings; ++ring)
    for (int64_t i = 0; i < trace.count(ring); ++i)
      write(ring, trace.at(ring, i), program, manifest);
}

void TraceFile::writeLoads(int64_t layer, const ExpertLoads &loads, std::optional<double> balancedness) {
  std::fprintf(file, "%s\"%lld\":{", hasLoads ? ",\n" : "\n],\"otherData\":{\"layers\":{\n",
               static_cast<long long>(layer));
  hasLoads = true;
  if (balancedness)
    std::fprintf(file, "\"balancedness\":%.17g,", *balancedness);
  std::fprintf(file, "\"mean_load\":%.17g,\"dead\":[", loads.mean());
  const char *comma = "";
  for (const int32_t expert : loads.dead())
    std::fprintf(file, "%s%d", std::exchange(comma, ","), expert);
  std::fprintf(file, "],\"hot\":[");
  comma = "";
  for (const int32_t expert : loads.hot())
    std::fprintf(file, "%s{\"expert\":%d,\"load\":%lld}", std::exchange(comma, ","), expert,
                 static_cast<long long>(loads.of(expert)));
  std::fprintf(file, "]}");
}

Status TraceFile::finish(int64_t lost) {
  std::fprintf(file, "%s\"lost_records\":%lld}}\n", hasLoads ? "},\n" : "\n],\"otherData\":{",
               static_cast<long long>(lost));
  return output.finish();
}

} // namespace k2c::runtime
