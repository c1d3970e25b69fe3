// files.json of a bundle: read to be verified, and to be brought up to date.
#include "TempFile.h"
#include "k2c/Weights/BundleFiles.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const TempFolder folder({"test/EndToEnd/oracle/llama/config.json"});
  folder.write("files.json", data, size);
  (void)bool(k2c::verifyBundleFiles(folder.path));
  (void)bool(k2c::updateBundleFiles(folder.path, {"config.json"}));
  return 0;
}
