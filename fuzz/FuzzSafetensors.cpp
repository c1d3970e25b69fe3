// A safetensors file; every tensor of an accepted one is read.
#include "TempFile.h"
#include "k2c/Model/Safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const TempFolder folder;
  k2c::Expected<k2c::Checkpoint> checkpoint = k2c::Checkpoint::open(folder.write("model.safetensors", data, size));
  if (!checkpoint)
    return 0;
  for (const k2c::TensorInfo &tensor : checkpoint->tensors()) {
    std::string bytes(tensor.bytes(), '\0');
    (void)bool(checkpoint->read(tensor, 0, bytes.data(), bytes.size()));
  }
  return 0;
}
