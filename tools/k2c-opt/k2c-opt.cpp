//===- k2c-opt.cpp - Run passes on modules --------------------------------===//
//
// mlir-opt with k2c's dialects, its passes (--set-numerics ...) and one pipeline a form (--model-form, --planned-form
// ...). What passes decide: --remarks-filter=PASS.
//
// A diagnostic shows the line of the file, not the op that it is about, as most are about a whole module:
// --mlir-print-op-on-diagnostic shows that, too.
//
//===----------------------------------------------------------------------===//
#include "dialects/Dialects.h"
#include "k2c/Pipelines/Pipelines.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"

/// MLIR shows the op unless it is told not to.
static void leaveOpsOutOfDiagnostics() {
  mlir::registerMLIRContextCLOptions();
  llvm::cl::Option *flag = llvm::cl::getRegisteredOptions().lookup("mlir-print-op-on-diagnostic");
  static_cast<llvm::cl::opt<bool> *>(flag)->setInitialValue(false);
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  k2c::registerDialects(registry);
  k2c::registerPassesAndPipelines();
  leaveOpsOutOfDiagnostics();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "k2c optimizer driver\n", registry));
}
