//===- ExportFolder.h - The folder that k2c export writes -------------------===//
#ifndef K2C_LIB_PIPELINES_EXPORTFOLDER_H
#define K2C_LIB_PIPELINES_EXPORTFOLDER_H

#include "k2c/Pipelines/Export.h"
#include "k2c/Target/Package.h"

namespace k2c {

/// Calls `fill` with OUTPUT.export.partial, which then takes its place with exportFile, which names the format. `from`
/// is the source, a file or a folder. Error: what `fill` says; OUTPUT is a folder of other things, or contains the
/// source. Then nothing is left.
Status writeExportFolder(const ExportOptions &options, const std::string &formatName, const std::string &from,
                         const std::function<Status(const BundleFolder &)> &fill);

} // namespace k2c

#endif // K2C_LIB_PIPELINES_EXPORTFOLDER_H
