//===- Report.cpp - What the driver says ----------------------------------===//
#include "Report.h"
#include "Driver.h"
#include "base/JsonText.h"

#include <cerrno>
#include <cstdio>

namespace k2c::emulated {

void say(const std::string &line) { std::fprintf(stderr, "k2c: emulated driver: %s\n", line.c_str()); }

CUresult refuse(CUresult error, const std::string &message) {
  say(message);
  return error;
}

namespace {

struct Alive {
  const char *key, *name;
  uint64_t count;
};

std::vector<Alive> aliveOf(Driver &driver) {
  uint64_t allocations = 0, pinned = 0, contexts = 0;
  for (const auto &[address, allocation] : driver.memory.all())
    if (allocation.context != 0)
      ++(allocation.owner == hostOwner ? pinned : allocations);
  for (const auto &[id, context] : driver.contexts)
    contexts += context.retained;
  return {{"contexts", "contexts retained", contexts},
          {"allocations", "allocations", allocations},
          {"pinned", "pinned allocations", pinned},
          {"streams", "streams", driver.streams.size()},
          {"events", "events", driver.events.size()},
          {"libraries", "libraries", driver.libraries.size()},
          {"graphs", "graphs", driver.graphs.size()},
          {"executables", "executable graphs", driver.executables.size()},
          {"lost", "objects whose context has ended", driver.statistics.lost}};
}

void writeCalls(Driver &driver, const std::vector<Alive> &alive) {
  nlohmann::ordered_json report;
  const Statistics &counted = driver.statistics;
  for (size_t i = 0; i < entryCount; ++i)
    if (counted.calls[i] != 0)
      report["calls"][entryNames[i]] = counted.calls[i];
  report["graph_launches"] = counted.graphLaunches;
  report["kernels"] = counted.kernels;
  report["instructions"] = counted.instructions;
  report["late_allocations"] = counted.lateAllocations;
  for (const Device &device : driver.devices)
    report["peak_bytes"].push_back(device.peakBytes);
  for (const Alive &kind : alive)
    report["alive"][kind.key] = kind.count;
  std::FILE *file = std::fopen(driver.settings.callsFile.c_str(), "w");
  const std::string text = jsonText(report, 2) + "\n";
  const bool isWritten = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (!(file && std::fclose(file) == 0 && isWritten))
    say(systemError(driver.settings.callsFile, "cannot be written", errno).text());
}

} // namespace

ReportAtExit::~ReportAtExit() {
  const std::lock_guard<std::mutex> lock(driver.mutex);
  const std::vector<Alive> alive = aliveOf(driver);
  if (!driver.settings.callsFile.empty())
    writeCalls(driver, alive);
  std::string left;
  for (const Alive &kind : alive)
    if (kind.count != 0)
      left += (left.empty() ? "" : ", ") + std::to_string(kind.count) + " " + kind.name;
  if (!left.empty())
    say("the process ends with " + left);
}

} // namespace k2c::emulated
