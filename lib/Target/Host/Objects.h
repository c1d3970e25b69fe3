//===- Objects.h - Files that code generators make of modules ---------------------------===//
#ifndef K2C_LIB_TARGET_HOST_OBJECTS_H
#define K2C_LIB_TARGET_HOST_OBJECTS_H

#include "k2c/Target/Host.h"

namespace k2c {

/// A file of the cache. `make` is called in a child process, and only when the cache lacks the file; LLVM may end that
/// process.
struct FileJob {
  std::string name; ///< in errors
  std::string file; ///< its name there: equal names, equal files
  /// Its bytes. What is diagnosed in the context is added to an error's message.
  std::function<Expected<std::string>(mlir::MLIRContext &)> make;
};

/// The job of a module: `generate`, which may change it, makes the bytes.
FileJob moduleJob(const ObjectJob &code, std::string file,
                  std::function<Expected<std::string>(mlir::ModuleOp)> generate);

/// Paths of the files, in the order of `jobs`. The first failure is the error; the others are finished or cancelled.
Expected<std::vector<std::string>> compileFiles(const std::vector<FileJob> &jobs, const ObjectOptions &options);

/// A file's name: the hash of what decides it, and `suffix`.
std::string hashedName(const std::string &text, const std::string &suffix);

} // namespace k2c

#endif // K2C_LIB_TARGET_HOST_OBJECTS_H
