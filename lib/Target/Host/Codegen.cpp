//===- Codegen.cpp - One module -> machine code ----------------------------------------------===//
//
// Like clang -O3 on the LLVM IR, with three differences: a * b + c is never contracted, loops are not vectorised
// (kernels come as vectors), and no loop becomes a call of memcpy or memset, because the shared object has no undefined
// symbol.
//
//===----------------------------------------------------------------------===//
#include "Codegen.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/PassInfo.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

namespace k2c {

Expected<std::unique_ptr<llvm::TargetMachine>> machineFor(const MachineChoice &choice, const std::string &name) {
  std::string problem;
  llvm::Triple triple(choice.triple);
  const llvm::Target *registered = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (!registered)
    return Error{name, "LLVM has no code generator for " + choice.triple + ": " + problem,
                 "install LLVM 22 with the X86 and NVPTX targets"};
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.FunctionSections = true;
  return std::unique_ptr<llvm::TargetMachine>(
      registered->createTargetMachine(triple, choice.cpu, choice.features, options, llvm::Reloc::PIC_,
                                      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive));
}

static Expected<std::unique_ptr<llvm::TargetMachine>> hostMachine(const HostTarget &target, const std::string &name) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  return machineFor({"x86_64-unknown-linux-gnu", target.cpu, featureString(target)}, name);
}

void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopInterleaving = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

Expected<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp module, llvm::LLVMContext &context,
                                                  const std::string &name) {
  if (failed(lowerToLLVMDialect(module)))
    return Error{name, "does not lower to the LLVM dialect", ""};
  mlir::registerBuiltinDialectTranslation(*module.getContext());
  mlir::registerLLVMDialectTranslation(*module.getContext());
  std::unique_ptr<llvm::Module> code = mlir::translateModuleToLLVMIR(module, context, name);
  if (!code)
    return Error{name, "does not translate to LLVM IR", ""};
  return code;
}

namespace {

/// Passes of a code generator without one, which `left` names as LLVM's tools do; "": all of them.
class PassesWithout : public llvm::legacy::PassManager {
public:
  explicit PassesWithout(llvm::StringRef left) : left(left) {}
  void add(llvm::Pass *pass) override {
    const llvm::PassInfo *info = llvm::Pass::lookupPassInfo(pass->getPassID());
    if (left.empty() || !info || info->getPassArgument() != left)
      return PassManager::add(pass);
    delete pass;
  }

private:
  const llvm::StringRef left;
};

} // namespace

Expected<std::string> codeOf(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType kind,
                             const std::string &name, llvm::StringRef withoutPass) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  PassesWithout emitter(withoutPass);
  if (machine.addPassesToEmitFile(emitter, stream, nullptr, kind))
    return Error{name, "LLVM cannot write this kind of file for " + machine.getTargetTriple().str(), ""};
  emitter.run(module);
  return std::string(bytes.begin(), bytes.end());
}

Expected<std::string> generateCode(mlir::ModuleOp module, const HostTarget &target, const std::string &name,
                                   CodeKind kind) {
  llvm::LLVMContext context;
  Expected<std::unique_ptr<llvm::Module>> translated = translate(module, context, name);
  if (!translated)
    return translated.takeError();
  std::unique_ptr<llvm::Module> code = std::move(*translated);
  if (kind == CodeKind::LlvmIr) {
    std::string text;
    llvm::raw_string_ostream(text) << *code;
    return text;
  }
  Expected<std::unique_ptr<llvm::TargetMachine>> found = hostMachine(target, name);
  if (!found)
    return found.takeError();
  std::unique_ptr<llvm::TargetMachine> machine = std::move(*found);
  code->setTargetTriple(machine->getTargetTriple());
  code->setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : *code)
    if (!function.isDeclaration()) {
      function.addFnAttr(llvm::Attribute::NoUnwind);
      function.addFnAttr("no-builtins");
    }
  optimise(*code, *machine);
  auto file = kind == CodeKind::Object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
  return codeOf(*code, *machine, file, name);
}

Expected<std::string> assemblyOf(mlir::ModuleOp module, const HostTarget &target) {
  return generateCode(module, target, "module", CodeKind::Assembly);
}

Expected<std::string> llvmIrOf(mlir::ModuleOp module, const HostTarget &target) {
  return generateCode(module, target, "module", CodeKind::LlvmIr);
}

} // namespace k2c
