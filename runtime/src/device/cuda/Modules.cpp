// Kernels of one hash are one file and one library.
#include "device/cuda/Modules.h"
#include "base/Utf8.h"
#include <map>

namespace k2c::runtime {

static constexpr int64_t maxCodeBytes = int64_t(64) << 20;
static constexpr size_t logBytes = 4096;

static Expected<CodeLibrary> compile(const Driver &driver, const std::string &code, const std::string &place,
                                     const KernelEntry &kernel) {
  std::string log(logBytes, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log.data(), reinterpret_cast<void *>(logBytes)};
  CUlibrary library = nullptr;
  Status loaded = driver.call<&Cuda::cuLibraryLoadData>(&library, static_cast<const void *>(code.c_str()), options,
                                                        values, 2u, nullptr, nullptr, 0u);
  if (loaded)
    return CodeLibrary(driver, library);
  Error error = loaded.takeError();
  const std::string said = log.substr(0, log.find_first_of(std::string("\n\0", 2)));
  error.message +=
      " on kernel " + shortened(kernel.name) + " of " + place + (said.empty() ? "" : ": " + shortened(said, maxQuoted));
  return error;
}

Expected<Modules> Modules::load(const Driver &driver, const std::string &folder, const Manifest &manifest) {
  Expected<FileList> files = FileList::read(folder);
  if (!files)
    return files.takeError();
  Modules modules;
  std::map<std::string, CUkernel> known;
  for (const KernelEntry &kernel : manifest.kernels) {
    auto found = known.find(kernel.hash);
    if (found == known.end()) {
      const std::string file = "ptx/" + kernel.hash + ".ptx";
      Expected<std::string> code = files->text(file, maxCodeBytes);
      if (!code)
        return code.takeError();
      Expected<CodeLibrary> library = compile(driver, *code, file, kernel);
      if (!library)
        return library.takeError();
      CUkernel entry = nullptr;
      if (Status has = driver.call<&Cuda::cuLibraryGetKernel>(&entry, library->get(), kernel.hash.c_str()); !has) {
        Error error = has.takeError();
        error.message += " on entry " + shortened(kernel.hash) + " of " + file;
        return error;
      }
      modules.libraries.push_back(std::move(*library));
      found = known.emplace(kernel.hash, entry).first;
    }
    modules.kernels.push_back(found->second);
  }
  return modules;
}

} // namespace k2c::runtime
