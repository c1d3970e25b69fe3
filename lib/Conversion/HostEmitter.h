//===- HostEmitter.h - Host functions in the LLVM dialect -----------------===//
#ifndef K2C_LIB_CONVERSION_HOSTEMITTER_H
#define K2C_LIB_CONVERSION_HOSTEMITTER_H

#include "dialects/Rt/Rt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

namespace k2c {

/// Translates functions of the runtime form. A lowered function takes the worker (and the layer index) and returns the
/// status of the first launch that failed, else 0; every launch with a barrier is followed by that test.
class HostEmitter {
public:
  HostEmitter(mlir::ModuleOp module, mlir::SymbolTable &symbols);

  /// Appends the LLVM function of `function`, which rt::checkFunctions admits, at the end of the module, under its name
  /// with `suffix`.
  void emitFunction(mlir::func::FuncOp function, llvm::StringRef suffix);

  /// Declares the function of each kernel, which is another object; of a GPU's kernels the host knows the ids alone.
  void declareKernels();

private:
  mlir::LLVM::LLVMFuncOp declare(mlir::func::FuncOp function, llvm::StringRef suffix);
  void emitBody(mlir::Block &block);
  void emit(mlir::Operation &op);
  void emitSecondHalf(rt::SecondHalfOp op);
  void emitIf(mlir::scf::IfOp branch);
  void emitLoop(mlir::scf::ForOp loop);
  void emitCall(mlir::func::CallOp op);
  mlir::Value stepField(size_t offset);
  mlir::Value gatheredStep();
  template <class To> mlir::Value emitNumber(mlir::Operation *op);
  void emitLaunch(rt::LaunchOp op);
  void emitEnqueue(rt::LaunchOp op);
  mlir::Value gridDescription(mlir::Value grid);
  void emitGrid(rt::GridOp op);
  void emitShare(rt::ShareOp op);
  void emitPrefetch(rt::PrefetchOp op);
  void emitStageLayers(rt::StageLayersOp op);
  void emitCollectiveStart(rt::CollectiveStartOp op);
  void emitCollectiveWait(rt::CollectiveWaitOp op);
  void emitPlacement(rt::PlacementOp op);
  void storeArguments(mlir::ValueRange operands);
  mlir::Value apiEntry(size_t offset);
  mlir::Value arrivedStep(mlir::FlatSymbolRefAttr site);
  void emitWeight(rt::WeightOp op);
  void emitPlane(rt::PlaneOp op);
  void returnIfFailed(mlir::Value status);
  mlir::Value constant(int64_t value, unsigned width = 64);
  mlir::Value at(mlir::Value base, int64_t bytes);
  mlir::Value loadPointer(mlir::Value base, int64_t bytes);

  mlir::ModuleOp module;
  mlir::SymbolTable &symbols;
  const bool isOnGpu; ///< kernels run there
  mlir::OpBuilder b;
  mlir::Type ptr, i64, i32;
  mlir::IRMapping values;
  std::string suffix;
  mlir::Location loc;
  mlir::LLVM::LLVMFuncOp current;
  mlir::Value worker, arguments; ///< the worker; room for the arguments of one launch
  mlir::Value grid;              ///< room for a k2rt_ir_grid
};

} // namespace k2c

#endif // K2C_LIB_CONVERSION_HOSTEMITTER_H
