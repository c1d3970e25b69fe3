//===- EmitKernels.cpp - Code for each kernel -----------------------------===//
//
// A kern.func is described, and its description emitted with its tile for the target: a module of its own beside the
// kernels, with one LLVM function. Code is named by what it computes, so that equal descriptions share it, in this
// program and in the cache of objects.
//
//===----------------------------------------------------------------------===//
#include "k2c/Conversion/Passes.h"
#include "k2c/Kernels/Cpu.h"
#include "k2c/Kernels/Describe.h"
#include "k2c/Kernels/Nvidia.h"
#include "k2c/Kernels/TileAttr.h"
#include "k2c/Transforms/ExpectForm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringSet.h"

namespace k2c {
#define GEN_PASS_DEF_EMITKERNELS
#include "k2c/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

struct EmitKernels : impl::EmitKernelsBase<EmitKernels> {
  using EmitKernelsBase::EmitKernelsBase;

  LogicalResult emit(kern::FuncOp kernel) {
    if (!kernel.getTile())
      return kernel.emitError() << "emit-kernels: the kernel has no tile; run choose-tiles first";
    const DescribedKernel *described = getAnalysis<KernelDescriptions>().find(kernel);
    if (!described)
      return failure();
    const std::string symbol = kernelSymbol(described->desc);
    if (!emitted.insert(symbol).second)
      return success();
    const TileConfig tile = tileConfig(kernel.getTileAttr());
    auto gpu = getOperation()->getAttrOfType<kern::GpuAttr>(kern::KernDialect::targetAttrName);
    OwningOpRef<ModuleOp> code = gpu ? emitWarpKernel(&getContext(), described->desc, tile, symbol, gpu.getWorkers())
                                     : emitKernel(&getContext(), described->desc, tile, symbol);
    if (!code)
      return failure();
    code->setSymName(codeName(described->desc));
    OpBuilder(kernel->getBlock(), std::next(kernel->getIterator())).insert(code.release());
    return success();
  }

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Scheduled, Form::Scheduled)))
      return signalPassFailure();
    emitted.clear();
    for (auto code : llvm::make_early_inc_range(getOperation().getOps<ModuleOp>()))
      code.erase();
    for (auto kernel : llvm::to_vector(getOperation().getOps<kern::FuncOp>()))
      if (failed(emit(kernel)))
        return signalPassFailure();
    markAnalysesPreserved<KernelDescriptions>();
  }

  llvm::StringSet<> emitted; ///< symbols of code
};

} // namespace
} // namespace k2c
