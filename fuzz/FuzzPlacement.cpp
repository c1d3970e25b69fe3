// placement.json, as the runtime reads it.
#include "RankManifests.h"
#include "program/Placement.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const k2c::runtime::Manifest manifest = k2c::manifestOfPlacement();
  (void)bool(k2c::runtime::Placement::parse({reinterpret_cast<const char *>(data), size}, "placement.json", manifest));
  return 0;
}
