//===- copy-opt.cpp - k2c-opt with a dialect that no pass knows -----------===//
#include "Copy.h"
#include "dialects/Dialects.h"
#include "k2c/Pipelines/Pipelines.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, mlir::arith::ArithDialect, mlir::scf::SCFDialect, k2c::copy::CopyDialect>();
  k2c::registerDialects(registry);
  k2c::registerPassesAndPipelines();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "k2c-opt with the copy dialect\n", registry));
}
