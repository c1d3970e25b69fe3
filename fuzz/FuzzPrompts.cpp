// The user's files of `run`: a batch of id lists, the routes of a prompt, and ids on the command line.
#include "TempFile.h"
#include "run/Run.h"

using namespace k2c;
using namespace k2c::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const TempFolder folder;
  static const Manifest manifest = [] {
    Manifest small;
    small.moeLayers = {1, 2};
    small.topK = 2;
    small.experts = 4;
    return small;
  }();
  const std::string file = folder.write("prompts.json", data, size);
  PromptFlags batch, ids;
  batch.batchFile = file;
  (void)bool(readPrompts(batch, nullptr));
  ids.ids = std::string(reinterpret_cast<const char *>(data), size);
  (void)bool(readPrompts(ids, nullptr));
  (void)bool(readRoutes(file, manifest, 3));
  return 0;
}
