// Arrays stay where they are: a pointer into each is where a part begins. Output rows are numbered from the first of a
// step, so those of a slice are written over in place: nobody reads them of a whole that is gathered.
#include "engine/StepRows.h"
#include <algorithm>

namespace k2c::runtime {

RowRange sliceOf(int64_t rows, int64_t slice, int64_t slices) {
  return {rows * slice / slices, rows * (slice + 1) / slices};
}

std::vector<RowRange> rowsOfSlice(int64_t rows, int64_t slice, int64_t slices, bool inHalves) {
  if (!inHalves)
    return {sliceOf(rows, slice, slices)};
  const int64_t cut = firstHalf(rows);
  const RowRange second = sliceOf(rows - cut, slice, slices);
  return {sliceOf(cut, slice, slices), {cut + second.begin, cut + second.end}};
}

/// `entries` further; null stays null.
template <class T> static void advance(void *&array, int64_t entries) {
  if (array)
    array = static_cast<T *>(array) + entries;
}

void skipRows(k2rt_ir_step &step, const Manifest &manifest, int64_t rows, int64_t outputs) {
  for (void **each : {&step.token_ids, &step.positions, &step.row_form})
    advance<int32_t>(*each, rows);
  advance<float>(step.logits, outputs * manifest.vocab);
  advance<int32_t>(step.samples, outputs);
  advance<k2rt_ir_sampling>(step.sampling, outputs);
  for (void **experts : {&step.forced_experts, &step.capture_experts})
    advance<int32_t>(*experts, rows * manifest.topK);
  for (void **weights : {&step.forced_weights, &step.capture_weights})
    advance<float>(*weights, rows * manifest.topK);
  advance<float>(step.capture_hidden, rows * manifest.hidden);
}

k2rt_ir_step takeSlice(k2rt_ir_step &whole, const Manifest &manifest, int64_t slice, int64_t slices) {
  const RowRange own = sliceOf(whole.token_rows, slice, slices);
  auto *outputs = static_cast<int32_t *>(whole.outputs), *end = outputs + whole.output_rows;
  auto *first = std::lower_bound(outputs, end, static_cast<int32_t>(own.begin));
  auto *last = std::lower_bound(first, end, static_cast<int32_t>(own.end));
  k2rt_ir_step step = whole;
  step.token_rows = own.rows();
  step.entering_rows = whole.entering_rows > 0 ? own.rows() : 0;
  step.output_rows = last - first;
  step.outputs = first;
  skipRows(step, manifest, own.begin, first - outputs);
  advance<int32_t>(step.row_seq, own.begin);
  for (int32_t *output = first; output != last; ++output)
    *output -= static_cast<int32_t>(own.begin);
  step.gathered = &whole;
  whole.output_rows = 0;
  return step;
}

} // namespace k2c::runtime
