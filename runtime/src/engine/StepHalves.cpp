// What an array of the whole has at another place is reached by a pointer into it; what counts rows or sequences from
// the first of a step is counted anew: beginnings, rows of sequences, output rows, lengths.
#include "engine/StepHalves.h"
#include "engine/StepRows.h"
#include <algorithm>

namespace k2c::runtime {

StepHalves::StepHalves(const Manifest &manifest) : manifest(manifest) {
  const auto rows = static_cast<size_t>(manifest.limits.step_tokens);
  const auto sequences = static_cast<size_t>(manifest.limits.max_sequences);
  firstBegin.resize(sequences + 1);
  secondBegin.resize(sequences + 1);
  rowSeq.resize(rows);
  outputs.resize(rows);
  lengths.assign(manifest.groups.size(), std::vector<int32_t>(sequences));
  for (std::vector<int32_t> &ofGroup : lengths)
    lengthsOf.push_back(ofGroup.data());
  tablesOf.resize(lengths.size());
  slotsOf.resize(lengths.size());
}

const k2rt_ir_step &StepHalves::cut(const k2rt_ir_step &whole) {
  const int64_t at = firstHalf(whole.token_rows);
  first = second = whole;
  first.token_rows = at;
  second.token_rows = whole.token_rows - at;
  first.entering_rows = whole.entering_rows > 0 ? first.token_rows : 0;
  second.entering_rows = whole.entering_rows > 0 ? second.token_rows : 0;
  cutSequences(whole, at);
  shiftRows(whole, at);
  first.second = &second;
  return first;
}

/// Sequences of either half, the one that the cut goes through in both.
void StepHalves::cutSequences(const k2rt_ir_step &whole, int64_t at) {
  const auto *begin = static_cast<const int32_t *>(whole.seq_begin);
  const int32_t *end = std::upper_bound(begin, begin + whole.seq_rows, static_cast<int32_t>(at) - 1);
  first.seq_rows = end - begin; // those that begin before the cut
  const bool isCut = first.seq_rows > 0 && begin[first.seq_rows] > at;
  const int64_t from = first.seq_rows - isCut;
  second.seq_rows = whole.seq_rows - from;
  std::copy_n(begin, first.seq_rows, firstBegin.begin());
  firstBegin[first.seq_rows] = static_cast<int32_t>(at);
  for (int64_t s = 0; s <= second.seq_rows; ++s)
    secondBegin[s] = std::max<int32_t>(begin[from + s] - static_cast<int32_t>(at), 0);
  first.seq_begin = firstBegin.data();
  second.seq_begin = secondBegin.data();
  for (size_t group = 0; group < lengths.size(); ++group) {
    const int32_t *ofWhole = static_cast<int32_t *const *>(whole.seq_len)[group] + from;
    std::copy_n(ofWhole, second.seq_rows, lengths[group].begin());
    if (isCut)
      lengths[group][0] += static_cast<int32_t>(at) - begin[from];
    tablesOf[group] = static_cast<int32_t *const *>(whole.block_tables)[group] + from * whole.block_stride;
    slotsOf[group] = static_cast<int64_t *const *>(whole.append_slots)[group] + at;
  }
  second.seq_len = lengthsOf.data();
  second.block_tables = tablesOf.data();
  second.append_slots = slotsOf.data();
  const auto *sequenceOf = static_cast<const int32_t *>(whole.row_seq);
  for (int64_t row = at; row < whole.token_rows; ++row)
    rowSeq[row - at] = sequenceOf[row] - static_cast<int32_t>(from);
  second.row_seq = rowSeq.data();
  second.last_sample = static_cast<int32_t *>(second.last_sample) + from;
}

/// All else that has an entry for each row, or for each output row.
void StepHalves::shiftRows(const k2rt_ir_step &whole, int64_t at) {
  const auto *wanted = static_cast<const int32_t *>(whole.outputs);
  first.output_rows = std::lower_bound(wanted, wanted + whole.output_rows, static_cast<int32_t>(at)) - wanted;
  second.output_rows = whole.output_rows - first.output_rows;
  for (int64_t i = 0; i < second.output_rows; ++i)
    outputs[i] = wanted[first.output_rows + i] - static_cast<int32_t>(at);
  second.outputs = outputs.data();
  skipRows(second, manifest, at, first.output_rows);
}

} // namespace k2c::runtime
