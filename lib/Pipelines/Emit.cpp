//===- Emit.cpp - The forms that --emit writes ----------------------------===//
//
// A form is one text. Kernels have a file each, too, called as the kernel is; -o - prints their texts one behind the
// other, code that several share once.
//
//   --emit runtime    DIR/runtime.mlir                           the host program, and the code of kernels behind it
//   --emit kernels    DIR/kernels.mlir, DIR/kernels/KERNEL.mlir  what a kernel computes, and its code before LLVM
//   --emit llvm       DIR/llvm/host.ll, DIR/llvm/KERNEL.ll
//
//===----------------------------------------------------------------------===//
#include "Stages.h"
#include "k2c/Support/WriteFile.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include <filesystem>

namespace fs = std::filesystem;
using namespace mlir;

namespace k2c {

std::string printed(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs();
  module.print(os, flags);
  return text + "\n";
}

std::string readableCode(ModuleOp code) {
  OwningOpRef<ModuleOp> copy = code.clone();
  PassManager passes(code.getContext());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  return printed(succeeded(passes.run(*copy)) ? *copy : code);
}

namespace {

Status writeText(const CompileOptions &options, const std::string &name, const std::string &text) {
  const fs::path path = fs::path(options.output) / name;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  return writeFile(path.string(), text);
}

/// DIR/FORM.mlir, or options.print.
Status writeForm(const CompileOptions &options, const std::string &text) {
  if (options.output != "-")
    return writeText(options, options.emit + ".mlir", text);
  options.print(text);
  return {};
}

/// A file for each kernel that has this code; nothing where the form is printed.
Status writeKernels(const CompileOptions &options, const KernelCode &code, const std::string &folder,
                    const std::string &suffix, const std::string &text) {
  for (const std::string &kernel : code.kernels)
    if (options.output != "-")
      if (Status status = writeText(options, folder + "/" + kernel + suffix, text); !status)
        return status;
  return {};
}

Status emitKernels(CompilePipeline &pipeline, const CompileOptions &options) {
  std::string all;
  for (const KernelCode &code : pipeline.codes()) {
    const std::string text = code.computes + readableCode(code.in(pipeline.module()));
    if (Status status = writeKernels(options, code, "kernels", ".mlir", text); !status)
      return status;
    all += text + "\n";
  }
  return writeForm(options, all);
}

Status emitLlvm(CompilePipeline &pipeline, const CompileOptions &options, const HostTarget &target) {
  std::vector<KernelCode> codes = pipeline.codes();
  codes.insert(codes.begin(), KernelCode{"host", {"host"}, ""});
  for (const ObjectJob &part : programParts(pipeline.module())) {
    OwningOpRef<ModuleOp> module = part.build(nullptr);
    Expected<std::string> text = llvmIrOf(*module, target);
    if (!text)
      return text.takeError();
    if (options.output == "-")
      options.print(*text + "\n");
    const auto code = llvm::find_if(codes, [&](const KernelCode &each) { return each.symbol == part.name; });
    if (Status status = writeKernels(options, *code, "llvm", ".ll", *text); !status)
      return status;
  }
  return {};
}

} // namespace

Status emitForm(CompilePipeline &pipeline, const CompileOptions &options, const HostTarget &target) {
  if (options.emit == kernelsForm)
    return emitKernels(pipeline, options);
  if (options.emit == nameOf(Form::Llvm))
    return emitLlvm(pipeline, options, target);
  if (options.noKernels)
    for (auto code : llvm::make_early_inc_range(pipeline.module().getOps<ModuleOp>()))
      code.erase();
  return writeForm(options, printed(pipeline.module()));
}

} // namespace k2c
