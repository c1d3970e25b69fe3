// config.json through every families file.
#include "TempFile.h"
#include "k2c/Model/ModelSpec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const TempFolder folder;
  (void)bool(k2c::loadModelSpec(folder.write("config.json", data, size)));
  return 0;
}
