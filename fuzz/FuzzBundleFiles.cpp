// files.json of a bundle: read to be verified, to start a run, and to be brought up to date.
#include "TempFile.h"
#include "k2c/Weights/BundleFiles.h"
#include "program/FileList.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const TempFolder folder({"test/EndToEnd/oracle/kimi_k2/config.json"});
  folder.write("files.json", data, size);
  (void)bool(k2c::verifyBundleFiles(folder.path));
  if (const k2c::Expected<k2c::runtime::FileList> list = k2c::runtime::FileList::read(folder.path)) {
    (void)bool(list->checkSizes());
    (void)bool(list->checkHashesBut({}));
  }
  (void)bool(k2c::updateBundleFiles(folder.path, {"config.json"}));
  return 0;
}
