//===- InspectKernels.cpp - k2c inspect --kernels --------------------------===//
//
// What ptxas said of kernels stands in ptx/index.json, which a bundle has as well as a folder of --emit ptx; how many
// bytes they are, their files say. Instructions are counted here: of the cubin by nvdisasm, with its main loops, and
// where either is not there of the PTX, which also shows whether its accesses of shared memory have bank conflicts.
// What is not known is left out of the text, and null in JSON.
//
//===----------------------------------------------------------------------===//
#include "InspectKernels.h"
#include "Commands.h"
#include "base/File.h"
#include "base/JsonFields.h"
#include "base/JsonText.h"
#include "base/Utf8.h"
#include "k2c/Ptx/BankConflicts.h"
#include "k2c/Support/Units.h"
#include "k2c/Target/Sass.h"
#include <algorithm>
#include <filesystem>
#include <iostream>

using namespace k2c;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

constexpr int64_t maxFileBytes = int64_t(1) << 30;

/// The code of kernels that compute the same.
struct Kernel {
  std::string name; ///< of the first that has it
  std::string hash; ///< that names its files
  std::string arch;
  std::string kind;                                          ///< index.json's class
  std::optional<int64_t> registers, spillBytes, sharedBytes; ///< none: it was compiled without ptxas
  int64_t ptxBytes = 0;                                      ///< of the text
  std::optional<int64_t> cubinBytes;                         ///< none: there is no cubin
  InstructionMix mix;                                        ///< of its cubin, or else of its PTX
  std::optional<std::vector<InstructionMix>> mainLoops;      ///< none: there is no cubin, or no nvdisasm here
  bool hasNoConflicts = false;                               ///< of banks, whatever it computes
};

std::optional<int64_t> numberOf(const JsonFields &entry, const char *key) {
  return entry.has(key) ? std::optional(entry.integer(key, 0, maxFileBytes)) : std::nullopt;
}

/// What index.json says, by name.
std::vector<Kernel> readIndex(const JsonFields &root) {
  std::vector<Kernel> kernels;
  for (const auto &[hash, entry] : root.members()) {
    if (!isInsidePath(hash))
      root.fail(hash, "is not the name of a file");
    Kernel &kernel = kernels.emplace_back();
    kernel.name = entry.string("name");
    kernel.hash = hash;
    kernel.arch = entry.string("arch");
    kernel.kind = entry.string("class");
    kernel.registers = numberOf(entry, "registers");
    kernel.spillBytes = numberOf(entry, "spill_bytes");
    kernel.sharedBytes = numberOf(entry, "shared_bytes");
  }
  std::stable_sort(kernels.begin(), kernels.end(), [](const Kernel &a, const Kernel &b) { return a.name < b.name; });
  return kernels;
}

/// What its files say.
Status readCode(const fs::path &folder, const std::optional<std::string> &nvdisasm, Kernel &kernel) {
  const std::string path = (folder / "ptx" / (kernel.hash + ".ptx")).string();
  Expected<std::string> ptx = readUserFile(path, maxFileBytes);
  if (!ptx)
    return ptx.takeError();
  kernel.ptxBytes = static_cast<int64_t>(ptx->size());
  Expected<ptx::Module> module = ptx::parse(*ptx, path);
  if (!module)
    return module.takeError();
  if (const ptx::Function *entry = module->find(kernel.hash))
    kernel.hasNoConflicts = ptx::hasNoBankConflicts(*module, *entry);
  const fs::path cubin = folder / "cubin" / (kernel.hash + ".cubin");
  std::error_code error;
  if (const uintmax_t bytes = fs::file_size(cubin, error); !error)
    kernel.cubinBytes = static_cast<int64_t>(bytes);
  if (!kernel.cubinBytes || !nvdisasm) {
    kernel.mix = mixOfPtx(*ptx);
    return {};
  }
  Expected<std::string> sass = sassOf(*nvdisasm, cubin.string());
  if (!sass)
    return sass.takeError();
  kernel.mix = mixOfSass(*sass);
  kernel.mainLoops = mainLoops(*sass);
  return {};
}

/// The kernels in the bundle of a GPU, or in a folder of `--emit ptx`.
Expected<std::vector<Kernel>> readKernels(const std::string &folder) {
  const fs::path index = fs::path(folder) / "ptx" / "index.json";
  std::error_code error;
  if (!fs::exists(index, error))
    return Error{folder, "has no kernels of a GPU: there is no ptx/index.json",
                 "name a bundle of a GPU; k2c explain --kernel shows one kernel of a processor's"};
  Expected<std::string> text = readUserFile(index.string(), maxFileBytes);
  if (!text)
    return text.takeError();
  Expected<std::vector<Kernel>> kernels = readJsonFields(*text, index.string(), readIndex);
  if (!kernels)
    return kernels;
  const std::optional<std::string> nvdisasm = findNvdisasm();
  for (Kernel &kernel : *kernels)
    if (Status status = readCode(folder, nvdisasm, kernel); !status)
      return status.takeError();
  return kernels;
}

/// "5,010 instructions: FFMA 2,048, LDG 400": those that are most frequent.
std::string textOf(const InstructionMix &mix) {
  constexpr size_t shown = 8;
  std::vector<std::pair<std::string, int64_t>> sorted(mix.begin(), mix.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.second > b.second; });
  std::string text = formatCount(instructionsOf(mix)) + " instructions";
  for (size_t i = 0; i < std::min(shown, sorted.size()); ++i)
    text += (i == 0 ? ": " : ", ") + sorted[i].first + " " + formatCount(sorted[i].second);
  return printable(text);
}

/// "; 43% of the issue slots multiply and add".
std::string shareOf(const InstructionMix &loop) {
  const int64_t products = multiplyAddsOf(loop), all = instructionsOf(loop);
  return products == 0 ? "" : "; " + std::to_string(products * 100 / all) + "% of the issue slots multiply and add";
}

/// By which unit: of issuing instructions and L1, the one that takes longer; none: there are products of tensor cores,
/// which no kernel has yet.
std::optional<std::string> boundOf(const InstructionMix &loop) {
  if (hasTensorProducts(loop))
    return std::nullopt;
  return instructionsOf(loop) >= l1CyclesOf(loop) ? "issue" : "L1";
}

/// That of the main loop with the most multiply-adds; none: it is not known.
std::optional<std::string> boundOf(const Kernel &kernel) {
  const InstructionMix *greatest = nullptr;
  if (kernel.mainLoops)
    for (const InstructionMix &loop : *kernel.mainLoops)
      if (!greatest || multiplyAddsOf(loop) > multiplyAddsOf(*greatest))
        greatest = &loop;
  return greatest ? boundOf(*greatest) : std::nullopt;
}

/// "; bound by issue: 231 cycles, L1 180".
std::string cyclesOf(const InstructionMix &loop) {
  const std::optional<std::string> bound = boundOf(loop);
  if (!bound)
    return "";
  const std::string issue = formatCount(instructionsOf(loop)), l1 = formatCount(l1CyclesOf(loop));
  return "; bound by " +
         (*bound == "L1" ? "L1: " + l1 + " cycles, issue " + issue : "issue: " + issue + " cycles, L1 " + l1);
}

void print(const Kernel &kernel) {
  std::cout << printable(kernel.name) << ", " << printable(kernel.hash) << "\n  ";
  if (kernel.registers && kernel.spillBytes && kernel.sharedBytes)
    std::cout << *kernel.registers << " registers, " << format(Bytes(*kernel.spillBytes)) << " spilled, "
              << format(Bytes(*kernel.sharedBytes)) << " of shared memory; ";
  std::cout << "PTX " << format(Bytes(kernel.ptxBytes));
  if (kernel.cubinBytes)
    std::cout << ", cubin " << format(Bytes(*kernel.cubinBytes));
  std::cout << (kernel.hasNoConflicts ? "; no bank conflicts" : "; bank conflicts depend on what it computes");
  std::cout << "\n  " << (kernel.mainLoops ? "" : "PTX: ") << textOf(kernel.mix) << "\n";
  if (kernel.mainLoops)
    for (const InstructionMix &loop : *kernel.mainLoops)
      std::cout << "  main loop: " << textOf(loop) << shareOf(loop) << cyclesOf(loop) << "\n";
}

ordered_json orNull(const std::optional<int64_t> &number) { return number ? ordered_json(*number) : ordered_json(); }

/// Of an iteration. Bank conflicts are known to be none or are not known.
ordered_json toJson(const InstructionMix &loop, bool hasNoConflicts) {
  const bool isFree = hasNoConflicts || sharedBytesOf(loop) == 0;
  return {{"issue_slots", instructionsOf(loop)},
          {"tensor_cycles", hasTensorProducts(loop) ? ordered_json() : ordered_json(0)},
          {"l1_cycles", l1CyclesOf(loop)},
          {"shared_bytes", sharedBytesOf(loop)},
          {"bank_conflicts", isFree ? ordered_json(0) : ordered_json()},
          {"multiply_adds", multiplyAddsOf(loop)},
          {"instructions", loop}};
}

ordered_json toJson(const Kernel &kernel) {
  const std::optional<std::string> bound = boundOf(kernel);
  ordered_json loops;
  if (kernel.mainLoops) {
    loops = ordered_json::array();
    for (const InstructionMix &loop : *kernel.mainLoops)
      loops.push_back(toJson(loop, kernel.hasNoConflicts));
  }
  return {{"name", kernel.name},
          {"hash", kernel.hash},
          {"class", kernel.kind},
          {"arch", kernel.arch},
          {"registers", orNull(kernel.registers)},
          {"spill_bytes", orNull(kernel.spillBytes)},
          {"shared_bytes", orNull(kernel.sharedBytes)},
          {"ptx_bytes", kernel.ptxBytes},
          {"cubin_bytes", orNull(kernel.cubinBytes)},
          {"instructions_of", kernel.mainLoops ? "sass" : "ptx"},
          {"instructions", kernel.mix},
          {"bank_conflicts", kernel.hasNoConflicts ? ordered_json(0) : ordered_json()},
          {"main_loops", loops},
          {"bound", bound ? ordered_json(*bound) : ordered_json()}};
}

} // namespace

int k2c::printKernels(const std::string &folder, bool asJson) {
  Expected<std::vector<Kernel>> kernels = readKernels(folder);
  if (!kernels)
    return fail(kernels.error());
  ordered_json list = ordered_json::array();
  for (const Kernel &kernel : *kernels)
    asJson ? list.push_back(toJson(kernel)) : print(kernel);
  if (asJson)
    std::cout << jsonText(list, 2) << "\n";
  return 0;
}
