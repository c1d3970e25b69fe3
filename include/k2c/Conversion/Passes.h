//===- Passes.h - Passes from form to form -----------------------------===//
#ifndef K2C_CONVERSION_PASSES_H
#define K2C_CONVERSION_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace k2c {

#define GEN_PASS_DECL
#include "k2c/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "k2c/Conversion/Passes.h.inc"

} // namespace k2c

#endif // K2C_CONVERSION_PASSES_H
