//===- ImportModel.h - ModelSpec to the model form ------------------------===//
#ifndef K2C_FRONTEND_IMPORTMODEL_H
#define K2C_FRONTEND_IMPORTMODEL_H

#include "base/Error.h"
#include "k2c/Model/ModelSpec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace k2c {

/// What the model form depends on besides the model.
struct ImportOptions {
  int64_t stepTokens = 2048;              ///< most token rows of one step
  int64_t maxSequences = 16;              ///< most sequences of one step
  int64_t maxContext = 0;                 ///< positions; 0: min(max_position, 8192)
  std::optional<int64_t> outputRows = {}; ///< most rows of logits of one step; none: one a sequence
  DType compute = DType::F32;             ///< of activations: F32 or BF16
  std::optional<DType> cache = {};        ///< of the cache; none: as compute
};

/// Positions the program will have: options.maxContext or its default. An
/// Error when the model or its rotary embedding does not reach that far.
Expected<int64_t> chooseContext(const ModelSpec &spec, const ImportOptions &options);

/// Writes the model form: one function for each kind of layer, listed over
/// layer indices; weight families, rotary table and cache pool as symbols; the
/// entry `@step`. Orders are left to set-numerics. Locations are the config's
/// keys and the families' tensor names. Loads the dialects it needs.
Expected<mlir::OwningOpRef<mlir::ModuleOp>> importModel(mlir::MLIRContext &context, const ModelSpec &spec,
                                                        const ImportOptions &options);

} // namespace k2c

#endif // K2C_FRONTEND_IMPORTMODEL_H
