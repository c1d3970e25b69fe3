//===- Memory.h - What probes read and write ------------------------------===//
#ifndef K2C_LIB_CALIBRATE_MEMORY_H
#define K2C_LIB_CALIBRATE_MEMORY_H

#include "base/Error.h"
#include "k2c/Kernels/KernelDesc.h"
#include "k2c/Support/Units.h"
#include "k2rt/program.h"
#include <vector>

namespace k2c::calibration {

/// Mapped pages of bytes 0x3c: small positive numbers in every element type, so that no operation meets a special case.
class Memory {
public:
  /// Error: the system refuses.
  static Expected<Memory> map(Bytes bytes);
  Memory(Memory &&other) noexcept : base(other.base), bytes(other.bytes) { other.base = nullptr; }
  Memory(const Memory &) = delete;
  ~Memory();

  char *data() const { return base; }
  int64_t size() const { return bytes; }

private:
  Memory(char *base, int64_t bytes) : base(base), bytes(bytes) {}
  char *base;
  int64_t bytes;
};

/// Hands out page-aligned parts of a Memory, again from its beginning after `clear`.
class Buffers {
public:
  explicit Buffers(const Memory &memory) : memory(memory) {}
  /// Null when the memory is spent.
  void *take(int64_t size);
  void clear() { used = 0; }

private:
  const Memory &memory;
  int64_t used = 0;
};

/// A step of equal sequences: `tokens` new ones after `cached`, pages in order, every row wanted.
class ProbeStep {
public:
  ProbeStep(int64_t sequences, int64_t cached, int64_t tokens, int32_t form);
  ProbeStep(const ProbeStep &) = delete;
  k2rt_ir_step step = {};

private:
  std::vector<int32_t> positions, rowSeq, rowForm, seqBegin, seqLen, table, outputs, ids;
  std::vector<int64_t> slots;
  const int32_t *tables, *lengths;
  const int64_t *slotLists;
};

/// Writes experts of `tokens` tokens, each with `topK` that follow one another, and the permutation of them.
void fillRouting(int64_t tokens, int64_t experts, int64_t topK, int32_t *chosen, int32_t *permutation);

} // namespace k2c::calibration

#endif // K2C_LIB_CALIBRATE_MEMORY_H
