// Rows first: how many fit the window. Then the arrays, each for that many rows.
#include "run/CaptureBuffers.h"
#include "engine/Carver.h"
#include <algorithm>
#include <limits>

namespace k2c::runtime {

Expected<CaptureBuffers> CaptureBuffers::allocate(const Manifest &manifest, CaptureChoice choice) {
  constexpr int64_t windowBytes = int64_t(64) << 20;
  const int64_t choices = static_cast<int64_t>(manifest.moeLayers.size()) * manifest.topK;
  const int64_t hidden = (manifest.layers + 1) * manifest.hidden;
  const int64_t rowBytes =
      (choice.routes ? choices * 8 : 0) + (choice.forced ? choices * 8 : 0) + (choice.hidden ? hidden * 4 : 0);
  CaptureBuffers buffers;
  const int64_t rows = std::min(manifest.limits.step_tokens, windowBytes / std::max<int64_t>(rowBytes, 1));
  buffers.view.rows = std::max<int64_t>(rows, 1);
  const int64_t logits = choice.hidden ? manifest.layers * manifest.heads : 0;
  Expected<Region> region = Region::allocate(buffers.view.rows * rowBytes + logits * 4 + 64 * 8, "captured rows");
  if (!region)
    return region.takeError();
  buffers.region = std::move(*region);
  Carver carver(buffers.region.data(), buffers.region.size());
  if (choice.routes) {
    buffers.view.experts = carver.take<int32_t>(buffers.view.rows * choices);
    buffers.view.weights = carver.take<float>(buffers.view.rows * choices);
  }
  if (choice.forced) {
    buffers.view.forcedExperts = carver.take<int32_t>(buffers.view.rows * choices);
    buffers.view.forcedWeights = carver.take<float>(buffers.view.rows * choices);
  }
  if (choice.hidden) {
    buffers.view.hidden = carver.take<float>(buffers.view.rows * hidden);
    buffers.view.maxLogits = carver.take<float>(logits);
    std::fill_n(buffers.view.maxLogits, logits, -std::numeric_limits<float>::infinity());
  }
  return buffers;
}

} // namespace k2c::runtime
