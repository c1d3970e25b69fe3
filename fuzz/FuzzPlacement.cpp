// placement.json, as the runtime reads it.
#include "RankManifests.h"
#include "program/Placement.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const k2c::runtime::Manifest manifest = k2c::manifestOfPlacement();
  const std::string text(reinterpret_cast<const char *>(data), size);
  (void)bool(k2c::runtime::Placement::parse({{"placement.json", text, 0}}, manifest, /*rank=*/1));
  return 0;
}
