//===- Kern.cpp - The kern dialect: registration --------------------------===//
#include "dialects/Kern/Kern.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace k2c::kern;

#include "dialects/Kern/KernDialect.cpp.inc"
#include "dialects/Kern/KernEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Kern/KernAttributes.cpp.inc"

llvm::SmallVector<mlir::FunctionOpInterface> k2c::kern::stepFunctions(mlir::ModuleOp module) {
  auto isStep = [](mlir::FunctionOpInterface function) { return !llvm::isa<FuncOp>(function); };
  return llvm::filter_to_vector(module.getOps<mlir::FunctionOpInterface>(), isStep);
}

void KernDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Kern/KernAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Kern/KernOps.cpp.inc"
      >();
}
