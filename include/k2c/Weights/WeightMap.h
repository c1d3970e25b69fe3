//===- WeightMap.h - Where each kernel operand's bytes come from ----------===//
//
// For every weight slot of a rank: the checkpoint tensors it is made of (reshaped, sliced, transposed) and the layout
// the kernels read. The map is data: the compiler writes it, a shape-only bundle carries it (weights/map.json), and
// the packer (Packer.h) runs it as a stream when the checkpoint is at hand. It knows no model and no tensor contents.
//
// A slot's sources, laid one after another, are the rows of its operand:
//   RowMajor      `elements` elements in that order
//   PanelLayout,  `count * n` rows of `k`; of two parts, sources alternate gate, up, each `n / 2` rows a matrix
//   RowLayout
//   Table         no sources; bytes computed by the compiler (rotary tables)
//
// Architecture, section 4.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_WEIGHTS_WEIGHTMAP_H
#define K2C_WEIGHTS_WEIGHTMAP_H

#include "base/Error.h"
#include "k2c/Kernels/WeightLayout.h"
#include "k2c/Support/DType.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace k2c {

/// Indices [from, to) of one dimension.
struct TensorSlice {
  int64_t dimension = 0;
  int64_t from = 0;
  int64_t to = 0;
};

/// The scales of a tensor that is stored in blocks: tensor `name`, f32 [ceil(rows / blockRows)][ceil(columns /
/// blockColumns)] for a published matrix [rows][columns]. Scale (i / blockRows, j / blockColumns) belongs to element
/// (i, j), whatever the slot reads of the matrix and however it cuts it.
struct SourceScales {
  std::string name;
  int64_t blockRows = 0, blockColumns = 0;
};

/// A checkpoint tensor as one slot reads it: reshape, then slice, then take the part of a rank, then swap the last two
/// dimensions. The last dimension of the result is the contraction (k); those before it are rows.
struct SourceTensor {
  std::string name;           ///< as in the checkpoint
  std::vector<int64_t> shape; ///< row-major shape it is read as; the product
                              ///< equals the tensor's element count
  std::optional<TensorSlice> slice;
  bool transpose = false;                  ///< W_UK per head: [heads][nope][latent] is read as
                                           ///< [heads][latent][nope]
  std::optional<SourceScales> scales = {}; ///< with matrices that are block-scaled
  std::vector<int64_t> stored = {};        ///< shape in the checkpoint; empty: `shape`
  std::optional<TensorSlice> part = {};    ///< what a rank has of what the slice leaves

  /// The shape that the checkpoint's tensor must have.
  const std::vector<int64_t> &storedShape() const { return stored.empty() ? shape : stored; }
};

/// Elements in the order of the sources. bf16 and f16 widen exactly to f32; nothing narrows.
struct RowMajor {
  DType type = DType::F32;
  int64_t elements = 0;
};

/// Computed bytes. `generate` writes bytes [first, first + count) to `out`; it is pure and callable from any thread. A
/// map read back from a bundle has no generator: the blob `file` was written by the compiler and is only checked.
struct Table {
  int64_t bytes = 0;
  std::string file;
  std::function<void(int64_t first, char *out, int64_t count)> generate;
};

using Transform = std::variant<RowMajor, PanelLayout, RowLayout, Table>;

/// One operand of the program: index `slot` of the worker's `weights` array. It is one range of a blob, or, of routed
/// experts, a table of ranges.
struct WeightSlot {
  int64_t slot = 0;
  std::string family;           ///< the weight family's symbol, or the table's name
  std::optional<int64_t> layer; ///< checkpoint layer index; none for embedding,
                                ///< final norm, head, tables
  std::vector<SourceTensor> sources;
  Transform transform;
  int64_t experts = 0; ///< of routed experts: a matrix and equally many sources for each; 0: a slot of one range
};

/// The longest contraction the packer takes: it holds a panel of 32 rows in memory.
constexpr int64_t maxContraction = int64_t(1) << 22;

/// The matrices of a transform; null of one without.
const Matrix *matrixOf(const Transform &transform);

/// Bytes the layout itself needs, padding included.
int64_t payloadBytes(const Transform &transform);

/// Bytes of the slot's ranges, each in whole pages. This is what the memory certificate counts.
int64_t rangeBytes(const WeightSlot &slot);

/// The slot of one expert: its matrix, its sources.
WeightSlot slotOfExpert(const WeightSlot &slot, int64_t expert);

/// Checks what a slot says of itself: element types that can be packed, sizes that are neither negative nor overflow,
/// sources in pairs when interleaved. Every reader of a map from a file calls it.
Status check(const WeightSlot &slot);

/// All slots of a rank, in slot order: slots[i].slot == i.
struct WeightMap {
  std::vector<WeightSlot> slots;
  /// Its tensors are not packed: a program reads the checkpoint's own bytes.
  bool isReference = false;
  /// Sum of rangeBytes over slots (an upper bound of the disk space: identical ranges are stored once).
  int64_t totalBytes() const;
  /// Of them, those that are not packed.
  int64_t referenceBytes() const;
  /// Routed experts of all slots.
  int64_t experts() const;
};

} // namespace k2c

#endif // K2C_WEIGHTS_WEIGHTMAP_H
