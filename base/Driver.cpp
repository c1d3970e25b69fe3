// A library stays open for as long as what it has made lives: who keeps a handle keeps the driver longer.
#include "base/Driver.h"
#include "base/Utf8.h"
#include <dlfcn.h>
#include <unistd.h>

namespace k2c {

void Driver::Closer::operator()(void *handle) const { ::dlclose(handle); }

Expected<std::unique_ptr<Driver>> Driver::open(const std::string &file) {
  std::unique_ptr<Driver> driver(new Driver);
  driver->name = file;
  driver->handle.reset(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!driver->handle) {
    const char *reason = ::dlerror();
    const bool isHere = file.find('/') == file.npos && ::access(file.c_str(), F_OK) == 0;
    return Error{K2RT_DEVICE_FAILED, shortened(file),
                 "the driver cannot be loaded: " + shortened(reason ? reason : "", maxQuoted),
                 isHere ? "a name without / is looked up as libraries are: --driver ./" + shortened(file) +
                              " is the file of this folder"
                        : "install NVIDIA's driver, or name another library with --driver FILE"};
  }
  const std::pair<const char *, void **> symbols[] = {
#define K2C_CUDA(name, parameters) {#name, reinterpret_cast<void **>(&driver->cuda.name)},
#include "base/CudaDriver.def"
  };
  for (const auto &[symbol, entry] : symbols)
    if (*entry = ::dlsym(driver->handle.get(), symbol); !*entry)
      return Error{K2RT_DEVICE_FAILED, shortened(file), std::string("the driver has no ") + symbol,
                   "install a driver for CUDA 12.0 or a later one"};
  return driver;
}

Error Driver::failure(const char *call, CUresult result) const {
  const char *error = nullptr, *text = nullptr;
  if (cuda.cuGetErrorName(result, &error) != CUDA_SUCCESS || !error)
    error = "an error that the driver does not name";
  if (cuda.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
    text = "";
  return {K2RT_DEVICE_FAILED, call,
          "failed with " + shortened(error) + " (" + std::to_string(static_cast<int>(result)) + ")" +
              (*text ? ", " + shortened(text) : ""),
          ""};
}

} // namespace k2c
