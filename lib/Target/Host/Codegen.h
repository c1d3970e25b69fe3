//===- Codegen.h - One module -> machine code -------------------------------------------===//
#ifndef K2C_LIB_TARGET_HOST_CODEGEN_H
#define K2C_LIB_TARGET_HOST_CODEGEN_H

#include "k2c/Target/Host.h"

namespace k2c {

enum class CodeKind : uint8_t { Object, Assembly, LlvmIr };

/// Hash of the sources of this folder that decide an object; CMakeLists.txt computes it.
extern const char *const codeGeneratorHash;

/// The file of a job's object in the cache: a hash of its key, the target, LLVM's version and the code generator's
/// hash.
std::string objectName(const ObjectJob &job, const HostTarget &target, const std::string &generator);

/// Lowers `module` in place, optimises and generates code. `name` is the place of errors. LLVM may end the process.
Expected<std::string> generateCode(mlir::ModuleOp module, const HostTarget &target, const std::string &name,
                                   CodeKind kind);

/// LLVM's feature string: every known feature as +f or -f.
std::string featureString(const HostTarget &target);

} // namespace k2c

#endif // K2C_LIB_TARGET_HOST_CODEGEN_H
