// Numbers of launches come from the device's memory: one that no launch has is passed over.
#include "device/cuda/RecordedStep.h"
#include "base/Utf8.h"
#include <algorithm>

namespace k2c::runtime {

std::vector<const RecordedLaunch *> RecordedStep::latest(const std::array<int32_t, K2RT_GPU_BRANCHES> &begun) const {
  std::vector<const RecordedLaunch *> last;
  for (const int32_t number : begun) {
    if (number < 1 || static_cast<size_t>(number) > launches.size())
      continue;
    const RecordedLaunch &launch = launches[static_cast<size_t>(number) - 1];
    if (!last.empty() && launch.group > last[0]->group)
      last.clear();
    if (last.empty() || launch.group == last[0]->group)
      last.push_back(&launch);
  }
  std::sort(last.begin(), last.end());
  return last;
}

int64_t RecordedLaunch::rows(const k2rt_ir_step &step) const {
  if (grid.rows < 0)
    return -1;
  return *reinterpret_cast<const int64_t *>(reinterpret_cast<const std::byte *>(&step) + grid.rows);
}

int64_t RecordedLaunch::items(const k2rt_ir_step &step) const {
  if (grid.rows < 0)
    return grid.items;
  return (rows(step) * grid.slots + grid.rows_per_item - 1) / grid.rows_per_item * grid.items;
}

Status RecordedStep::trace(const Driver &driver, const k2rt_ir_step &step, int64_t number, int64_t beginNs,
                           Trace &trace) const {
  for (size_t i = 0; i < times.kernels.size(); ++i) {
    const RecordedLaunch &launch = launches[i];
    const Event *const ends[] = {&times.kernels[i].first, &times.kernels[i].second};
    int64_t ns[2];
    for (int end = 0; end < 2; ++end) {
      float milliseconds = 0;
      if (Status known = driver.call<&Cuda::cuEventElapsedTime>(&milliseconds, times.begin.get(), ends[end]->get());
          !known)
        return known;
      ns[end] = beginNs + static_cast<int64_t>(double(milliseconds) * 1e6);
    }
    trace.record(launch.branch,
                 {ns[0], ns[1], 0, launch.items(step), step.token_rows, number, launch.kernel, /*variant=*/0});
  }
  return {};
}

std::string textOf(const RecordedLaunch &launch, const k2rt_ir_step &step, const Program &program) {
  const int64_t rows = launch.rows(step);
  std::string facts = launch.layer < 0 ? "" : "layer " + std::to_string(launch.layer);
  if (rows >= 0)
    facts += (facts.empty() ? "" : ", ") + std::to_string(rows) + (rows == 1 ? " row" : " rows");
  return "kernel " + shortened(program.kernelName(launch.kernel)) + (facts.empty() ? "" : " (" + facts + ")");
}

std::string textOf(const std::vector<const RecordedLaunch *> &launches, const char *separator, const k2rt_ir_step &step,
                   const Program &program) {
  std::vector<std::string> told;
  std::string all;
  for (const RecordedLaunch *launch : launches) {
    std::string text = textOf(*launch, step, program);
    if (std::find(told.begin(), told.end(), text) != told.end())
      continue;
    all += (all.empty() ? "" : separator) + text;
    told.push_back(std::move(text));
  }
  return all;
}

/// Rows are told where an item is some of them, all columns.
std::string placeOf(const RecordedLaunch &launch, int32_t worker, int64_t workersPerCta, const k2rt_ir_step &step) {
  std::string place = launch.layer < 0 ? "" : " in layer " + std::to_string(launch.layer);
  const k2rt_ir_grid &grid = launch.grid;
  const int64_t rows = launch.rows(step), workers = launch.ctas * workersPerCta;
  if (rows <= 0 || grid.items != 1 || worker < 0 || worker >= workers)
    return place;
  const int64_t items = launch.items(step);
  const int64_t begin = worker * items / workers, end = (worker + 1) * items / workers;
  if (begin >= end)
    return place;
  const int64_t first = begin * grid.rows_per_item / grid.slots;
  const int64_t last = (std::min(end * grid.rows_per_item, rows * grid.slots) - 1) / grid.slots;
  place += place.empty() ? " in " : ", ";
  return place + (first == last ? "row " + std::to_string(first)
                                : "rows " + std::to_string(first) + " to " + std::to_string(last));
}

} // namespace k2c::runtime
