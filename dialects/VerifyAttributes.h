//===- VerifyAttributes.h - What dialects say of attributes of their name -===//
#ifndef K2C_DIALECTS_VERIFYATTRIBUTES_H
#define K2C_DIALECTS_VERIFYATTRIBUTES_H

#include "mlir/IR/Dialect.h"
#include "mlir/IR/Operation.h"

namespace k2c {

/// Of `attribute` of `op`, which is to be what `what` says: success where it `holds`, else an error at the op.
inline mlir::LogicalResult expectAttribute(mlir::Operation *op, mlir::NamedAttribute attribute, bool holds,
                                           const llvm::Twine &what) {
  if (holds)
    return mlir::success();
  return op->emitError() << "'" << attribute.getName().getValue() << "' expects " << what << ", got "
                         << attribute.getValue() << " on '" << op->getName() << "'";
}

/// An attribute whose name the dialect has none of.
inline mlir::LogicalResult refuseAttribute(mlir::Operation *op, mlir::NamedAttribute attribute) {
  return op->emitError() << "'" << attribute.getName().getValue() << "' is no attribute of "
                         << attribute.getNameDialect()->getNamespace();
}

} // namespace k2c

#endif // K2C_DIALECTS_VERIFYATTRIBUTES_H
