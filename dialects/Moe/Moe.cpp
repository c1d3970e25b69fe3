//===- Moe.cpp - The moe dialect: registration ----------------------------===//
#include "dialects/Moe/Moe.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace k2c::moe;

#include "dialects/Moe/MoeDialect.cpp.inc"
#include "dialects/Moe/MoeEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Moe/MoeAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Moe/MoeTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Moe/MoeOps.cpp.inc"

void MoeDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Moe/MoeAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Moe/MoeTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Moe/MoeOps.cpp.inc"
      >();
}
