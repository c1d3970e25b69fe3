// manifest.json, as the runtime reads it.
#include "program/Manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  (void)bool(k2c::runtime::parseManifest({reinterpret_cast<const char *>(data), size}, "manifest.json", 0));
  return 0;
}
