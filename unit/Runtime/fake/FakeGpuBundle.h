// A bundle for the device of the driver that tests play.
#ifndef K2C_UNIT_RUNTIME_FAKE_FAKEGPUBUNDLE_H
#define K2C_UNIT_RUNTIME_FAKE_FAKEGPUBUNDLE_H

#include "fake/FakeBundle.h"
#include "k2rt/reserve.h"
#include <string>

namespace k2c::runtime {

/// Of PTX and cubins: CTAs of 64 threads and two workers each, at most 3 in a launch. `mistake`: what
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
