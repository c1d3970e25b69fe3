//===- FindTool.cpp - The programs of NVIDIA's toolkit, where they are there ------------------===//
#include "k2c/Target/Nvidia.h"
#include "k2c/Target/Sass.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

namespace k2c {

/// The program that $`chosen` names, else `name` in $PATH, $CUDA_HOME/bin, /usr/local/cuda/bin.
static std::optional<std::string> findTool(const char *chosen, const std::string &name) {
  auto variable = [](const char *of) { return llvm::sys::Process::GetEnv(of).value_or(""); };
  if (const std::string path = variable(chosen); !path.empty())
    return llvm::sys::fs::can_execute(path) ? std::optional(path) : std::nullopt;
  if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName(name))
    return *found;
  for (const std::string &folder : {variable("CUDA_HOME"), std::string("/usr/local/cuda")})
    if (const std::string path = folder + "/bin/" + name; !folder.empty() && llvm::sys::fs::can_execute(path))
      return path;
  return std::nullopt;
}

std::optional<std::string> findPtxas() { return findTool("K2C_PTXAS", "ptxas"); }

std::optional<std::string> findNvdisasm() { return findTool("K2C_NVDISASM", "nvdisasm"); }

} // namespace k2c
