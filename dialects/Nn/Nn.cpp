//===- Nn.cpp - The nn dialect: registration ------------------------------===//
#include "dialects/Nn/Nn.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace k2c::nn;

#include "dialects/Nn/NnDialect.cpp.inc"
#include "dialects/Nn/NnEnums.cpp.inc"
#include "dialects/Nn/NnInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Nn/NnAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Nn/NnTypes.cpp.inc"

void NnDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Nn/NnAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Nn/NnTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Nn/NnOps.cpp.inc"
      >();
}
