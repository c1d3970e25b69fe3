//===- VerifyDestroyed.cpp - What a kernel has used up is read no more -----===//
#include "VerifyDestroyed.h"
#include "CallEffects.h"
#include "dialects/Dist/Dist.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace k2c {

/// Whether `effect` leaves anything in what it is of.
static bool destroys(const Effect &effect) { return effect.isRead() && effect.isWritten(); }

/// The rows are those of a call or an exchange beside `call`: they have no other name, and are new in each turn of a
/// loop.
static bool isMadeBeside(Value value, kern::CallOp call) {
  Operation *maker = value.getDefiningOp();
  return isa_and_nonnull<nn::PlacedOp>(maker) && maker->getBlock() == call->getBlock();
}

/// The reader is a call or an exchange, which gives the rows no other name, and over when `call` begins.
static bool isReadBefore(Operation *reader, kern::CallOp call) {
  return isa<nn::PlacedOp>(reader) && reader->getBlock() == call->getBlock() && reader->isBeforeInBlock(call);
}

LogicalResult verifyDestroyed(FunctionOpInterface function, SymbolTable &symbols, KernelDescriptions &descriptions,
                              StringRef who) {
  WalkResult result = function->walk([&](kern::CallOp call) -> WalkResult {
    FailureOr<CallEffects> effects = effectsOf(call, symbols, descriptions);
    if (failed(effects))
      return failure();
    for (const CallEffects::Touched &touched : effects->touched) {
      Value value = touched.value();
      if (!value || value.getDefiningOp() == call || !destroys(touched.effect))
        continue;
      if (!isMadeBeside(value, call))
        return call.emitError() << who << ": adds up in place what no call beside it has made, which others may read; "
                                << "give it rows of its own";
      int64_t own = 0;
      for (OpOperand &use : value.getUses())
        if (use.getOwner() == call ? ++own > 1 : !isReadBefore(use.getOwner(), call))
          return use.getOwner()->emitError()
                 << who << ": reads what @" << call.getCallee()
                 << " leaves as anything; let it stand before that call, or give the call rows of its own";
    }
    return success();
  });
  return failure(result.wasInterrupted());
}

} // namespace k2c
