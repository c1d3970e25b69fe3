//===- FormatBytes.h - Sizes for people ------------------------------------===//
#ifndef K2C_BASE_FORMATBYTES_H
#define K2C_BASE_FORMATBYTES_H

#include <cstdint>
#include <string>

namespace k2c {

/// In both conventions, as documents of the field mix them: "512 B", "1.50 KiB (1.54 KB)", "18.29 GiB (19.64 GB)".
std::string formatBytes(int64_t bytes);

} // namespace k2c

#endif // K2C_BASE_FORMATBYTES_H
