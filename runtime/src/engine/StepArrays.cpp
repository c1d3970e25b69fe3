// One region of k2rt_step_bytes (reserve.h) is carved into all arrays; logits have their own line in the certificate.
#include "engine/StepArrays.h"
#include "engine/Carver.h"
#include "k2rt/reserve.h"

namespace k2c::runtime {

Expected<StepArrays> StepArrays::allocate(const Manifest &manifest, Device &device) {
  const k2rt_limits &limits = manifest.limits;
  StepArrays a;
  const int64_t bytes = k2rt_step_bytes(&limits);
  Expected<std::byte *> arrays = device.allocate(bytes, "step arrays", MemoryUse::engine);
  if (!arrays)
    return arrays.takeError();
  Expected<std::byte *> logits = device.allocate(manifest.memory.logits, "logits", MemoryUse::engine);
  if (!logits)
    return logits.takeError();
  a.logits = reinterpret_cast<float *>(*logits);
  a.blockStride = k2rt_pages_per_sequence(&limits);
  Carver carver(*arrays, bytes);
  for (int32_t **rows : {&a.tokenIds, &a.positions, &a.rowSeq, &a.rowForm, &a.outputs, &a.samples})
    *rows = carver.take<int32_t>(limits.step_tokens);
  a.seqBegin = carver.take<int32_t>(limits.max_sequences + 1);
  a.lastSample = carver.take<int32_t>(limits.max_sequences);
  a.sampling = carver.take<k2rt_ir_sampling>(limits.max_sequences);
  a.history = carver.take<int32_t>(limits.max_sequences * (limits.max_context + 1));
  for (int64_t group = 0; group < limits.cache_groups; ++group) {
    a.blockTables.push_back(carver.take<int32_t>(limits.max_sequences * a.blockStride));
    a.stepTables.push_back(carver.take<int32_t>(limits.max_sequences * a.blockStride));
    a.seqLen.push_back(carver.take<int32_t>(limits.max_sequences));
    a.appendSlots.push_back(carver.take<int64_t>(limits.step_tokens));
  }
  if (!carver.fits())
    return Error{K2RT_OUT_OF_MEMORY, "step arrays", "do not fit k2rt_step_bytes of reserve.h", ""};
  return a;
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
