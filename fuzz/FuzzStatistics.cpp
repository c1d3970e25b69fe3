// What run --expert-stats wrote.
#include "base/RouteStatistics.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  (void)bool(k2c::parseStatistics({reinterpret_cast<const char *>(data), size}, "s.json"));
  return 0;
}
