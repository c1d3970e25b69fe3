// The driver that tests play (FakeCudaDriver.cpp), as a test directs it, and a bundle for its device.
#ifndef K2C_UNIT_RUNTIME_FAKE_FAKECUDA_H
#define K2C_UNIT_RUNTIME_FAKE_FAKECUDA_H

#include "fake/FakeBundle.h"
#include "k2rt/reserve.h"
#include <dlfcn.h>
#include <string>

namespace k2c::runtime {

inline const std::string fakeDriver = std::string(K2RT_FAKE_FOLDER) + "/fake_cuda.so";

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

/// A bundle for it, of PTX and cubins: CTAs of 64 threads and two workers each, at most 3 in a launch. `mistake`: what
/// its program does.
class FakeGpuBundle : public FakeBundle {
public:
  explicit FakeGpuBundle(const std::string &mistake = "sound") : FakeBundle("fake_gpu_" + mistake) {
    const k2rt_limits limits = {48, 4, 1000, 1, 97, 0, 0};
    manifest["device"] = {{"kind", "cuda"},
                          {"arch", "sm_90a"},
                          {"threads", 64},
                          {"workers_per_cta", 2},
                          {"ctas", 3},
                          {"code", "cubin"},
                          {"ptxas", "13.0.88"},
                          {"memory_bytes", int64_t(80) << 30},
                          {"reserve_bytes", k2rt_gpu_reserve_bytes(&limits)}};
    for (int kernel = 0; kernel < 4; ++kernel) {
      const std::string hash = "k" + std::to_string(kernel);
      manifest["kernels"][kernel]["hash"] = hash;
      manifest["kernels"][kernel]["arguments"] = 5;
      writeFile("ptx/" + hash + ".ptx", "fake " + hash);
      writeFile("cubin/" + hash + ".cubin", "fake cubin of " + hash);
    }
    write();
  }
  /// Leaves PTX alone.
  void leaveCubinsOut() {
    manifest["device"]["code"] = "ptx";
    write();
  }
};

} // namespace k2c::runtime

#endif
