// A workload file.
#include "k2c/Planner/Workload.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  (void)bool(k2c::parseWorkload({reinterpret_cast<const char *>(data), size}, "w.yaml"));
  return 0;
}
