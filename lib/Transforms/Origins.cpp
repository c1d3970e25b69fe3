//===- Origins.cpp - Which op makes a value, through calls of kernels ------===//
#include "Origins.h"

using namespace mlir;

namespace k2c {

std::string Made::name() const {
  return op() ? "result " + std::to_string(cast<OpResult>(value).getResultNumber()) + " of '" +
                    op()->getName().getStringRef().str() + "'"
              : "an argument";
}

LogicalResult Origins::forEach(llvm::function_ref<LogicalResult(Operation *, kern::CallOp)> visit) {
  for (FunctionOpInterface function : kern::stepFunctions(module)) {
    WalkResult result = function->walk([&](Operation *op) -> WalkResult {
      auto call = dyn_cast<kern::CallOp>(op);
      if (!call)
        return visit(op, {});
      auto kernel = symbols.lookup<kern::FuncOp>(call.getCallee());
      return kernel.getBody().walk([&](Operation *inner) -> WalkResult { return visit(inner, call); });
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

Made Origins::of(Value value, kern::CallOp call) {
  while (value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && call) {
      value = call.getCallArguments()[argument.getArgNumber()].value;
      call = {};
    } else if (auto caller = value.getDefiningOp<kern::CallOp>()) {
      auto kernel = symbols.lookup<kern::FuncOp>(caller.getCallee());
      value = kernel.getBody().front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber());
      call = caller;
    } else {
      break;
    }
  }
  return {value, call};
}

} // namespace k2c
