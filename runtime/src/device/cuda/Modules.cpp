// Kernels of one hash are one file of each kind and one library.
//
// Which kind is what a driver does that is given both in one file: a cubin of the device's own architecture, or else
// the PTX. A driver that says CUDA_ERROR_NO_BINARY_FOR_GPU of a cubin has no use for any: the emulated one is such.
// Every other error is one of the cubin, and ends the run, since PTX would hide it behind a longer start.
#include "device/cuda/Modules.h"
#include "base/Utf8.h"
#include <map>

namespace k2c::runtime {

static constexpr int64_t maxCodeBytes = int64_t(64) << 20;

namespace {

class Loader {
public:
  Loader(const Driver &driver, const GpuFacts &gpu, const DeviceFacts &device) : driver(driver), device(device) {
    if (!device.hasCubins)
      reason = "the bundle has no cubins, as it was compiled without ptxas";
    else if (gpu.major != device.major || gpu.minor != device.minor)
      reason = "the bundle's cubins are of " + device.arch + " alone";
  }

  Expected<CodeLibrary> load(const FileList &files, const KernelEntry &kernel) {
    if (reason.empty()) {
      Expected<CodeLibrary> library = loadFile(files, "cubin/" + kernel.hash + ".cubin", kernel);
      if (library || result != CUDA_ERROR_NO_BINARY_FOR_GPU)
        return library;
      reason = "it has no use for cubins of " + device.arch;
    }
    return loadFile(files, "ptx/" + kernel.hash + ".ptx", kernel);
  }
  /// Which it loaded last.
  const std::string &file() const { return name; }
  /// Why it loads PTX; "": it does not.
  std::string whyCompiled() && { return std::move(reason); }

private:
  Expected<CodeLibrary> loadFile(const FileList &files, std::string file, const KernelEntry &kernel) {
    result = CUDA_SUCCESS;
    name = std::move(file);
    Expected<std::string> code = files.text(name, maxCodeBytes);
    if (!code)
      return code.takeError();
    LoadedCode loaded = loadCode(driver, *code);
    result = loaded.result;
    if (result == CUDA_SUCCESS)
      return std::move(loaded.library);
    Error error = loaded.failure(driver, "kernel " + shortened(kernel.name) + " of " + name);
    if (reason.empty())
      error.remedy = "install a driver that knows code of ptxas " + shortened(device.ptxas) +
                     ", or compile with an earlier ptxas, which K2C_PTXAS names";
    return error;
  }

  const Driver &driver;
  const DeviceFacts &device;
  std::string name;
  CUresult result = CUDA_SUCCESS; ///< of that file
  std::string reason;
};

} // namespace

Expected<Modules> Modules::load(const Driver &driver, const GpuFacts &gpu, const std::string &folder,
                                const Manifest &manifest) {
  Expected<FileList> files = FileList::read(folder);
  if (!files)
    return files.takeError();
  Modules modules;
  Loader loader(driver, gpu, *manifest.device);
  std::map<std::string, CUkernel> known;
  for (const KernelEntry &kernel : manifest.kernels) {
    auto found = known.find(kernel.hash);
    if (found == known.end()) {
      Expected<CodeLibrary> library = loader.load(*files, kernel);
      if (!library)
        return library.takeError();
      Expected<CUkernel> entry = kernelNamed(driver, *library, kernel.hash, loader.file());
      if (!entry)
        return entry.takeError();
      modules.libraries.push_back(std::move(*library));
      found = known.emplace(kernel.hash, *entry).first;
    }
    modules.kernels.push_back(found->second);
  }
  modules.reason = std::move(loader).whyCompiled();
  return modules;
}

} // namespace k2c::runtime
