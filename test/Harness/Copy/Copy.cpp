//===- Copy.cpp - The copy dialect: registration --------------------------===//
#include "Copy.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace k2c::copy;

#include "test/Harness/Copy/CopyDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "test/Harness/Copy/CopyTypes.cpp.inc"

#define GET_OP_CLASSES
#include "test/Harness/Copy/CopyOps.cpp.inc"

void CopyDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "test/Harness/Copy/CopyTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "test/Harness/Copy/CopyOps.cpp.inc"
      >();
}
