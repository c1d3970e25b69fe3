// weights/map.json; an accepted one of little data packs a small checkpoint.
#include "TempFile.h"
#include "k2c/Weights/BundleFiles.h"
#include "k2c/Weights/CheckpointTensors.h"
#include "k2c/Weights/Packer.h"

static constexpr int64_t maxPackedBytes = int64_t(1) << 22;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const TempFolder folder;
  static k2c::Expected<k2c::Checkpoint> checkpoint =
      k2c::Checkpoint::open(K2C_SOURCE_DIR "/test/EndToEnd/oracle/llama/model.safetensors");
  if (!checkpoint)
    __builtin_trap();
  static const k2c::CheckpointTensors tensors(*checkpoint);
  folder.write("weights/map.json", data, size);
  k2c::Expected<k2c::WeightMap> map = k2c::readWeightMap(folder.path);
  if (!map || map->totalBytes() > maxPackedBytes)
    return 0;
  k2c::PackOptions options;
  options.threads = 1;
  (void)bool(k2c::packWeights(*map, tensors, folder.path, options));
  (void)bool(k2c::removeStrayBlobs(folder.path));
  return 0;
}
