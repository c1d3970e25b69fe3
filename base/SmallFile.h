// Files of proc and sys.
#ifndef K2C_BASE_SMALLFILE_H
#define K2C_BASE_SMALLFILE_H

#include <string>

namespace k2c {

/// The file's first 64 KiB; empty when there is none.
std::string readSmallFile(const std::string &path);
/// Its first line, likewise.
std::string readFirstLine(const std::string &path);

} // namespace k2c

#endif
