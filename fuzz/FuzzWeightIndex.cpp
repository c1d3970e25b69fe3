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
  const std::string text(reinterpret_cast<const char *>(data), size);
  for (int64_t experts : {0, 2}) {
    const auto weights =
        k2c::runtime::Weights::map(folder.path, "weights/index.json", text, 2, {{1, {experts, 0, 0}}, {1, {}}});
    if (!weights)
      continue;
    for (const k2c::runtime::WeightRange &range : weights->ranges())
      if (range.bytes > 0)
        (void)*static_cast<const volatile std::byte *>(range.base + range.bytes - 1);
  }
  return 0;
}
