//===- VerifyDestroyed.cpp - What a kernel has used up is read no more -----===//
#include "VerifyDestroyed.h"
#include "CallEffects.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace k2c {

/// `use` is over when `call` begins.
static bool isBefore(OpOperand &use, kern::CallOp call) {
  Operation *reader = call->getBlock()->findAncestorOpInBlock(*use.getOwner());
  return reader && reader != call && reader->isBeforeInBlock(call);
}

LogicalResult verifyDestroyed(FunctionOpInterface function, SymbolTable &symbols, KernelDescriptions &descriptions,
                              StringRef who) {
  WalkResult result = function->walk([&](kern::CallOp call) -> WalkResult {
    FailureOr<CallEffects> effects = effectsOf(call, symbols, descriptions);
    if (failed(effects))
      return failure();
    for (const CallEffects::Touched &touched : effects->touched) {
      Value value = touched.value();
      const bool isMade = value && value.getDefiningOp() == call;
      if (!value || isMade || !touched.effect.isRead() || !touched.effect.isWritten())
        continue;
      int64_t own = 0;
      for (OpOperand &use : value.getUses())
        if (use.getOwner() == call ? ++own > 1 : !isBefore(use, call))
          return use.getOwner()->emitError()
                 << who << ": reads what @" << call.getCallee()
                 << " leaves as anything; let it stand before that call, or give the call rows of its own";
    }
    return success();
  });
  return failure(result.wasInterrupted());
}

} // namespace k2c
