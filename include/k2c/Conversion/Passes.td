//===- Passes.td - Passes from form to form -------------------------------===//
#ifndef K2C_CONVERSION_PASSES
#define K2C_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def EmitKernels : Pass<"emit-kernels", "::mlir::ModuleOp"> {
  let summary = "Write the code of each kernel for the target";
  let description = [{
    Each kern.func is emitted, by its description and its tile, as a module of its own beside it that holds one LLVM
    function. Kernels of one description share their code.

    ```mlir
    kern.func @add(%x: !x, %y: !x) -> !x tile<...> {                               // before
    kern.func @add(...                                                             // after
    module @k2c_9a3f.code {
      llvm.func @k2c_9a3f(%worker: !llvm.ptr, %args: !llvm.ptr) -> i32 ...
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

def LowerToRt : Pass<"lower-to-rt", "::mlir::ModuleOp"> {
  let summary = "Turn kernel calls into launches and kernels into functions";
  let description = [{
    Scheduled form to runtime form. Values become pointers (arena offset, weight slot, cache plane, the step), a call
    becomes a launch over a grid that follows from its row count, a layer list becomes loops, a kern.func a number. Code
    of kernels comes behind the host program. Branches and loops stay, without results: rows that they forward lie in
    one place.

    ```mlir
    %k = kern.call @linear_kw(%x, @kw[%l]) at [2560] : (!x) -> !h                         // before
    %p0 = rt.arena 0                                                                 // after
    %kw = rt.weight @kw.panels[%l]
    %p1 = rt.arena 2560
    %rows = rt.rows token
    %grid = rt.grid %rows slots 1 rows_per_item 8 items ...
    rt.launch @linear_kw grid(%grid) args(%p0, %kw, %p1) : !rt.ptr, !rt.ptr, !rt.ptr
    ```
  }];
  let dependentDialects = ["::k2c::rt::RtDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect"];
}

def RtToLlvm : Pass<"rt-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Lower the host program to LLVM";
  let description = [{
    Runtime form to LLVM dialect: the step function, one function a layer kind, and the program descriptor that
    `k2c_program_query` returns. Structs and offsets come from abi.def. Kernel modules are left to the target.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // K2C_CONVERSION_PASSES
