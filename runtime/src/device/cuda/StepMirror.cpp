// The layout: the step, its arrays; then, in pinned memory alone, what launches write and the outcome. The formula of
// its size is the certificate's.
#include "device/cuda/StepMirror.h"
#include "k2rt/reserve.h"
#include <algorithm>
#include <cstring>

namespace k2c::runtime {

/// Chooses a place for each array; the number of bytes that all take.
int64_t StepMirror::layOut(int64_t groups) {
  using Step = k2rt_ir_step;
  int64_t end = (sizeof(k2rt_ir_step) + 63) / 64 * 64;
  const auto place = [&end](int64_t size) {
    const int64_t begin = end;
    end += (size + 63) / 64 * 64;
    return begin;
  };
  const int64_t rows = limits.step_tokens, sequences = limits.max_sequences;
  for (const auto field : {&Step::token_ids, &Step::positions, &Step::row_seq, &Step::row_form})
    arrays.push_back({field, &Step::token_rows, 0, 4, place(rows * 4)});
  arrays.push_back({&Step::outputs, &Step::output_rows, 0, 4, place(rows * 4)});
  arrays.push_back({&Step::seq_begin, &Step::seq_rows, 1, 4, place((sequences + 1) * 4)});
  const int64_t tableBytes = k2rt_pages_per_sequence(&limits) * 4;
  ofGroups = {{&Step::seq_len, &Step::seq_rows, 4, 0, {}},
              {&Step::block_tables, &Step::seq_rows, tableBytes, 0, {}},
              {&Step::append_slots, &Step::token_rows, 8, 0, {}}};
  for (GroupArray &array : ofGroups) {
    array.pointers = place(groups * static_cast<int64_t>(sizeof(void *)));
    for (int64_t group = 0; group < groups; ++group)
      array.offsets.push_back(place((array.count == &Step::seq_rows ? sequences : rows) * array.bytes));
  }
  return end;
}

Expected<StepMirror> StepMirror::create(const Driver &driver, const Manifest &manifest, const StepOutcome &outcome,
                                        const k2rt_ir_step &results) {
  StepMirror mirror(manifest);
  mirror.driver = &driver;
  mirror.outcome = &outcome;
  mirror.results = results;
  mirror.bytes = mirror.layOut(manifest.limits.cache_groups);
  mirror.begunOffset = mirror.bytes;
  mirror.outcomeOffset = mirror.begunOffset + 64;
  const int64_t pinnedBytes = mirror.outcomeOffset + StepOutcome::bytesOf(manifest.limits.step_tokens);
  Expected<DeviceBytes> device = allocateOnDevice(driver, mirror.bytes, "step arrays");
  if (!device)
    return device.takeError();
  mirror.device = std::move(*device);
  Expected<PinnedBytes> pinned = allocatePinned(driver, pinnedBytes, "step arrays");
  if (!pinned)
    return pinned.takeError();
  mirror.pinned = std::move(*pinned);
  std::memset(mirror.pinned.get(), 0, static_cast<size_t>(pinnedBytes));
  for (const GroupArray &array : mirror.ofGroups)
    for (size_t group = 0; group < array.offsets.size(); ++group)
      mirror.pinnedAt<void *>(array.pointers)[group] = mirror.at<void>(array.offsets[group]);
  return mirror;
}

void StepMirror::setAddresses(k2rt_ir_step &step) const {
  for (const Array &array : arrays)
    step.*array.field = at<void>(array.offset);
  for (const GroupArray &array : ofGroups)
    step.*array.field = at<void>(array.pointers);
  step.block_stride = k2rt_pages_per_sequence(&limits);
  step.logits = results.logits;
  step.samples = step.earlier_samples = outcome->samples();
}

/// Of `step` and `wanted`, in which each array is there or not, those of `results`.
static void setCaptures(k2rt_ir_step &step, const k2rt_ir_step &wanted, const k2rt_ir_step &results) {
  using Step = k2rt_ir_step;
  for (const auto field : {&Step::forced_experts, &Step::forced_weights, &Step::capture_experts, &Step::capture_weights,
                           &Step::capture_hidden, &Step::capture_max_logit})
    step.*field = wanted.*field ? results.*field : nullptr;
}

void StepMirror::fill(const k2rt_ir_step &step) {
  for (const Array &array : arrays)
    if (const int64_t size = (step.*array.count + array.more) * array.bytes; size > 0)
      std::memcpy(pinnedAt<void>(array.offset), step.*array.field, static_cast<size_t>(size));
  for (const GroupArray &array : ofGroups)
    for (size_t group = 0; group < array.offsets.size(); ++group)
      if (const int64_t size = step.*array.count * array.bytes; size > 0)
        std::memcpy(pinnedAt<void>(array.offsets[group]), static_cast<void *const *>(step.*array.field)[group],
                    static_cast<size_t>(size));
  k2rt_ir_step &mirrored = *pinnedAt<k2rt_ir_step>(0);
  mirrored = {};
  mirrored.token_rows = step.token_rows;
  mirrored.output_rows = step.output_rows;
  mirrored.seq_rows = step.seq_rows;
  mirrored.layer_rows = step.layer_rows;
  mirrored.entering_rows = step.entering_rows;
  mirrored.earlier_rows = step.earlier_rows;
  setAddresses(mirrored);
  setCaptures(mirrored, step, results);
  std::fill_n(begunPlace(0), K2RT_GPU_BRANCHES, 0);
}

/// Of a step of `rows` rows, at most.
int64_t StepMirror::outputRowsOf(int64_t rows) const { return std::min(rows, outputRows); }

k2rt_ir_step StepMirror::recorded(int64_t rows) const {
  k2rt_ir_step step = {};
  step.token_rows = step.layer_rows = step.entering_rows = rows;
  step.output_rows = outputRowsOf(rows);
  step.seq_rows = std::min(rows, limits.max_sequences);
  setAddresses(step);
  setCaptures(step, results, results);
  return step;
}

Status StepMirror::copyToDevice(CUstream stream) const {
  return driver->call<&Cuda::cuMemcpyHtoDAsync_v2>(device.get(), static_cast<const void *>(pinned.get()),
                                                   static_cast<size_t>(bytes), stream);
}

Status StepMirror::copyBack(int64_t rows, CUstream stream) const {
  return outcome->copyTo(pinnedAt<void>(outcomeOffset), outputRowsOf(rows), stream);
}

std::array<int32_t, K2RT_GPU_BRANCHES> StepMirror::begun() const {
  std::array<int32_t, K2RT_GPU_BRANCHES> numbers;
  for (int32_t branch = 0; branch < K2RT_GPU_BRANCHES; ++branch)
    numbers[branch] = __atomic_load_n(begunPlace(branch), __ATOMIC_RELAXED); // a kernel may be writing it
  return numbers;
}

} // namespace k2c::runtime
