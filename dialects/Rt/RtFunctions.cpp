//===- RtFunctions.cpp - What functions of a program may have -------------===//
#include "dialects/Rt/RtFunctions.h"
#include "dialects/Rt/Rt.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace k2c;

static const StringRef arithmetic[] = {
#define K2C_NUMBER(Op, LlvmOp) arith::Op::getOperationName(),
#include "dialects/Rt/Numbers.def"
};

LogicalResult rt::checkNumber(Operation *op, StringRef who) {
  if (isa<RowsOp, StageLayersOp, ArrivedOp, GridOp>(op))
    return success();
  if (!llvm::is_contained(arithmetic, op->getName().getStringRef()))
    return op->emitError() << who << ": no program has '" << op->getName()
                           << "'; it has rt, calls, scf.for, scf.if and " << llvm::join(ArrayRef(arithmetic), ", ");
  for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()), llvm::to_vector(op->getResults())))
    if (Type type = value.getType(); !type.isIndex() && !type.isInteger(64) && !type.isInteger(1))
      return op->emitError() << who << ": '" << op->getName() << "' computes with a " << type
                             << "; numbers of a program are index, i64 and i1";
  if (isa<arith::DivSIOp, arith::RemSIOp>(op) && getConstantIntValue(op->getOperand(1)).value_or(0) < 1)
    return op->emitError() << who << ": '" << op->getName()
                           << "' divides by what may be 0; a program divides by a constant of 1 or more";
  return success();
}

LogicalResult rt::checkCount(scf::ForOp loop, StringRef who) {
  const std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  const Type type = loop.getInductionVar().getType();
  if (loop.getUnsignedCmp() || !step || *step < 1 || !(type.isIndex() || type.isInteger(64)))
    return loop.emitError() << who << ": a loop counts in signed 64 bits by a constant step of 1 or more";
  if (std::optional<int64_t> end = getConstantIntValue(loop.getUpperBound()); end && *end > INT64_MAX - (*step - 1))
    return loop.emitError() << who << ": the loop's end " << *end << " and step " << *step
                            << " overflow the 64 bits that it counts in";
  return success();
}

/// Of an op in a function.
static LogicalResult checkOp(Operation *op, StringRef who) {
  const bool isBranch = isa<scf::IfOp, scf::ForOp>(op);
  if (isBranch && op->getNumResults() > 0)
    return op->emitError() << who << ": '" << op->getName() << "' has " << op->getNumResults()
                           << " results, and no program forwards values; run lower-to-rt first";
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return rt::checkCount(loop, who);
  if (isBranch || isa_and_nonnull<rt::RtDialect>(op->getDialect()) ||
      isa<scf::YieldOp, func::CallOp, func::ReturnOp>(op))
    return success();
  return rt::checkNumber(op, who);
}

LogicalResult rt::checkFunctions(ModuleOp module, StringRef who) {
  for (auto function : module.getOps<func::FuncOp>()) {
    for (Type type : function.getArgumentTypes())
      if (!isa<PtrType>(type) && !type.isIndex() && !type.isInteger(64))
        return function.emitError() << who << ": function '" << function.getName() << "' takes a " << type
                                    << "; functions of a program take addresses, indices and i64";
    auto check = [&](Operation *op) { return WalkResult(checkOp(op, who)); };
    if (function.getBody().walk<WalkOrder::PreOrder>(check).wasInterrupted())
      return failure();
  }
  return success();
}
