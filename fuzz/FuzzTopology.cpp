// A topology file.
#include "k2c/Cluster/Topology.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  (void)bool(k2c::parseTopology({reinterpret_cast<const char *>(data), size}, "t.yaml"));
  return 0;
}
