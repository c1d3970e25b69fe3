//===- WriteFile.h - A text as a file --------------------------------------===//
#ifndef K2C_SUPPORT_WRITEFILE_H
#define K2C_SUPPORT_WRITEFILE_H

#include "base/Error.h"

namespace k2c {

/// Creates or replaces the file. Error: at `path`, with the system's reason and `remedy`.
Status writeFile(const std::string &path, const std::string &text,
                 const std::string &remedy = "check space and permissions");

/// Whether the file system of the folder has room for `bytes` of `what`, which the error names; one that does not say
/// is taken to have.
Status checkSpace(const std::string &folder, const std::string &what, int64_t bytes);

} // namespace k2c

#endif // K2C_SUPPORT_WRITEFILE_H
