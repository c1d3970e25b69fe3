//===- TensorParts.h - What tensor-parallel ranks have of a layer -------------===//
//
// Ranks of a tensor-parallel group carry slices of one step and have parts of weights: of attention some heads, of an
// MLP some columns. This says which, from the model alone, as the pass shard-attention does it: the memory of a rank,
// what travels, and which tp a model takes follow from it. Likewise of ranks that share experts (etp) or embedding and
// head (vocab).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_TENSORPARTS_H
#define K2C_PLANNER_TENSORPARTS_H

#include "base/Error.h"
#include "k2c/Model/Layers.h"
#include <map>
#include <string>
#include <vector>

namespace k2c {

/// Which dimension of a matrix [rows][columns] is divided: of a vector its rows.
enum class MatrixCut : uint8_t { Rows, Columns };

/// Of layers of one kind.
struct LayerParts {
  std::map<std::string, MatrixCut> cuts; ///< by family; others are whole on each rank
  std::vector<int64_t> gathered;         ///< widths of rows that are gathered, of activations
  std::vector<int64_t> scattered;        ///< widths of partial sums, of f32
};

/// How `tp` ranks divide a layer of `kind`; of one rank nothing. Errors: heads that they do not divide, leaves of the
/// output projection that do not end where parts do (numerics N1), norms over all heads.
Expected<LayerParts> layerParts(const ModelSpec &spec, const LayerKind &kind, int64_t tp);

/// Whether all layers of `spec` are divided by `tp` ranks; the error is that of the first that is not.
Status checkTensorParts(const ModelSpec &spec, int64_t tp);

/// The cuts of all layers of a model that `tp` ranks divide.
std::map<std::string, MatrixCut> tensorCuts(const ModelSpec &spec, int64_t tp);

/// What ranks that share routed experts have of each, by family: of gate and up alike some rows, and as many columns of
/// down.
const std::map<std::string, MatrixCut> &expertCuts();

/// Whether `ranks` ranks can have a part each of every routed expert, so that their sums are subtrees of that of one
/// rank. The model has experts. Errors, at the key etp: leaves of the down projection that do not end where parts do
/// (numerics N1), a bias behind it.
Status checkExpertParts(const ModelSpec &spec, int64_t ranks);

/// Whether `ranks` ranks can have a part each of embedding, some of its columns, and head, some of its rows. Errors, at
/// the key vocab: both are one weight, or ranks do not divide hidden size or vocabulary.
Status checkVocabularyParts(const ModelSpec &spec, int64_t ranks);

} // namespace k2c

#endif // K2C_PLANNER_TENSORPARTS_H
