//===- VerifySlices.cpp - Ranks of a group agree on slices of a step ------===//
//
// Ranks of a tensor-parallel group have one step, so that each knows which rows the others carry, and nobody counts.
// What is left to hold is that all of it has room, that the plan has such groups, that attention, which caches what it
// sees, is of the rows of all, and that what ranks have of a sum is added up in their order:
//
//   %0, %1 = dist.scatter_slices %p                  as many results as a group has ranks
//   %y = nn.add_partials %0, %1                      these, all, in this order
//
//===----------------------------------------------------------------------===//
#include "VerifySlices.h"
#include "Origins.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Nn/NnVerify.h"
#include "k2c/Transforms/PlanAttr.h"

using namespace mlir;

namespace k2c {

/// Partials are those of one site.
static LogicalResult verifySum(nn::AddPartialsOp sum, kern::CallOp call, Origins &origins, StringRef who) {
  Operation *place = call ? call.getOperation() : sum.getOperation();
  const Made first = origins.of(sum.getPartials().front(), call);
  auto site = dyn_cast_or_null<dist::ScatterSlicesOp>(first.op());
  bool areAll = site && site.getParts().size() == sum.getPartials().size();
  for (auto [number, partial] : llvm::enumerate(sum.getPartials()))
    areAll = areAll && origins.of(partial, call).value == site.getParts()[number];
  if (areAll)
    return success();
  return place->emitError() << who << ": adds partial sums of which the first is " << first.name()
                            << ", expected all results of one 'dist.scatter_slices' in their order; add what ranks "
                               "have of one sum";
}

/// `op` puts rows into the cache that one rank carries.
static bool cachesSlice(Operation *op) {
  return isa<nn::StateOp>(op) && llvm::any_of(op->getOperandTypes(), [](Type type) {
           nn::RowsAttr rows = nn::rowsOf(type);
           return rows && rows.getKind() == nn::RowKind::Token;
         });
}

LogicalResult verifySlices(ModuleOp module, StringRef who) {
  Origins origins(module);
  const int64_t ranks = stageRanksOf(module).ofGroup;
  nn::LimitsAttr limits = nn::limitsOf(module);
  auto check = [&](Operation *op, kern::CallOp call) -> LogicalResult {
    if (ranks > 1 && cachesSlice(op))
      return (call ? call.getOperation() : op)->emitError()
             << who << ": caches rows of a slice, and the plan's layout has tp=" << ranks
             << ", where each rank caches those of the step; gather them, as shard-attention does";
    if (auto sum = dyn_cast<nn::AddPartialsOp>(op))
      return verifySum(sum, call, origins, who);
    auto scatter = dyn_cast<dist::ScatterSlicesOp>(op);
    if (!scatter && !isa<dist::GatherSlicesOp>(op))
      return success();
    if (const auto parts = scatter ? static_cast<int64_t>(scatter.getParts().size()) : ranks;
        ranks == 1 || parts != ranks)
      return op->emitError() << who << ": slices of a step travel among "
                             << (scatter ? std::to_string(scatter.getParts().size()) + " ranks" : "ranks")
                             << ", and the plan's layout has tp=" << ranks << "; plan and program have to agree";
    if (const int64_t room = limits.getToken() * ranks; room < limits.getStepRows())
      return op->emitError() << who << ": slices of " << ranks << " ranks have a capacity of " << room
                             << " rows, and a step may bring " << limits.getStepRows()
                             << "; bound them by nn.limits, as shard-attention does";
    return success();
  };
  if (failed(origins.forEach(check)))
    return failure();
  for (auto family : module.getOps<nn::WeightsOp>())
    if (family.getParts().value_or(ranks) != ranks)
      return family.emitError() << who << ": @" << family.getSymName() << " has " << *family.getParts()
                                << " parts, and the plan's layout has tp=" << ranks << "; have one for each rank";
  return success();
}

} // namespace k2c
