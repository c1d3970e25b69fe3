//===- TemporaryFolder.cpp - A folder that is gone with its object --------===//
#include "k2c/Target/TemporaryFolder.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

namespace k2c {

Expected<TemporaryFolder> TemporaryFolder::make(const std::string &prefix, const std::string &where,
                                                const std::string &remedy) {
  llvm::SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory(prefix, folder))
    return Error{where, "cannot make a temporary folder: " + error.message(), remedy};
  return TemporaryFolder(folder.str().str());
}

TemporaryFolder::~TemporaryFolder() {
  if (!folder.empty())
    llvm::sys::fs::remove_directories(folder);
}

} // namespace k2c
