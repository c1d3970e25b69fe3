// generation_config.json beside the config.json of a small model.
#include "TempFile.h"
#include "k2c/Model/ModelSpec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const TempFolder folder({"test/EndToEnd/oracle/llama/config.json"});
  folder.write("generation_config.json", data, size);
  (void)bool(k2c::loadModelSpec(folder.path));
  return 0;
}
