// NVIDIA's driver, or what stands in for it: a library that is opened at run time and asked for the entry points of
// base/CudaDriver.def. Nothing else knows their symbols.
//
//   driver.call<&Cuda::cuMemAlloc_v2>(&address, bytes)      a failure names the call, the error and its number
#ifndef K2C_BASE_DRIVER_H
#define K2C_BASE_DRIVER_H

#include "base/CudaDriver.h"
#include "base/Error.h"
#include <memory>
#include <optional>
#include <string>

namespace k2c {

/// The entry points of a driver.
struct Cuda {
#define K2C_CUDA(name, parameters) CUresult(*name) parameters = nullptr;
#include "base/CudaDriver.def"
};

/// As messages name an entry point of Cuda.
template <auto function> inline constexpr const char *callName = nullptr;
#define K2C_CUDA(name, parameters) template <> inline constexpr const char *callName<&Cuda::name> = #name;
#include "base/CudaDriver.def"

class Driver {
public:
  /// Opens `file`, a name or a path. Refuses a library that cannot be loaded or lacks an entry point.
  static Expected<std::unique_ptr<Driver>> open(const std::string &file);
  Driver(const Driver &) = delete;
  Driver &operator=(const Driver &) = delete;

  const Cuda &entries() const { return cuda; }
  /// What it was opened by.
  const std::string &file() const { return name; }
  template <auto function, class... Arguments> Status call(Arguments... arguments) const {
    const CUresult result = (cuda.*function)(arguments...);
    return result == CUDA_SUCCESS ? Status() : Status(failure(callName<function>, result));
  }
  /// Calls what gives something back, or waits so that it can be. Its failure ends nothing, and is kept.
  template <auto function, class... Arguments> void giveBack(Arguments... arguments) const {
    if (!isAbandoned)
      keep(call<function>(arguments...));
  }
  /// Keeps what failed, if nothing is kept yet.
  void keep(Status done) const {
    if (!done && unreturned && !*unreturned)
      *unreturned = done.takeError();
  }
  /// Failures are kept in `place`; null: nowhere.
  void keepIn(std::optional<Error> *place) const { unreturned = place; }
  /// What `call` returned, as an error of this device.
  Error failure(const char *call, CUresult result) const;

  /// Work hangs on the device: calls that give something back would wait for it. The end of the process does it then.
  void abandon() const { isAbandoned = true; }
  bool abandoned() const { return isAbandoned; }

private:
  struct Closer {
    void operator()(void *handle) const;
  };
  Driver() = default;

  std::string name;
  std::unique_ptr<void, Closer> handle;
  Cuda cuda;
  mutable bool isAbandoned = false;
  mutable std::optional<Error> *unreturned = nullptr;
};

} // namespace k2c

#endif
