// The driver that tests play (FakeCudaDriver.cpp), as a test directs it.
#ifndef K2C_UNIT_RUNTIME_FAKE_FAKECUDA_H
#define K2C_UNIT_RUNTIME_FAKE_FAKECUDA_H

#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <map>
#include <set>
#include <string>

namespace k2c::runtime {

inline const std::string fakeDriver = std::string(K2RT_FAKE_FOLDER) + "/fake_cuda.so";

/// Entry points that give something back, or wait so that it can be: their failures are said where nothing else is.
inline bool givesBack(const std::string &entryPoint) {
  static const std::set<std::string> all = {"cuDevicePrimaryCtxRelease_v2", "cuMemFree_v2",      "cuMemFreeHost",
                                            "cuStreamDestroy_v2",           "cuEventDestroy_v2", "cuLibraryUnload",
                                            "cuGraphExecDestroy",           "cuGraphDestroy",    "cuCtxSynchronize"};
  return all.count(entryPoint) > 0;
}

/// Loaded for as long as a test runs, so that it keeps what was set. Each test begins with a driver that works.
class FakeCuda {
public:
  FakeCuda() : handle(::dlopen(fakeDriver.c_str(), RTLD_NOW | RTLD_LOCAL)) { call<void()>("fake_cuda_reset")(); }
  ~FakeCuda() { ::dlclose(handle); }
  FakeCuda(const FakeCuda &) = delete;
  FakeCuda &operator=(const FakeCuda &) = delete;

  void reset() { call<void()>("fake_cuda_reset")(); }
  /// What was made and not given back.
  int alive() { return call<int()>("fake_cuda_alive")(); }
  int calls(const char *name) { return call<int(const char *)>("fake_cuda_calls")(name); }
  /// Of each entry point, by its name.
  std::map<std::string, int> allCalls() {
    std::map<std::string, int> all;
#define K2C_CUDA(name, parameters) all[#name] = calls(#name);
#include "base/CudaDriver.def"
    return all;
  }
  /// That the last launch of a kernel had.
  const std::byte *scratch(int32_t kernel) {
    return static_cast<const std::byte *>(call<const void *(int32_t)>("fake_cuda_scratch")(kernel));
  }
  void set(const char *key, long value) { call<void(const char *, long)>("fake_cuda_set")(key, value); }
  /// Its call number `at`, from 1 on, returns `error`.
  void fail(const char *name, int at, int error) {
    call<void(const char *, int, int)>("fake_cuda_fail")(name, at, error);
  }

private:
  template <class Function> Function *call(const char *name) {
    return reinterpret_cast<Function *>(::dlsym(handle, name));
  }
  void *handle;
};

} // namespace k2c::runtime

#endif
