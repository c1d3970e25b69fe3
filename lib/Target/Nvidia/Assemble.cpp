//===- Assemble.cpp - PTX by ptxas, and what it says -----------------------------------------===//
#include "k2c/Target/Nvidia.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

namespace k2c {

std::optional<std::string> findPtxas() {
  auto variable = [](const char *name) { return llvm::sys::Process::GetEnv(name).value_or(""); };
  if (const std::string chosen = variable("K2C_PTXAS"); !chosen.empty())
    return llvm::sys::fs::can_execute(chosen) ? std::optional(chosen) : std::nullopt;
  if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  for (const std::string &folder : {variable("CUDA_HOME"), std::string("/usr/local/cuda")})
    if (const std::string path = folder + "/bin/ptxas"; !folder.empty() && llvm::sys::fs::can_execute(path))
      return path;
  return std::nullopt;
}

/// The sum of the numbers that stand before `what`; 0: there are none.
static int64_t numbersBefore(llvm::StringRef text, llvm::StringRef what) {
  int64_t sum = 0;
  for (size_t at = text.find(what); at != llvm::StringRef::npos; at = text.find(what, at + 1)) {
    llvm::StringRef before = text.take_front(at).rtrim();
    int64_t number = 0;
    if (!before.substr(before.find_last_not_of("0123456789") + 1).getAsInteger(10, number))
      sum += number;
  }
  return sum;
}

Expected<PtxasReport> assemble(const std::string &ptxas, const std::string &path, const std::string &arch,
                               const std::string &cubin) {
  const std::string log = cubin + ".log", architecture = "-arch=" + arch;
  const llvm::StringRef arguments[] = {ptxas, "-v", architecture, path, "-o", cubin};
  const std::optional<llvm::StringRef> streams[] = {std::nullopt, llvm::StringRef(log), llvm::StringRef(log)};
  std::string problem;
  const int result = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, streams, 0, 0, &problem);
  std::string text;
  if (auto file = llvm::MemoryBuffer::getFile(log))
    text = (*file)->getBuffer().trim().str();
  llvm::sys::fs::remove(log);
  if (result != 0)
    return Error{path, "ptxas refuses it: " + (problem.empty() ? text : problem), ""};
  PtxasReport report;
  report.registers = numbersBefore(text, " registers");
  report.spillBytes = numbersBefore(text, " bytes spill stores") + numbersBefore(text, " bytes spill loads");
  report.sharedBytes = numbersBefore(text, " bytes smem");
  report.cubin = cubin;
  return report;
}

} // namespace k2c
