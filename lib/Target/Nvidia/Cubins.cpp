//===- Cubins.cpp - PTX to machine code by ptxas ----------------------------------------------===//
//
// ptxas runs in the child processes that make files of the cache (../Host/Objects.cpp), one a kernel. The file has what
// it said behind -v, from which the numbers of a Cubin are read, a zero byte, and the machine code. Only code that
// passed checkCode() is kept, so that the cache has none that was refused; whether nvdisasm was there to look at loops,
// and what is looked for, is part of a file's name.
//
//===----------------------------------------------------------------------===//
#include "CubinName.h"
#include "k2c/Target/Sass.h"
#include "lib/Target/Host/Objects.h"
#include "lib/Target/Host/ToolOutput.h"
#include "llvm/Support/MemoryBuffer.h"

using llvm::StringRef;

namespace k2c {

Expected<std::string> toolVersion(const std::string &tool) {
  Expected<ToolOutput> said = runTool(tool, {"--version"}, tool);
  if (!said)
    return said.takeError();
  // "Cuda compilation tools, release 13.0, V13.0.88"
  const StringRef version = StringRef(said->out).split(", V").second.take_until([](char c) { return c <= ' '; });
  if (version.empty())
    return Error{tool, "does not say its version", "name a program of NVIDIA's toolkit"};
  return version.str();
}

/// The sum of the numbers that stand before `what`; 0: there are none.
static int64_t numbersBefore(StringRef text, StringRef what) {
  int64_t sum = 0;
  for (size_t at = text.find(what); at != StringRef::npos; at = text.find(what, at + 1)) {
    const StringRef before = text.take_front(at);
    int64_t number = 0;
    if (!before.substr(before.find_last_not_of("0123456789") + 1).getAsInteger(10, number))
      sum += number;
  }
  return sum;
}

/// A file of the cache.
static Cubin cubinOf(StringRef file) {
  const auto [said, code] = file.split('\0');
  return {code.str(), numbersBefore(said, " registers"),
          numbersBefore(said, " bytes spill stores") + numbersBefore(said, " bytes spill loads"),
          numbersBefore(said, " bytes smem")};
}

/// checkCode() of the cubin in `file`, whose loops are looked at where nvdisasm is there.
static Status check(const CubinJob &job, const Cubin &cubin, const MemoryFile &file,
                    const std::optional<std::string> &nvdisasm) {
  if (!nvdisasm)
    return checkCode(job.kernel, cubin, std::nullopt);
  Expected<std::string> sass = sassOf(*nvdisasm, file.path());
  if (sass)
    return checkCode(job.kernel, cubin, *sass);
  Error error = sass.takeError();
  error.where = job.kernel;
  return error;
}

/// The file of a kernel.
static Expected<std::string> assemble(const CubinJob &job, const std::string &arch, const std::string &ptxas,
                                      const std::optional<std::string> &nvdisasm) {
  Expected<MemoryFile> cubin = MemoryFile::create();
  if (!cubin)
    return cubin.takeError();
  Expected<ToolOutput> said = runTool(ptxas, {"-v", "-arch=" + arch, job.ptx, "-o", cubin->path()}, job.kernel);
  if (!said) {
    Error error = said.takeError();
    error.remedy = "name a later ptxas with K2C_PTXAS, or one that is not there: the driver compiles PTX";
    return error;
  }
  const std::string code = cubin->bytes();
  if (code.empty())
    return Error{job.kernel, "ptxas wrote no code", "name another with K2C_PTXAS"};
  std::string file = said->out + said->messages + '\0' + code;
  if (Status status = check(job, cubinOf(file), *cubin, nvdisasm); !status)
    return status.takeError();
  return file;
}

std::string cubinName(const std::string &ptx, const std::string &arch, const Ptxas &ptxas,
                      const std::optional<std::string> &nvdisasm, const std::string &checkHash) {
  return hashedName(ptx + "\n" + arch + "\n" + ptxas.path + "\n" + ptxas.version + "\nchecked " +
                        nvdisasm.value_or("") + "\n" + checkHash,
                    ".cubin");
}

Expected<std::vector<Cubin>> compileCubins(const std::vector<CubinJob> &jobs, const std::string &arch,
                                           const Ptxas &ptxas, const ObjectOptions &options) {
  const std::optional<std::string> nvdisasm = findNvdisasm();
  std::vector<FileJob> files;
  for (const CubinJob &job : jobs) {
    auto text = llvm::MemoryBuffer::getFile(job.ptx);
    if (!text)
      return Error{job.ptx, "cannot be read: " + text.getError().message(), ""};
    files.push_back({job.kernel, cubinName((*text)->getBuffer().str(), arch, ptxas, nvdisasm, cubinCheckHash),
                     [&](mlir::MLIRContext &) { return assemble(job, arch, ptxas.path, nvdisasm); }});
  }
  Expected<std::vector<std::string>> paths = compileFiles(files, options);
  if (!paths)
    return paths.takeError();
  std::vector<Cubin> cubins;
  for (const std::string &path : *paths) {
    auto file = llvm::MemoryBuffer::getFile(path);
    if (!file)
      return Error{path, "cannot be read: " + file.getError().message(), ""};
    cubins.push_back(cubinOf((*file)->getBuffer()));
  }
  return cubins;
}

} // namespace k2c
