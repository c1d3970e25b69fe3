//===- Mla.cpp - The mla dialect: registration ----------------------------===//
#include "dialects/Mla/Mla.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace k2c::mla;

#include "dialects/Mla/MlaDialect.cpp.inc"
#include "dialects/Mla/MlaEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Mla/MlaAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Mla/MlaTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Mla/MlaOps.cpp.inc"

void MlaDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Mla/MlaAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Mla/MlaTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Mla/MlaOps.cpp.inc"
      >();
}
