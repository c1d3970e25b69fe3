// The planned batch as a k2rt_ir_step: rows of one sequence are contiguous and ascend in position.
#include "engine/Scheduler.h"
#include <algorithm>
#include <limits>

namespace k2c::runtime {

void Scheduler::build(RankPlan &rank) {
  StepArrays &a = rank.arrays;
  k2rt_ir_step &step = rank.step;
  step = a.step();
  rank.targets.resize(static_cast<size_t>(manifest.outputRows()));
  bool samples = false;
  for (size_t row = 0; row < rank.batch.size(); ++row) {
    buildRows(rank, *rank.batch[row], static_cast<int64_t>(row));
    samples |= rank.batch[row]->request.maxNew > 0;
  }
  a.seqBegin[rank.batch.size()] = static_cast<int32_t>(step.token_rows);
  step.layer_rows = step.token_rows;
  step.seq_rows = static_cast<int64_t>(rank.batch.size());
  // Commands that only read prompts may want more rows than there are sequences; they sample nothing.
  step.sampling = samples ? a.sampling : nullptr;
  std::fill_n(a.samples, step.output_rows, -1);
  step.capture_experts = captures.experts;
  step.capture_weights = captures.weights;
  step.capture_hidden = captures.hidden;
  step.capture_max_logit = captures.maxLogits;
  if (captures.forcedExperts)
    buildForced(rank);
  step.forced_experts = captures.forcedExperts;
  step.forced_weights = captures.forcedWeights;
}

void Scheduler::buildRows(RankPlan &rank, Sequence &sequence, int64_t sequenceRow) {
  StepArrays &a = rank.arrays;
  const int64_t named = sequence.sampleRow;
  k2rt_ir_step &step = rank.step;
  a.seqBegin[sequenceRow] = static_cast<int32_t>(step.token_rows);
  a.lastSample[sequenceRow] = sequence.generated() > 0 ? sequence.ids[sequence.tokens - 1] : -1;
  for (size_t group = 0; group < manifest.groups.size(); ++group)
    buildGroup(a, sequence, sequenceRow, step.token_rows, group);
  for (int64_t i = 0; i < sequence.planned; ++i) {
    const int64_t row = step.token_rows++;
    const int64_t position = sequence.cached + i;
    a.tokenIds[row] = position < sequence.tokens ? sequence.ids[position] : static_cast<int32_t>(-1 - named);
    if (position == sequence.tokens)
      step.earlier_rows = rank.last().outputRows;
    a.positions[row] = static_cast<int32_t>(position);
    a.rowSeq[row] = static_cast<int32_t>(sequenceRow);
    a.rowForm[row] = position < sequence.promptTokens ? sequence.promptForm : manifest.generatedForm();
    if (!isOutputRow(sequence, position))
      continue;
    if (step.output_rows < manifest.limits.max_sequences) {
      a.sampling[step.output_rows] = sequence.request.sampling;
      a.sampling[step.output_rows].position = position + 1;
    }
    if (position + 1 >= sequence.promptTokens)
      sequence.sampleRow = step.output_rows;
    rank.targets[step.output_rows] = position + 1 < sequence.promptTokens ? sequence.ids[position + 1] : -1;
    a.outputs[step.output_rows++] = static_cast<int32_t>(row);
  }
}

/// Block table, length and append slots of a sequence whose rows begin at `firstRow`, in one cache group.
void Scheduler::buildGroup(StepArrays &a, const Sequence &sequence, int64_t sequenceRow, int64_t firstRow,
                           size_t group) {
  std::copy_n(a.blockTables[group] + sequence.slot * a.blockStride, a.blockStride,
              a.stepTables[group] + sequenceRow * a.blockStride);
  a.seqLen[group][sequenceRow] = static_cast<int32_t>(manifest.groups[group].length(sequence.cached));
  a.fillSlots(group, sequenceRow, firstRow, sequence.planned);
}

/// Copies each row's forced routes, layer by layer; rows without any are left to the router.
void Scheduler::buildForced(const RankPlan &rank) {
  const StepArrays &a = rank.arrays;
  const int64_t rows = rank.step.token_rows, k = manifest.topK;
  for (int64_t layer = 0; layer < static_cast<int64_t>(manifest.moeLayers.size()); ++layer)
    for (int64_t row = 0; row < rows; ++row) {
      const ForcedRoutes *forced = rank.batch[a.rowSeq[row]]->request.forced;
      const int64_t to = (layer * rows + row) * k;
      const int64_t from = forced ? (layer * forced->tokens + a.positions[row]) * k : 0;
      const bool has = forced && a.positions[row] < forced->tokens;
      for (int64_t j = 0; j < k; ++j) {
        captures.forcedExperts[to + j] = has ? forced->experts[from + j] : K2RT_ROUTE_FREE;
        captures.forcedWeights[to + j] = has ? forced->weights[from + j] : std::numeric_limits<float>::quiet_NaN();
      }
    }
}

} // namespace k2c::runtime
