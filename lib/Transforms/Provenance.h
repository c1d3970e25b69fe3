//===- Provenance.h - What a value has to be made by -----------------------===//
#ifndef K2C_LIB_TRANSFORMS_PROVENANCE_H
#define K2C_LIB_TRANSFORMS_PROVENANCE_H

#include "Origins.h"
#include "mlir/IR/Diagnostics.h"

namespace k2c {

/// Refuses, in the name of a form, values of an exchange that are made by others than those from which it follows that
/// ranks agree.
class Provenance {
public:
  Provenance(mlir::ModuleOp module, mlir::StringRef who) : origins(module), who(who) {}

  Made madeBy(mlir::Value value, kern::CallOp call) { return origins.of(value, call); }

  /// The op that has made `made` as its result `name`. `what` and `at` are for the diagnostic.
  template <class Op, class Result>
  mlir::FailureOr<Run<Op>> expect(mlir::Operation *at, mlir::StringRef what, const Made &made, mlir::StringRef name,
                                  Result (Op::*result)()) {
    if (auto op = llvm::dyn_cast_or_null<Op>(made.op()); op && mlir::Value((op.*result)()) == made.value)
      return Run<Op>{op, made.call};
    return refuse(at) << what << " are " << made.name() << ", expected '" << name << "' of '" << Op::getOperationName()
                      << "'; exchange rows as shard-experts does";
  }

  mlir::LogicalResult expectSame(mlir::Operation *at, mlir::StringRef what, const Made &made, const Made &expected) {
    if (made == expected)
      return mlir::success();
    return refuse(at) << what << " are not those of the other side of the exchange: one is " << made.name() << ", one "
                      << expected.name() << "; derive both from one routing";
  }

  mlir::InFlightDiagnostic refuse(mlir::Operation *at) { return at->emitError() << who << ": "; }

protected:
  Origins origins;
  mlir::StringRef who;
};

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_PROVENANCE_H
