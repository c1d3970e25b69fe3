// One region of k2rt_step_bytes (reserve.h) is carved into all arrays; logits have their own line in the certificate.
#include "engine/StepArrays.h"
#include "engine/Carver.h"
#include "k2rt/reserve.h"
#include <cstdlib>

namespace k2c::runtime {

void StepArrays::Free::operator()(std::byte *memory) const { std::free(memory); }

Expected<StepArrays> StepArrays::allocate(const Manifest &manifest, Device &device) {
  StepArrays a;
  Expected<std::byte *> arrays = device.allocate(k2rt_step_bytes(&manifest.limits), "step arrays", MemoryUse::engine);
  if (!arrays)
    return arrays.takeError();
  Expected<std::byte *> logits = device.allocate(manifest.memory.logits, "logits", MemoryUse::engine);
  if (!logits)
    return logits.takeError();
  a.logits = reinterpret_cast<float *>(*logits);
  if (Status carved = a.carve(manifest, *arrays); !carved)
    return carved.takeError();
  return a;
}

Expected<StepArrays> StepArrays::allocateOwn(const Manifest &manifest) {
  StepArrays a;
  a.logits = nullptr;
  a.own.reset(static_cast<std::byte *>(std::calloc(static_cast<size_t>(k2rt_step_bytes(&manifest.limits)), 1)));
  if (!a.own)
    return Error{K2RT_OUT_OF_MEMORY, "step arrays", "the system refuses memory for those of another rank", ""};
  if (Status carved = a.carve(manifest, a.own.get()); !carved)
    return carved.takeError();
  return a;
}

Status StepArrays::carve(const Manifest &manifest, std::byte *memory) {
  const k2rt_limits &limits = manifest.limits;
  blockStride = k2rt_pages_per_sequence(&limits);
  Carver carver(memory, k2rt_step_bytes(&limits));
  for (int32_t **rows : {&tokenIds, &positions, &rowSeq, &rowForm, &outputs, &samples})
    *rows = carver.take<int32_t>(limits.step_tokens);
  seqBegin = carver.take<int32_t>(limits.max_sequences + 1);
  lastSample = carver.take<int32_t>(limits.max_sequences);
  sampling = carver.take<k2rt_ir_sampling>(limits.max_sequences);
  history = carver.take<int32_t>(limits.max_sequences * (limits.max_context + 1));
  for (int64_t group = 0; group < limits.cache_groups; ++group) {
    blockTables.push_back(carver.take<int32_t>(limits.max_sequences * blockStride));
    stepTables.push_back(carver.take<int32_t>(limits.max_sequences * blockStride));
    seqLen.push_back(carver.take<int32_t>(limits.max_sequences));
    appendSlots.push_back(carver.take<int64_t>(limits.step_tokens));
  }
  if (!carver.fits())
    return Error{K2RT_OUT_OF_MEMORY, "step arrays", "do not fit k2rt_step_bytes of reserve.h", ""};
  return {};
}

void StepArrays::fillSlots(size_t group, int64_t sequenceRow, int64_t firstRow, int64_t rows) {
  const int32_t *table = stepTables[group] + sequenceRow * blockStride;
  const int64_t length = seqLen[group][sequenceRow];
  int64_t *slots = appendSlots[group] + firstRow;
  for (int64_t token = length; token < length + rows; ++token)
    *slots++ = int64_t(table[token / K2RT_PAGE_TOKENS]) * K2RT_PAGE_TOKENS + token % K2RT_PAGE_TOKENS;
}

k2rt_ir_step StepArrays::step() const {
  k2rt_ir_step step = {};
  step.token_ids = tokenIds;
  step.positions = positions;
  step.row_seq = rowSeq;
  step.row_form = rowForm;
  step.seq_begin = seqBegin;
  step.seq_len = const_cast<int32_t **>(seqLen.data());
  step.block_tables = const_cast<int32_t **>(stepTables.data());
  step.block_stride = blockStride;
  step.append_slots = const_cast<int64_t **>(appendSlots.data());
  step.outputs = outputs;
  step.logits = logits;
  step.last_sample = lastSample;
  step.samples = samples;
  return step;
}

} // namespace k2c::runtime
