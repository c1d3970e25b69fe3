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

/// Of the step; -1: the launch does not depend on rows.
static int64_t rowsOf(const k2rt_ir_grid &grid, const k2rt_ir_step &step) {
  if (grid.rows < 0)
    return -1;
  return *reinterpret_cast<const int64_t *>(reinterpret_cast<const std::byte *>(&step) + grid.rows);
}

std::string textOf(const RecordedLaunch &launch, const k2rt_ir_step &step, const Program &program) {
  const int64_t rows = rowsOf(launch.grid, step);
  std::string facts = launch.layer < 0 ? "" : "layer " + std::to_string(launch.layer);
  if (rows >= 0)
    facts += (facts.empty() ? "" : ", ") + std::to_string(rows) + (rows == 1 ? " row" : " rows");
  return "kernel " + shortened(program.kernelName(launch.kernel)) + (facts.empty() ? "" : " (" + facts + ")");
}

/// Rows are told where an item is some of them, all columns.
std::string placeOf(const RecordedLaunch &launch, int32_t worker, int64_t workersPerCta, const k2rt_ir_step &step) {
  std::string place = launch.layer < 0 ? "" : " in layer " + std::to_string(launch.layer);
  const k2rt_ir_grid &grid = launch.grid;
  const int64_t rows = rowsOf(grid, step), workers = launch.ctas * workersPerCta;
  if (rows <= 0 || grid.items != 1 || worker < 0 || worker >= workers)
    return place;
  const int64_t items = (rows * grid.slots + grid.rows_per_item - 1) / grid.rows_per_item;
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
