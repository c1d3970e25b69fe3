//===- Jobs.h - Kernels to compile, and where ------------------------------===//
#ifndef K2C_LIB_CALIBRATE_JOBS_H
#define K2C_LIB_CALIBRATE_JOBS_H

#include "k2c/Target/Host.h"

namespace k2c::calibration {

/// A folder that is gone with this object. Move-only.
class TemporaryFolder {
public:
  static Expected<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder &&other) noexcept : folder(std::move(other.folder)) { other.folder.clear(); }
  TemporaryFolder &operator=(TemporaryFolder &&) = delete;
  ~TemporaryFolder();

  /// Of a file in it.
  std::string path(const char *name) const { return folder + "/" + name; }

private:
  explicit TemporaryFolder(std::string folder) : folder(std::move(folder)) {}
  std::string folder;
};

/// The job of a kernel whose module `emit` makes, in `context` for its key. Error: it makes none.
Expected<ObjectJob> kernelJob(const std::string &kernel, decltype(ObjectJob::build) emit, mlir::MLIRContext &context);

} // namespace k2c::calibration

#endif // K2C_LIB_CALIBRATE_JOBS_H
