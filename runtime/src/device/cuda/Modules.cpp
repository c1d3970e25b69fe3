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
static constexpr size_t logBytes = 4096;

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
    std::string log(logBytes, '\0');
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log.data(), reinterpret_cast<void *>(logBytes)};
    CUlibrary library = nullptr;
    result = driver.entries().cuLibraryLoadData(&library, code->c_str(), options, values, 2, nullptr, nullptr, 0);
    if (result == CUDA_SUCCESS)
      return CodeLibrary(driver, library);
    Error error = driver.failure(callName<&Cuda::cuLibraryLoadData>, result);
    const std::string said = log.substr(0, log.find_first_of(std::string("\n\0", 2)));
    error.message += " on kernel " + shortened(kernel.name) + " of " + name +
                     (said.empty() ? "" : ": " + shortened(said, maxQuoted));
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
      CUkernel entry = nullptr;
      if (Status has = driver.call<&Cuda::cuLibraryGetKernel>(&entry, library->get(), kernel.hash.c_str()); !has) {
        Error error = has.takeError();
        error.message += " on entry " + shortened(kernel.hash) + " of " + loader.file();
        return error;
      }
      modules.libraries.push_back(std::move(*library));
      found = known.emplace(kernel.hash, entry).first;
    }
    modules.kernels.push_back(found->second);
  }
  modules.reason = std::move(loader).whyCompiled();
  return modules;
}

} // namespace k2c::runtime
