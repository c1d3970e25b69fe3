//===- Libraries.cpp - Kernels of PTX texts -------------------------------===//
//
// A library is decoded when it is loaded, so what is not understood is an error then, as it is of the driver's
// compiler. Variables in .global and .const have other addresses on each device, and so kernels of a text with such are
// decoded for each.
//
//===----------------------------------------------------------------------===//
#include "Driver.h"
#include "Image.h"
#include "base/Utf8.h"

#include <algorithm>
#include <cstring>

using namespace k2c::emulated;
namespace ptx = k2c::ptx;

namespace {

/// The version of PTX that the driver's compiler knows.
constexpr int ptxMajor = 9, ptxMinor = 0;

struct Log {
  char *text = nullptr;
  uint64_t bytes = 0;
  void **used = nullptr; ///< the option that is set to what was written
};

/// Where errors of the compiler go. False: an option is not emulated.
bool findLog(CUjit_option *options, void **values, unsigned count, Log &log) {
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) {
      log.text = static_cast<char *>(values[i]);
    } else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
      log.used = &values[i];
      log.bytes = reinterpret_cast<uint64_t>(values[i]);
    } else {
      return false;
    }
  return true;
}

void write(Log &log, const std::string &message) {
  if (!log.text || log.bytes == 0)
    return;
  const size_t written = message.copy(log.text, log.bytes - 1);
  log.text[written] = 0;
  *log.used = reinterpret_cast<void *>(written);
}

CUresult refuse(Log &log, CUresult error, const std::string &message) {
  write(log, message);
  return k2c::emulated::refuse(error, message);
}

/// Memory for the variables of `module` on a device, and their addresses by name.
std::optional<std::map<std::string, uint64_t>> placeVariables(Image &image, const ptx::Module &module,
                                                              uint32_t device) {
  std::map<std::string, uint64_t> addresses;
  for (const ptx::Variable &variable : module.variables) {
    if ((variable.space != ptx::Space::Global && variable.space != ptx::Space::Const) || variable.isExternal)
      continue;
    Memory::Allocation *made =
        image.memory.allocate(std::max<uint64_t>(variable.bytes(), 1), device, 0, variable.name, true);
    if (!made)
      return std::nullopt;
    std::memcpy(made->data.get(), variable.initial.data(), variable.initial.size());
    addresses[variable.name] = reinterpret_cast<uint64_t>(made->data.get());
    image.variables.push_back(addresses[variable.name]);
  }
  return addresses;
}

CUresult decode(Driver &driver, Image &image, const ptx::Module &module, Log &log) {
  for (const ptx::Function &function : module.functions)
    if (function.isEntry && function.hasBody)
      image.names.push_back(function.name);
  for (uint32_t device = 0; device < driver.settings.devices; ++device) {
    const auto addresses = placeVariables(image, module, device);
    if (!addresses)
      return CUDA_ERROR_OUT_OF_MEMORY;
    std::vector<ptx::Kernel> kernels;
    for (const std::string &name : image.names) {
      k2c::Expected<ptx::Kernel> kernel = ptx::Kernel::decode(module, name, *addresses);
      if (!kernel)
        return refuse(log, CUDA_ERROR_INVALID_PTX, kernel.error().text());
      kernels.push_back(*std::move(kernel));
    }
    image.kernels.push_back(std::move(kernels));
    if (addresses->empty())
      break;
  }
  return CUDA_SUCCESS;
}

CUresult load(Driver &driver, const char *code, Log &log, Library &library) {
  const std::string magic(code, strnlen(code, 4));
  if (magic == "\x7f"
               "ELF" ||
      magic == "\x50\xed\x55\xba") {
    write(log, "the image is code of a device; give PTX"); // which the error says, too: who has PTX gives that next
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  k2c::Expected<ptx::Module> module = ptx::parse(code, "library");
  if (!module)
    return refuse(log, CUDA_ERROR_INVALID_PTX, module.error().text());
  if (module->major > ptxMajor || (module->major == ptxMajor && module->minor > ptxMinor))
    return refuse(log, CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                  "the text is PTX " + std::to_string(module->major) + "." + std::to_string(module->minor) +
                      "; give 9.0 or less");
  const std::optional<Arch> target = Arch::parse(module->target);
  if (!target)
    return refuse(log, CUDA_ERROR_INVALID_PTX,
                  "the text is for '" + k2c::shortened(module->target) +
                      "', which is no architecture; give one as sm_90a");
  if (!driver.settings.arch.runs(*target))
    return refuse(log, CUDA_ERROR_NO_BINARY_FOR_GPU,
                  "the text is for " + module->target + " and does not run on " + driver.settings.archName +
                      "; compile it for that");
  library.image = std::make_shared<Image>(driver.memory);
  library.handles.resize(module->functions.size());
  return decode(driver, *library.image, *module, log);
}

/// What a kernel has of an attribute; negative: it is not emulated.
int attributeOf(const LoadedKernel &loaded, CUfunction_attribute attribute, uint32_t device) {
  const ptx::Kernel &kernel = loaded.image->kernel(loaded.index, device);
  int threads = 1024;
  for (const ptx::Extent &said : {kernel.function().maximalThreads, kernel.function().requiredThreads})
    if (said[0] != 0)
      threads = static_cast<int>(said[0] * said[1] * said[2]);
  switch (attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    return threads;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    return static_cast<int>(kernel.sharedBytes());
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    return static_cast<int>(kernel.localBytes());
  case CU_FUNC_ATTRIBUTE_NUM_REGS: // as many as a block of so many threads may have
    return std::min(255, 65536 / threads / 8 * 8);
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    return static_cast<int>(loaded.dynamicShared(device));
  }
  return -1;
}

} // namespace

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions, void **jitValues,
                           unsigned jitCount, CUlibraryOption *, void **, unsigned) {
  return enter(Entry::cuLibraryLoadData, [&](Driver &driver) {
    Log log;
    if (!library || !code || (jitCount != 0 && (!jitOptions || !jitValues)))
      return CUDA_ERROR_INVALID_VALUE;
    if (!findLog(jitOptions, jitValues, jitCount, log))
      return k2c::emulated::refuse(
          CUDA_ERROR_NOT_SUPPORTED,
          "of the compiler's options, only the buffer for errors is emulated; leave others out");
    if (const CUresult error = driver.checkUnsafe(); error != CUDA_SUCCESS)
      return error;
    Library made;
    if (const CUresult error = load(driver, static_cast<const char *>(code), log, made); error != CUDA_SUCCESS)
      return error;
    *library = handleOf<CUlibrary>(driver.libraries.add(std::move(made)));
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryUnload(CUlibrary handle) {
  return enter(Entry::cuLibraryUnload, [&](Driver &driver) {
    const Library *library = driver.libraries.find(idOf(handle));
    if (!library)
      return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult error = driver.checkUnsafe(); error != CUDA_SUCCESS)
      return error;
    for (const uint64_t kernel : library->handles)
      driver.kernels.erase(kernel);
    driver.libraries.erase(idOf(handle));
    return CUDA_SUCCESS;
  });
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary handle, const char *name) {
  return enter(Entry::cuLibraryGetKernel, [&](Driver &driver) {
    Library *library = driver.libraries.find(idOf(handle));
    if (!library)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!kernel || !name)
      return CUDA_ERROR_INVALID_VALUE;
    const std::vector<std::string> &names = library->image->names;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      return CUDA_ERROR_NOT_FOUND;
    const auto index = static_cast<size_t>(found - names.begin());
    if (library->handles[index] == 0)
      library->handles[index] = driver.kernels.add({library->image, index, {}});
    *kernel = handleOf<CUkernel>(library->handles[index]);
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel handle, CUdevice device) {
  return enter(Entry::cuKernelGetAttribute, [&](Driver &driver) {
    const LoadedKernel *kernel = driver.kernels.find(idOf(handle));
    if (!kernel)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!driver.isDevice(device))
      return CUDA_ERROR_INVALID_DEVICE;
    const int known = attributeOf(*kernel, attribute, static_cast<uint32_t>(device));
    if (!value || known < 0)
      return CUDA_ERROR_INVALID_VALUE;
    *value = known;
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device) {
  return enter(Entry::cuKernelSetAttribute, [&](Driver &driver) {
    LoadedKernel *kernel = driver.kernels.find(idOf(handle));
    if (!kernel)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!driver.isDevice(device))
      return CUDA_ERROR_INVALID_DEVICE;
    const uint64_t staticBytes = kernel->image->kernel(kernel->index, static_cast<uint32_t>(device)).sharedBytes();
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        staticBytes + static_cast<uint64_t>(value) > maxShared)
      return CUDA_ERROR_INVALID_VALUE;
    kernel->maxDynamicShared[static_cast<uint32_t>(device)] = static_cast<uint64_t>(value);
    return CUDA_SUCCESS;
  });
}
