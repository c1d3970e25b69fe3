//===- ExpectForm.h - The forms that a pass takes -------------------------===//
#ifndef K2C_TRANSFORMS_EXPECTFORM_H
#define K2C_TRANSFORMS_EXPECTFORM_H

#include "k2c/Transforms/Forms.h"
#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// What an op says of the module that it stands in.
struct OpForms {
  Form first, last;     ///< that may have it
  llvm::StringRef what; ///< is left to do where it is in a later form
  llvm::StringRef next; ///< pass that does it
  llvm::StringRef from; ///< pass that made it; "": the frontend or any
};

/// The forms that may have `op`; none if it may be in all, or others say it.
std::optional<OpForms> formsOf(mlir::Operation *op);

/// Error, in the name of `pass`, at an op that no form from `first` to `last` has: with the pass to run first, or the
/// one that has run too early. A module without such ops may be in any form.
mlir::LogicalResult expectForm(mlir::ModuleOp module, llvm::StringRef pass, Form first, Form last);

} // namespace k2c

#endif // K2C_TRANSFORMS_EXPECTFORM_H
