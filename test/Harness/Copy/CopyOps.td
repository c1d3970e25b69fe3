//===- CopyOps.td - A dialect of asynchronous copies, for tests -----------===//
#ifndef K2C_TEST_HARNESS_COPY_OPS
#define K2C_TEST_HARNESS_COPY_OPS

include "dialects/Nn/NnBase.td"
include "dialects/Nn/NnInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def CopyDialect : Dialect {
  let name = "copy";
  let summary = "Copies that go on beside what follows them";
  let description = [{ Passes know nothing of it but the interfaces of its ops. }];
  let cppNamespace = "::k2c::copy";
  let useDefaultTypePrinterParser = 1;
}

def Copy_Token : TypeDef<CopyDialect, "Token"> {
  let mnemonic = "token";
  let summary = "a copy that is under way";
}

def Copy_StartOp : Op<CopyDialect, "start", [Nn_AsyncStart, Nn_PlacedOp]> {
  let summary = "Begin a copy";
  let description = [{
    Reads the input and writes the result until the token is waited for; `at` has the offset of each result.

    ```mlir
    %token, %y = copy.start %x : !x -> !x
    ```
  }];
  let arguments = (ins AnyType:$input, OptionalAttr<DenseI64ArrayAttr>:$offsets);
  let results = (outs Copy_Token:$token, AnyType:$result);
  let assemblyFormat = "$input (`at` $offsets^)? attr-dict `:` type($input) `->` type($result)";
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> getReadValues() { return {getInput()}; }
    ::llvm::SmallVector<::mlir::Value> getWrittenValues() { return {getResult()}; }
  }];
}

def Copy_WaitOp : Op<CopyDialect, "wait"> {
  let summary = "Wait for the end of a copy";
  let description = [{
    ```mlir
    copy.wait %token
    ```
  }];
  let arguments = (ins Copy_Token:$token);
  let assemblyFormat = "$token attr-dict";
}

#endif
