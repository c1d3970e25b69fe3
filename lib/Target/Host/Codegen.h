//===- Codegen.h - One module -> machine code -------------------------------------------===//
#ifndef K2C_LIB_TARGET_HOST_CODEGEN_H
#define K2C_LIB_TARGET_HOST_CODEGEN_H

#include "k2c/Target/Host.h"

namespace k2c {

enum class CodeKind : uint8_t { Object, Assembly, LlvmIr };

/// Grows with every change of the pipeline that could change an object.
inline constexpr int hostPipelineVersion = 1;

/// Lowers `module` in place, optimises and generates code. `name` is the place of errors. LLVM may end the process.
Expected<std::string> generateCode(mlir::ModuleOp module, const HostTarget &target, const std::string &name,
                                   CodeKind kind);

/// LLVM's feature string: every known feature as +f or -f.
std::string featureString(const HostTarget &target);

} // namespace k2c

#endif // K2C_LIB_TARGET_HOST_CODEGEN_H
