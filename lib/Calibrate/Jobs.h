//===- Jobs.h - Kernels to compile, and where ------------------------------===//
#ifndef K2C_LIB_CALIBRATE_JOBS_H
#define K2C_LIB_CALIBRATE_JOBS_H

#include "k2c/Target/Host.h"
#include "k2c/Target/TemporaryFolder.h"

namespace k2c::calibration {

/// Where measured code lies while the process runs it. Error: it cannot be made.
Expected<TemporaryFolder> folderOfJobs();

/// The job of a kernel whose module `emit` makes, in `context` for its key. Error: it makes none.
Expected<ObjectJob> kernelJob(const std::string &kernel, decltype(ObjectJob::build) emit, mlir::MLIRContext &context);

} // namespace k2c::calibration

#endif // K2C_LIB_CALIBRATE_JOBS_H
