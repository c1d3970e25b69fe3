// "spec" of a bundle's manifest.json, as `k2c pack` compares it with a checkpoint.
#include "base/Json.h"
#include "k2c/Model/SpecJson.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const k2c::Expected<k2c::ModelSpec> spec = k2c::loadModelSpec(K2C_SOURCE_DIR "/test/EndToEnd/oracle/kimi_k2");
  if (!spec)
    __builtin_trap();
  k2c::Expected<k2c::JsonDocument> document =
      k2c::parseJson({reinterpret_cast<const char *>(data), size}, "manifest.json");
  if (document)
    (void)bool(k2c::checkSameSpec(*spec, "config.json", document->root()));
  return 0;
}
