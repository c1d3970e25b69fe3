//===- TensorFamily.h - Slots of a weight family, layer by layer ------------===//
//
// The IR's nn.weights without MLIR: a name pattern over layers and experts, the shape of one tensor, an optional view.
// The compiler appends one slot for each layer; here the pattern becomes tensor names, experts outermost, alternatives
// ({gate_proj|up_proj}) innermost, which is the order the packed layouts stack and interleave.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_WEIGHTS_TENSORFAMILY_H
#define K2C_WEIGHTS_TENSORFAMILY_H

#include "k2c/Support/IndexSet.h"
#include "k2c/Weights/WeightMap.h"

namespace k2c {

struct TensorFamily {
  std::string name;                 ///< becomes WeightSlot::family
  std::string pattern;              ///< "model.layers.{layer}.mlp.experts.{expert}.{gate_proj|up_proj}.weight"
  std::optional<IndexSet> layers;   ///< values of {layer}; none: one slot for the whole model
  std::optional<IndexSet> experts;  ///< values of {expert}
  std::vector<int64_t> shape;       ///< one tensor of the checkpoint is read as this
  std::optional<TensorSlice> slice; ///< of that shape
  int64_t parts = 1;                ///< equal ones, of dimension `along` of what the slice leaves: a slot for each
  int64_t along = 0;
  bool transpose = false; ///< of what the slice leaves
  /// Rows and columns of the blocks of a stored family; the scales of tensor "x" are tensor "x" + scaleSuffix.
  std::optional<std::pair<int64_t, int64_t>> blocks;
  std::vector<int64_t> stored = {}; ///< shape of one tensor in the checkpoint; empty: `shape`
};

/// The tensors of one layer, in the order of their rows; of each the part number `part`.
std::vector<SourceTensor> sourcesOf(const TensorFamily &family, std::optional<int64_t> layer, int64_t part = 0);

/// Appends the family's slots, layers ascending and in each its parts, packed by `transform`, and returns the number of
/// the first. `experts` as in WeightSlot.
int64_t appendSlots(WeightMap &map, const TensorFamily &family, const Transform &transform, int64_t experts = 0);

} // namespace k2c

#endif // K2C_WEIGHTS_TENSORFAMILY_H
