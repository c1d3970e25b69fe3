// A .onnx file, beside which there is one of external data; every constant of an accepted one is read, and the decoder
// that it may be is looked for.
#include "ImportGraph.h"
#include "TempFile.h"

namespace {

struct ModelFolder : TempFolder {
  ModelFolder() { write("weights.bin", std::vector<uint8_t>(48).data(), 48); }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const ModelFolder folder;
  const k2c::Expected<k2c::onnx::Graph> graph = k2c::onnx::readGraph(folder.write("model.onnx", data, size));
  if (!graph)
    return 0;
  for (const auto &[value, tensor] : graph->constants)
    (void)bool(k2c::onnx::readTensor(*graph, tensor, 1 << 20));
  (void)bool(k2c::onnx::importGraph(*graph));
  return 0;
}
