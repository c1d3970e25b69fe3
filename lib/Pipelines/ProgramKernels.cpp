//===- ProgramKernels.cpp - What a program launches, and how often --------===//
#include "ProgramKernels.h"

#include "k2c/Kernels/Cpu.h"
#include "k2c/Kernels/TileAttr.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace k2c {

/// How often a step calls each function: the entry once, a layer's function once for each layer it stands for.
static llvm::StringMap<int64_t> callsOfFunctions(ModuleOp module) {
  llvm::StringMap<int64_t> calls;
  for (FunctionOpInterface function : kern::stepFunctions(module)) {
    if (nn::isEntry(function))
      calls[function.getName()] = 1;
    function.walk([&](nn::LayersOp layers) {
      for (nn::LayerRunAttr run : layers.getRuns().getAsRange<nn::LayerRunAttr>())
        for (auto [turn, callee] : llvm::enumerate(run.getCallees()))
          calls[callee.getValue()] += run.callsOf(turn);
    });
  }
  return calls;
}

std::vector<ProgramKernel> programKernels(ModuleOp module) {
  llvm::StringMap<int64_t> functions = callsOfFunctions(module), launches, nowait;
  for (FunctionOpInterface function : kern::stepFunctions(module))
    function.walk([&](kern::CallOp call) {
      int64_t calls = functions.lookup(function.getName());
      launches[call.getCallee()] += calls;
      nowait[call.getCallee()] += call.getNowait() ? calls : 0;
    });
  std::vector<ProgramKernel> kernels;
  KernelDescriptions descriptions(module);
  for (auto kernel : module.getOps<kern::FuncOp>()) {
    ProgramKernel program{descriptions.find(kernel)->desc, tileConfig(kernel.getTileAttr()),
                          launches.lookup(kernel.getSymName()), nowait.lookup(kernel.getSymName())};
    program.desc.name = kernel.getSymName().str();
    kernels.push_back(std::move(program));
  }
  return kernels;
}

std::string descriptionText(kern::FuncOp kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  kernel->print(os, OpPrintingFlags().useLocalScope());
  return text;
}

static std::string commented(const std::string &text) {
  std::string lines;
  for (StringRef line : llvm::split(text, '\n'))
    lines += ("// " + line + "\n").str();
  return lines;
}

std::vector<KernelCode> kernelCodes(ModuleOp module) {
  std::vector<KernelCode> codes;
  KernelDescriptions descriptions(module);
  for (auto kernel : module.getOps<kern::FuncOp>()) {
    const KernelDesc &desc = descriptions.find(kernel)->desc;
    const std::string symbol = codeName(desc);
    auto code = llvm::find_if(codes, [&](const KernelCode &known) { return known.symbol == symbol; });
    if (code == codes.end())
      code = codes.insert(codes.end(), {symbol, {}, "", kernelSymbol(desc), int64_t(operands(desc).size())});
    code->kernels.push_back(kernel.getSymName().str());
    code->computes += commented(descriptionText(kernel));
  }
  return codes;
}

} // namespace k2c
