//===- DistInterfaces.td - What makes counts ------------------------------===//
#ifndef K2C_DIALECTS_DIST_INTERFACES
#define K2C_DIALECTS_DIST_INTERFACES

include "mlir/IR/OpBase.td"

def Dist_CountsOp : OpInterface<"CountsOp"> {
  let cppNamespace = "::k2c::dist";
  let description = [{
    The op counts rows by member, in a step of whatever routes. The buffers of an exchange are held to these bounds.
  }];
  let methods = [
    InterfaceMethod<"The most rows that `counts`, a result of the op, have for one member, and for all together.",
                    "::k2c::dist::CountBounds", "getCountBounds",
                    (ins "::mlir::Value":$counts, "::k2c::nn::LimitsAttr":$limits)>,
  ];
}

#endif
