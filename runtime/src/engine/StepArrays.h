// The arrays behind one k2rt_ir_step, allocated once for the largest step and refilled for each.
#ifndef K2RT_ENGINE_STEPARRAYS_H
#define K2RT_ENGINE_STEPARRAYS_H

#include "base/Error.h"
#include "engine/Device.h"
#include "k2rt/program.h"
#include "program/Manifest.h"
#include <memory>
#include <vector>

namespace k2c::runtime {

/// Typed views of the step's arrays; see abi.def for what each holds. Groups = cache groups.
class StepArrays {
public:
  /// In memory of `device`, which outlives them.
  static Expected<StepArrays> allocate(const Manifest &manifest, Device &device);
  /// In memory of their own, without logits: what a rank that schedules keeps of another.
  static Expected<StepArrays> allocateOwn(const Manifest &manifest);

  int32_t *tokenIds, *positions, *rowSeq, *rowForm, *outputs, *samples;
  int32_t *seqBegin, *lastSample;
  std::vector<int32_t *> blockTables; ///< per group: [max_sequences][blockStride]; row = slot of the sequence
  std::vector<int32_t *> stepTables;  ///< per group: the rows of this step's sequences, in its order
  std::vector<int32_t *> seqLen;      ///< per group
  std::vector<int64_t *> appendSlots; ///< per group
  k2rt_ir_sampling *sampling;
  float *logits;
  int32_t *history; ///< token ids per sequence slot: [max_sequences][max_context + 1]
  int64_t blockStride;

  /// The append slots of `rows` rows from `firstRow` on, of a sequence whose table and length in `group` are set.
  void fillSlots(size_t group, int64_t sequenceRow, int64_t firstRow, int64_t rows);
  /// All pointers set, counts zero, nothing sampled, forced or captured.
  k2rt_ir_step step() const;

private:
  struct Free {
    void operator()(std::byte *memory) const;
  };
  StepArrays() = default;
  Status carve(const Manifest &manifest, std::byte *memory);

  std::unique_ptr<std::byte, Free> own; ///< null: a device's
};

} // namespace k2c::runtime

#endif
