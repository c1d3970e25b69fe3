//===- WriteFile.h - A text as a file --------------------------------------===//
#ifndef K2C_SUPPORT_WRITEFILE_H
#define K2C_SUPPORT_WRITEFILE_H

#include "base/Error.h"

namespace k2c {

/// Creates or replaces the file. Error: at `path`, with the system's reason and `remedy`.
Status writeFile(const std::string &path, const std::string &text,
                 const std::string &remedy = "check space and permissions");

} // namespace k2c

#endif // K2C_SUPPORT_WRITEFILE_H
