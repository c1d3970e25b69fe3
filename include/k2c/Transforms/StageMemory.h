//===- StageMemory.h - What a stage of ranks has ----------------------------===//
//
// Of a scheduled or runtime module, whose weights have slots.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_TRANSFORMS_STAGEMEMORY_H
#define K2C_TRANSFORMS_STAGEMEMORY_H

#include "dialects/Nn/Nn.h"
#include "dialects/Rt/Rt.h"
#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// Layers [from, end).
struct Stage {
  int64_t from, end;
  bool isFirst, isLast;
};

/// The stages of the module's plan; one of all layers where it has none.
llvm::SmallVector<Stage> stageList(mlir::ModuleOp module);

/// How many of `layers` the stage has.
int64_t layersIn(nn::IndicesAttr layers, Stage stage);

/// Bytes of all weight slots that a rank of the stage maps.
int64_t weightBytesOf(mlir::ModuleOp module, Stage stage);

} // namespace k2c

#endif // K2C_TRANSFORMS_STAGEMEMORY_H
