//===- Jobs.cpp - Kernels to compile, and where ----------------------------===//
#include "Jobs.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

namespace k2c::calibration {

Expected<TemporaryFolder> TemporaryFolder::make() {
  llvm::SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("k2c-calibrate", folder))
    return Error{"calibration", "cannot make a temporary folder: " + error.message(), "set TMPDIR"};
  return TemporaryFolder(folder.str().str());
}

TemporaryFolder::~TemporaryFolder() {
  if (!folder.empty())
    llvm::sys::fs::remove_directories(folder);
}

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
