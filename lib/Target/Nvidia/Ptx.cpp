//===- Ptx.cpp - One module -> a PTX text ---------------------------------------------------===//
//
// Three things that LLVM would do otherwise are done before its code generator: the read before a loop of
// compare-and-swap is atomic, as another thread may write meanwhile; what is undefined is zero, so that no register is
// read that was never written; and long loops say that they are not to be unrolled.
//
// The code generator's loop strength reduction is left out. Of a nest of loops it gives each address of each inner loop
// a pointer that begins outside of all of them and advances in each: a kernel with a body for each row count then has
// dozens of them, which take their registers for as long as it runs. An inner loop has one more shift without it.
//
//===----------------------------------------------------------------------===//
#include "Entry.h"
#include "lib/Target/Host/Codegen.h"
#include "lib/Target/Host/Objects.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include <mutex>

namespace k2c {

/// Hash of the sources that decide a text; CMakeLists.txt computes it.
extern const char *const ptxGeneratorHash;

Expected<NvidiaTarget> NvidiaTarget::forArch(const std::string &name) {
  // The PTX ISA's release notes: when an architecture came.
  static const NvidiaTarget known[] = {
      {"sm_80", 70}, {"sm_89", 78}, {"sm_90a", 80}, {"sm_100", 86}, {"sm_120", 87},
  };
  std::string names;
  for (const NvidiaTarget &target : known) {
    if (target.arch == name)
      return target;
    names += (names.empty() ? "" : ", ") + target.arch;
  }
  return Error{"architecture " + name, "is not known", "use one of " + names};
}

static Expected<std::unique_ptr<llvm::TargetMachine>> nvidiaMachine(const NvidiaTarget &target,
                                                                    const std::string &name) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  return machineFor({"nvptx64-nvidia-cuda", target.arch, "+ptx" + std::to_string(target.ptxVersion)}, name);
}

/// The f32 at an address becomes the larger: a loop of compare-and-swap.
static void expandMaximum(llvm::AtomicRMWInst &max) {
  llvm::IRBuilder<> b(&max);
  const llvm::SyncScope::ID device = b.getContext().getOrInsertSyncScopeID("device");
  llvm::LoadInst *first = b.CreateAlignedLoad(b.getInt32Ty(), max.getPointerOperand(), llvm::Align(4));
  first->setAtomic(llvm::AtomicOrdering::Monotonic, device);
  llvm::BasicBlock *before = max.getParent(), *after = llvm::SplitBlock(before, &max);
  auto *loop = llvm::BasicBlock::Create(b.getContext(), "max", before->getParent(), after);
  before->getTerminator()->setSuccessor(0, loop);
  b.SetInsertPoint(loop);
  llvm::PHINode *known = b.CreatePHI(b.getInt32Ty(), 2);
  llvm::Value *larger = b.CreateMaxNum(b.CreateBitCast(known, b.getFloatTy()), max.getValOperand());
  auto *swap =
      b.CreateAtomicCmpXchg(max.getPointerOperand(), known, b.CreateBitCast(larger, b.getInt32Ty()), llvm::Align(4),
                            llvm::AtomicOrdering::Monotonic, llvm::AtomicOrdering::Monotonic, device);
  known->addIncoming(first, before);
  known->addIncoming(b.CreateExtractValue(swap, 0), loop);
  b.CreateCondBr(b.CreateExtractValue(swap, 1), after, loop);
  max.eraseFromParent();
}

static void expandMaxima(llvm::Function &function) {
  llvm::SmallVector<llvm::AtomicRMWInst *> maxima;
  for (llvm::BasicBlock &block : function)
    for (llvm::Instruction &instruction : block)
      if (auto *max = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction);
          max && max->getOperation() == llvm::AtomicRMWInst::FMax && max->use_empty())
        maxima.push_back(max);
  for (llvm::AtomicRMWInst *max : maxima)
    expandMaximum(*max);
}

/// What instructions take that is undefined becomes zero.
static void defineValues(llvm::Function &function) {
  for (llvm::BasicBlock &block : function)
    for (llvm::Instruction &instruction : block)
      for (llvm::Use &operand : instruction.operands())
        if (llvm::isa<llvm::UndefValue>(operand.get()) && !llvm::isa<llvm::ShuffleVectorInst>(instruction))
          operand.set(llvm::Constant::getNullValue(operand->getType()));
}

/// Loops that are long already are not unrolled by ptxas, which takes all registers for it and then spills.
static void keepLongLoops(llvm::Function &function) {
  constexpr size_t longest = 64; // instructions
  llvm::DominatorTree dominators(function);
  llvm::LoopInfo loops(dominators);
  for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
    size_t instructions = 0;
    for (const llvm::BasicBlock *block : loop->blocks())
      instructions += block->size();
    if (instructions > longest)
      loop->setLoopAlreadyUnrolled();
  }
}

/// ptxOf() of a module that it may change.
static Expected<std::string> generatePtx(mlir::ModuleOp module, llvm::StringRef symbol, int64_t arguments,
                                         const NvidiaTarget &target) {
  const std::string name = symbol.str();
  llvm::LLVMContext context;
  Expected<std::unique_ptr<llvm::Module>> translated = translate(module, context, name);
  if (!translated)
    return translated.takeError();
  Expected<std::unique_ptr<llvm::TargetMachine>> machine = nvidiaMachine(target, name);
  if (!machine)
    return machine.takeError();
  llvm::Module &code = **translated;
  code.setTargetTriple((*machine)->getTargetTriple());
  code.setDataLayout((*machine)->createDataLayout());
  llvm::Function *body = code.getFunction(symbol);
  if (!body || body->isDeclaration() || body->arg_size() != 2)
    return Error{name, "the module has no function (worker, arguments) of this name", ""};
  expandMaxima(*body);
  addEntry(*body, arguments, target);
  for (llvm::Function &function : code)
    if (!function.isDeclaration()) {
      function.addFnAttr(llvm::Attribute::NoUnwind);
      function.addFnAttr("no-builtins");
      function.addFnAttr("no-jump-tables", "true");                              // which end the lanes' common way
      function.addFnAttr("denormal-fp-math-f32", "preserve-sign,preserve-sign"); // N6: .ftz
    }
  optimise(code, **machine);
  for (llvm::Function &function : code)
    if (!function.isDeclaration()) {
      defineValues(function);
      keepLongLoops(function);
    }
  return codeOf(code, **machine, llvm::CodeGenFileType::AssemblyFile, name, "loop-reduce");
}

Expected<std::string> ptxOf(mlir::ModuleOp code, llvm::StringRef symbol, int64_t arguments,
                            const NvidiaTarget &target) {
  mlir::OwningOpRef<mlir::ModuleOp> clone(code.clone());
  return generatePtx(*clone, symbol, arguments, target);
}

Expected<std::vector<std::string>> compilePtx(const std::vector<PtxJob> &jobs, const NvidiaTarget &target,
                                              const ObjectOptions &options) {
  std::vector<FileJob> files;
  for (const PtxJob &job : jobs) {
    const std::string decides = job.code.key + "\n" + job.symbol + "\n" + std::to_string(job.arguments) + "\n" +
                                target.arch + "\n" + std::to_string(target.ptxVersion) + "\n" +
                                std::to_string(target.threads) + "\n" + std::to_string(target.workersPerCta()) +
                                "\n" LLVM_VERSION_STRING "\n" + ptxGeneratorHash;
    files.push_back(moduleJob(job.code, hashedName(decides, ".ptx"), [&](mlir::ModuleOp module) {
      return generatePtx(module, job.symbol, job.arguments, target);
    }));
  }
  return compileFiles(files, options);
}

} // namespace k2c
