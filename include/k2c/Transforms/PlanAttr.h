//===- PlanAttr.h - What passes read of the plan and the target -----------===//
//
// After attach-plan the module carries every decision: passes ask here, and take no option that decides.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_TRANSFORMS_PLANATTR_H
#define K2C_TRANSFORMS_PLANATTR_H

#include "dialects/Dist/Dist.h"
#include "dialects/Kern/Kern.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <vector>

namespace k2c {

/// The passes of OptionalPasses.def.
enum class OptionalPass : uint8_t {
#define K2C_OPTIONAL_PASS(Name, name, summary) Name,
#include "k2c/Transforms/OptionalPasses.def"
};

/// As `--without` takes them, in the order of OptionalPasses.def.
const std::vector<llvm::StringRef> &optionalPassNames();

/// The module's plan; null before attach-plan.
dist::PlanAttr planOf(mlir::ModuleOp module);

/// Whether the plan leaves `pass` out. A module without a plan leaves nothing out.
bool isLeftOut(mlir::ModuleOp module, OptionalPass pass);

/// Whether steps may go in two halves: the plan says from how many rows on, and leaves overlap-communication in.
bool hasHalves(mlir::ModuleOp module);

/// The ranks of one stage, which divide the experts of its layers.
struct StageRanks {
  int64_t ranks = 1; ///< of a stage
  int64_t nodes = 1; ///< that they are on, equally many on each
  /// Of a tensor-parallel group: they have slices of one step, and parts of weights.
  int64_t ofGroup = 1;
  int64_t ofVocabulary = 1; ///< ranks that have parts of embedding and head: all of the stage, or 1
  int64_t ofExpert = 1;     ///< ranks next to each other that have parts of the same experts

  /// What divides the experts of a layer.
  int64_t expertRanks() const { return ranks / ofExpert; }
  /// Of a group whose members differ in `axis`.
  int64_t membersOf(dist::Axis axis) const;
};

/// Of the stages of the module's plan on its topology: all ranks, where there is no plan or it has one stage.
StageRanks stageRanksOf(mlir::ModuleOp module);

/// The first layer of each stage, and the end of the last; empty where every rank has all layers.
llvm::ArrayRef<int64_t> stagesOf(mlir::ModuleOp module);

/// The first pass that the plan leaves out and that does not exist.
std::optional<llvm::StringRef> unknownPass(dist::PlanAttr plan);

/// The module's target, #kern.cpu or #kern.gpu. Reports at the module that there is none, in the name of `pass`.
mlir::FailureOr<mlir::Attribute> targetOf(mlir::ModuleOp module, llvm::StringRef pass);

} // namespace k2c

#endif // K2C_TRANSFORMS_PLANATTR_H
