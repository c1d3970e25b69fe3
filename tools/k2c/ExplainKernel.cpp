//===- ExplainKernel.cpp - k2c explain --kernel ---------------------------===//
#include "ExplainKernel.h"
#include "Commands.h"
#include "Sentences.h"
#include "base/JsonText.h"
#include "base/Utf8.h"
#include "k2c/Support/Join.h"
#include <iostream>
#include <sstream>

using namespace k2c;
using nlohmann::ordered_json;

namespace {

constexpr const char *noDisassembler = "llvm-objdump-22 is not on the PATH; install the package llvm-22 to see it";

bool isBoundByMemory(const KernelRoof &roof) { return roof.arithmetic < roof.memory; }

std::string stepOf(const KernelRoof &roof) {
  return roof.step + " of " + std::to_string(roof.tokens) + (roof.tokens == 1 ? " token" : " tokens");
}

/// "4 launches in at least 3.70 us, bound by memory: ...".
std::string sentence(const KernelRoof &roof) {
  if (roof.launches == 0)
    return "the kernel has no rows in it";
  const std::string launches = std::to_string(roof.launches) + (roof.launches == 1 ? " launch" : " launches");
  const std::string activations = format(roof.activations) + " of activations stay in caches";
  if (roof.flops.value == 0 && roof.bytes.value == 0)
    return launches + " without weights, cache or multiply-adds; " + activations;
  const std::string products = format(roof.flops) + " take " + format(roof.arithmetic),
                    bytes = format(roof.bytes) + " of weights and cache take " + format(roof.memory);
  const std::string bound =
      isBoundByMemory(roof)
          ? format(roof.memory) + ", bound by memory: " + bytes + (roof.flops.value > 0 ? ", " + products : "")
          : format(roof.arithmetic) + ", bound by arithmetic: " + products + ", " + bytes;
  return launches + " in at least " + bound + "; " + activations;
}

std::string rateOf(FlopRate rate) {
  const bool isGpu = rate.value >= 1e13; // or as fast as one
  return formatNumber(rate.value * (isGpu ? 1e-12 : 1e-9), 4) + (isGpu ? " TFLOP/s" : " GFLOP/s");
}

void printLines(const std::string &text) {
  std::stringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    std::cout << printable(line) << "\n";
}

void printAssembly(const ExplainedKernel &kernel, bool isWhole) {
  if (kernel.isPtx) {
    std::cout << "\nPTX\n";
    return printLines(*kernel.assembly);
  }
  std::cout << (isWhole ? "\nassembly of the function" : "\nassembly of the main loop");
  if (!kernel.assembly) {
    std::cout << ": " << noDisassembler << "\n";
    return;
  }
  if (kernel.assembly->empty()) {
    std::cout << ": nothing loops; --all prints the function\n";
    return;
  }
  std::cout << ", " << kernel.multiplyAdds << " of " << kernel.instructions
            << " instructions multiply and add vectors\n";
  printLines(*kernel.assembly);
}

int print(const ExplainedKernel &kernel, bool isWhole) {
  std::cout << "kernel " << kernel.name << ", " << kernel.symbol
            << (kernel.sharing.empty() ? "" : "; the same code: " + joined(kernel.sharing)) << "\n\n"
            << kernel.description << "\n\ntile and other decisions\n";
  for (const std::string &remark : kernel.remarks)
    std::cout << "  " << printable(remark) << "\n";
  std::cout << "\nroofline on topology " << printable(kernel.machine) << ": " << kernel.cores
            << (kernel.cores == 1 ? " core" : " cores") << " at " << rateOf(kernel.arithmetic.value) << " in all ("
            << printable(kernel.arithmetic.source) << "), " << format(kernel.memory.value) << " ("
            << printable(kernel.memory.source) << ")\n";
  for (const KernelRoof &roof : kernel.roofs)
    std::cout << "  " << stepOf(roof) << ": " << sentence(roof) << "\n";
  std::cout << "\ncode before LLVM\n" << kernel.code;
  printAssembly(kernel, isWhole);
  return 0;
}

ordered_json rooflineJson(const ExplainedKernel &kernel) {
  ordered_json steps = ordered_json::array();
  for (const KernelRoof &roof : kernel.roofs)
    steps.push_back({{"step", roof.step},
                     {"tokens", roof.tokens},
                     {"context", roof.context},
                     {"launches", roof.launches},
                     {"flop", roof.flops.value},
                     {"bytes", roof.bytes.value},
                     {"activation_bytes", roof.activations.value},
                     {"compute_s", roof.arithmetic.value},
                     {"memory_s", roof.memory.value},
                     {"bound_by", isBoundByMemory(roof) ? "memory" : "arithmetic"}});
  return {{"topology", kernel.machine},
          {"cores", kernel.cores},
          {"flop_per_s", kernel.arithmetic.value.value},
          {"bytes_per_s", kernel.memory.value.value},
          {"steps", steps}};
}

int printJson(const ExplainedKernel &kernel) {
  std::string lines;
  for (const std::string &remark : kernel.remarks)
    lines += remark + "\n";
  Expected<std::vector<RemarkLine>> parsed = readRemarks(lines, "remarks.txt, lines of " + kernel.name);
  if (!parsed)
    return fail(parsed.error());
  ordered_json remarks = ordered_json::array();
  for (const RemarkLine &remark : *parsed)
    remarks.push_back(toJson(remark));
  ordered_json assembly;
  if (kernel.assembly)
    assembly = {
        {"instructions", kernel.instructions}, {"multiply_adds", kernel.multiplyAdds}, {"text", *kernel.assembly}};
  std::cout << jsonText(ordered_json{{"kernel", kernel.name},
                                     {"symbol", kernel.symbol},
                                     {"same_code", kernel.sharing},
                                     {"description", kernel.description},
                                     {"remarks", remarks},
                                     {"roofline", rooflineJson(kernel)},
                                     {"code", kernel.code},
                                     {"assembly", assembly}},
                        2)
            << "\n";
  return 0;
}

} // namespace

int k2c::printKernel(const ExplainKernelOptions &options, bool asJson) {
  Expected<ExplainedKernel> kernel = explainKernel(options);
  if (!kernel)
    return fail(kernel.error());
  return asJson ? printJson(*kernel) : print(*kernel, options.isWhole);
}
