//===- EmbeddedLaunchFiles.h - Templates of launch files, compiled in -----===//
#ifndef K2C_LIB_TARGET_PACKAGE_EMBEDDEDLAUNCHFILES_H
#define K2C_LIB_TARGET_PACKAGE_EMBEDDEDLAUNCHFILES_H

#include "k2c/Support/EmbeddedFile.h"

namespace k2c {

const std::vector<EmbeddedFile> &embeddedLaunchFiles();

} // namespace k2c

#endif // K2C_LIB_TARGET_PACKAGE_EMBEDDEDLAUNCHFILES_H
