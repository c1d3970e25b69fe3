//===- Memory.cpp - What probes read and write ----------------------------===//
#include "Memory.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace k2c::calibration {

Expected<Memory> Memory::map(Bytes bytes) {
  void *base = mmap(nullptr, size_t(bytes.value), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    return Error{"calibration", "cannot map " + format(bytes) + ": " + std::strerror(errno), "free memory"};
  // As the pages of a program's weights, cache and arena.
  madvise(base, size_t(bytes.value), MADV_HUGEPAGE);
  std::memset(base, 0x3c, size_t(bytes.value));
  return Memory(static_cast<char *>(base), bytes.value);
}

Memory::~Memory() {
  if (base)
    munmap(base, size_t(bytes));
}

void *Buffers::take(int64_t size) {
  int64_t rounded = (size + 4095) / 4096 * 4096;
  if (rounded > memory.size() - used)
    return nullptr;
  void *part = memory.data() + used;
  used += rounded;
  return part;
}

ProbeStep::ProbeStep(int64_t sequences, int64_t cached, int64_t tokens, int32_t form) {
  int64_t stride = (cached + tokens + 63) / 64;
  for (int64_t s = 0; s < sequences; ++s) {
    seqBegin.push_back(int32_t(s * tokens));
    seqLen.push_back(int32_t(cached));
    for (int64_t page = 0; page < stride; ++page)
      table.push_back(int32_t(s * stride + page));
    for (int64_t t = 0; t < tokens; ++t) {
      int64_t position = cached + t;
      outputs.push_back(int32_t(positions.size()));
      positions.push_back(int32_t(position));
      rowSeq.push_back(int32_t(s));
      rowForm.push_back(form);
      ids.push_back(0);
      slots.push_back((s * stride + position / 64) * 64 + position % 64);
    }
  }
  seqBegin.push_back(int32_t(sequences * tokens));
  tables = table.data();
  lengths = seqLen.data();
  slotLists = slots.data();
  step.token_rows = step.layer_rows = step.output_rows = sequences * tokens;
  step.seq_rows = sequences;
  step.token_ids = ids.data();
  step.positions = positions.data();
  step.row_seq = rowSeq.data();
  step.row_form = rowForm.data();
  step.seq_begin = seqBegin.data();
  step.seq_len = &lengths;
  step.block_tables = &tables;
  step.block_stride = stride;
  step.append_slots = &slotLists;
  step.outputs = outputs.data();
}

void fillRouting(int64_t tokens, int64_t experts, int64_t topK, int32_t *chosen, int32_t *permutation) {
  int64_t routes = tokens * topK;
  for (int64_t r = 0; r < routes; ++r)
    chosen[r] = int32_t(r % experts);
  int32_t *routeOfSlot = permutation + experts + 1, *slotOfRoute = routeOfSlot + routes, slot = 0;
  for (int64_t e = 0; e < experts; ++e) {
    permutation[e] = slot;
    for (int64_t r = e; r < routes; r += experts) {
      routeOfSlot[slot] = int32_t(r);
      slotOfRoute[r] = slot++;
    }
  }
  permutation[experts] = slot;
}

} // namespace k2c::calibration
