//===- EntryPoints.h - What the driver exports ----------------------------===//
#ifndef K2C_LIB_EMULATEDDRIVER_ENTRYPOINTS_H
#define K2C_LIB_EMULATEDDRIVER_ENTRYPOINTS_H

#include "base/CudaDriver.h"

#include <cstddef>

extern "C" {
#define K2C_CUDA(name, parameters) __attribute__((visibility("default"))) CUresult name parameters;
#include "base/CudaDriver.def"
}

namespace k2c::emulated {

enum class Entry {
#define K2C_CUDA(name, parameters) name,
#include "base/CudaDriver.def"
};

constexpr const char *entryNames[] = {
#define K2C_CUDA(name, parameters) #name,
#include "base/CudaDriver.def"
};
constexpr size_t entryCount = sizeof entryNames / sizeof *entryNames;

/// The name of an error; null: it is none of base/CudaErrors.def.
const char *errorName(CUresult error);
const char *errorText(CUresult error);

} // namespace k2c::emulated

#endif // K2C_LIB_EMULATEDDRIVER_ENTRYPOINTS_H
