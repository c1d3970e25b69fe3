//===- k2c-opt.cpp - Run passes on modules --------------------------------===//
//
// mlir-opt with k2c's dialects, its passes (--set-numerics ...) and one pipeline a form (--model-form, --planned-form
// ...). What passes decide: --remarks-filter=PASS.
//
//===----------------------------------------------------------------------===//
#include "dialects/Dialects.h"
#include "k2c/Pipelines/Pipelines.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  k2c::registerDialects(registry);
  k2c::registerPassesAndPipelines();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "k2c optimizer driver\n", registry));
}
