//===- k2c-opt.cpp - Run passes on modules --------------------------------===//
#include "dialects/Mla/Mla.h"
#include "dialects/Moe/Moe.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  registry.insert<k2c::nn::NnDialect, k2c::moe::MoeDialect, k2c::mla::MlaDialect>();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "k2c optimizer driver\n", registry));
}
