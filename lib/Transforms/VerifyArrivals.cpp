//===- VerifyArrivals.cpp - A rank uses all that comes ---------------------===//
#include "VerifyArrivals.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Moe/Moe.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace k2c {

LogicalResult verifyArrivals(Origins &origins, StringRef who) {
  llvm::DenseSet<std::pair<Value, Operation *>> read;
  auto note = [&](Operation *op, kern::CallOp call) -> LogicalResult {
    for (Value operand : op->hasTrait<OpTrait::IsTerminator>() ? ValueRange() : ValueRange(op->getOperands())) {
      const Made made = origins.of(operand, call);
      read.insert({made.value, made.call});
    }
    return success();
  };
  // Router weights stay where parts of outputs are added up.
  auto isSpare = [&](OpResult result, kern::CallOp call) {
    auto unpack = dyn_cast<moe::UnpackOp>(result.getOwner());
    auto site = unpack ? dyn_cast_or_null<dist::AllToAllOp>(origins.of(unpack.getInput(), call).op()) : nullptr;
    return site && site.getAxis() == dist::Axis::Etp && result == unpack.getWeights();
  };
  auto check = [&](Operation *op, kern::CallOp call) -> LogicalResult {
    if (!isa<dist::AllToAllOp, dist::GatherSlicesOp, dist::ScatterSlicesOp, moe::UnpackOp, dist::CloseGapsOp>(op))
      return success();
    for (OpResult result : op->getResults())
      if (!read.contains({result, call}) && !isSpare(result, call))
        return (call ? call.getOperation() : op)->emitError()
               << who << ": no op reads result " << result.getResultNumber() << " of '" << op->getName()
               << "', which other ranks have sent; use it, or exchange nothing";
    return success();
  };
  return failure(failed(origins.forEach(note)) || failed(origins.forEach(check)));
}

} // namespace k2c
