// model.safetensors.index.json over the two files of a small checkpoint; every tensor of an accepted one is read.
#include "TempFile.h"
#include "k2c/Model/Safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const TempFolder folder({"test/EndToEnd/oracle/deepseek_v3/model-00001-of-00002.safetensors",
                                  "test/EndToEnd/oracle/deepseek_v3/model-00002-of-00002.safetensors"});
  folder.write("model.safetensors.index.json", data, size);
  k2c::Expected<k2c::Checkpoint> checkpoint = k2c::Checkpoint::open(folder.path);
  if (!checkpoint)
    return 0;
  for (const k2c::TensorInfo &tensor : checkpoint->tensors()) {
    std::string bytes(tensor.bytes(), '\0');
    (void)bool(checkpoint->read(tensor, 0, bytes.data(), bytes.size()));
  }
  return 0;
}
