//===- LowerFunction.h - One scheduled function to the runtime form -------===//
#ifndef K2C_LIB_CONVERSION_LOWERFUNCTION_H
#define K2C_LIB_CONVERSION_LOWERFUNCTION_H

#include "dialects/Dist/Dist.h"
#include "dialects/Nn/Nn.h"
#include "dialects/Rt/Rt.h"
#include "k2c/Kernels/Describe.h"
#include "k2c/Kernels/TileConfig.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"

namespace k2c {

/// The rt.plane_table symbol of one plane of a pool.
std::string planeName(nn::PoolOp pool, nn::PlaneAttr plane);

/// The rt.collective symbol of a site.
std::string siteName(int64_t site);

/// Writes the runtime form of functions of a scheduled module. Values become addresses at the place of their use.
class FunctionLowering {
public:
  FunctionLowering(mlir::ModuleOp scheduled, KernelDescriptions &descriptions);

  /// Appends the lowered `function` at `b`: an entry takes nothing, a layer its index.
  mlir::LogicalResult lower(mlir::OpBuilder &b, mlir::FunctionOpInterface function);

private:
  mlir::LogicalResult lowerCall(mlir::OpBuilder &b, kern::CallOp call);
  mlir::LogicalResult lowerBlock(mlir::OpBuilder &b, mlir::Block &block);
  mlir::LogicalResult lowerRegion(mlir::Region &from, mlir::Region &into);
  mlir::LogicalResult lowerIf(mlir::OpBuilder &b, mlir::scf::IfOp op);
  mlir::LogicalResult lowerFor(mlir::OpBuilder &b, mlir::scf::ForOp op);
  void lowerCollective(mlir::OpBuilder &b, dist::AllToAllOp op);
  void lowerSlices(mlir::OpBuilder &b, mlir::Operation *op);
  void lowerStage(mlir::OpBuilder &b, llvm::StringRef name, int64_t number, mlir::Value rows);
  mlir::LogicalResult checkCall(kern::CallOp call, const DescribedKernel &kernel);
  void lowerSplit(mlir::OpBuilder &b, kern::CallOp call, const DescribedKernel &kernel, int64_t splitTokens,
                  llvm::SmallVector<mlir::Value> arguments);
  void lowerLayers(mlir::OpBuilder &b, nn::LayersOp op);
  mlir::Value argument(mlir::OpBuilder &b, kern::CallOp call, const Operand &operand, const ArgumentSource &source);
  mlir::Value layerIndex(mlir::OpBuilder &b, int64_t offset);
  mlir::Value layerOrdinal(mlir::OpBuilder &b, nn::IndicesAttr among);
  mlir::Value weightAddress(mlir::OpBuilder &b, kern::CallOp call, const kern::CallOp::Argument &argument,
                            const Operand &operand);
  mlir::Attribute layoutOf(kern::CallOp call, const Operand &operand);
  mlir::Value planeAddress(mlir::OpBuilder &b, mlir::Value view, unsigned plane);
  mlir::Value bufferAddress(mlir::OpBuilder &b, mlir::Value value, int64_t skip);
  mlir::Value gridItems(mlir::OpBuilder &b, kern::CallOp call, const DescribedKernel &kernel);

  mlir::SymbolTable symbols;
  KernelDescriptions &descriptions;
  nn::LimitsAttr limits;
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Attribute>, rt::WeightSlotsOp> slots; ///< by family and layout
  mlir::Value layer;                                     ///< of the function being lowered; null in an entry
  llvm::DenseMap<nn::IndicesAttr, mlir::Value> ordinals; ///< of `layer`
  mlir::IRMapping numbers;                               ///< indices and integers of the function being lowered
};

} // namespace k2c

#endif // K2C_LIB_CONVERSION_LOWERFUNCTION_H
