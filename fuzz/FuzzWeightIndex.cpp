// weights/index.json, as the compiler and the runtime read it.
#include "TempFile.h"
#include "k2c/Weights/WeightIndex.h"
#include "program/Weights.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const TempFolder folder;
  static const std::string zeros(4096, 0);
  static const std::string blob = folder.write("weights/00000000000000000000000000000000.bin",
                                               reinterpret_cast<const uint8_t *>(zeros.data()), zeros.size());
  folder.write("weights/index.json", data, size);
  (void)bool(k2c::verifyBundle(folder.path));
  (void)bool(k2c::runtime::Weights::map(folder.path, "weights/index.json",
                                        std::string(reinterpret_cast<const char *>(data), size), 2));
  return 0;
}
