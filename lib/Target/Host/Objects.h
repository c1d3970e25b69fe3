//===- Objects.h - Files that code generators make of modules ---------------------------===//
#ifndef K2C_LIB_TARGET_HOST_OBJECTS_H
#define K2C_LIB_TARGET_HOST_OBJECTS_H

#include "k2c/Target/Host.h"

namespace k2c {

/// A file of the cache. `code.build` and `generate` are called in a child process, and only when the cache lacks the
/// file; LLVM may end that process.
struct FileJob {
  ObjectJob code;
  std::string file;                                              ///< its name there: equal names, equal files
  std::function<Expected<std::string>(mlir::ModuleOp)> generate; ///< its bytes; may change the module
};

/// Paths of the files, in the order of `jobs`. The first failure is the error; the others are finished or cancelled.
Expected<std::vector<std::string>> compileFiles(const std::vector<FileJob> &jobs, const ObjectOptions &options);

/// A file's name: the hash of what decides it, and `suffix`.
std::string hashedName(const std::string &text, const std::string &suffix);

} // namespace k2c

#endif // K2C_LIB_TARGET_HOST_OBJECTS_H
