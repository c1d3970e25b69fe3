//===- Codegen.h - One module -> machine code -------------------------------------------===//
#ifndef K2C_LIB_TARGET_HOST_CODEGEN_H
#define K2C_LIB_TARGET_HOST_CODEGEN_H

#include "k2c/Target/Host.h"
#include <memory>

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
enum class CodeGenFileType;
} // namespace llvm

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

// The steps of it, which code generators of all targets share; `name` is the place of errors.

struct MachineChoice {
  std::string triple, cpu, features;
};
/// Without contraction; the target was initialised.
Expected<std::unique_ptr<llvm::TargetMachine>> machineFor(const MachineChoice &choice, const std::string &name);
/// Lowers `module` in place and translates it.
Expected<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp module, llvm::LLVMContext &context,
                                                  const std::string &name);
/// Like clang -O3, without what Codegen.cpp names.
void optimise(llvm::Module &module, llvm::TargetMachine &machine);
/// An object or an assembly text of optimised code. `withoutPass`: the pass of the code generator that is left out, by
/// its name in LLVM's tools; "": none.
Expected<std::string> codeOf(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType kind,
                             const std::string &name, llvm::StringRef withoutPass = "");

/// LLVM's feature string: every known feature as +f or -f.
std::string featureString(const HostTarget &target);

} // namespace k2c

#endif // K2C_LIB_TARGET_HOST_CODEGEN_H
