//===- Jobs.cpp - Kernels to compile, and where ----------------------------===//
#include "Jobs.h"

namespace k2c::calibration {

Expected<TemporaryFolder> folderOfJobs() { return TemporaryFolder::make("k2c-calibrate", "calibration", "set TMPDIR"); }

Expected<ObjectJob> kernelJob(const std::string &kernel, decltype(ObjectJob::build) emit, mlir::MLIRContext &context) {
  mlir::OwningOpRef<mlir::ModuleOp> module = emit(&context);
  if (!module)
    return Error{kernel, "no code could be emitted", ""};
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os);
  return ObjectJob{kernel, std::move(text), std::move(emit)};
}

} // namespace k2c::calibration
