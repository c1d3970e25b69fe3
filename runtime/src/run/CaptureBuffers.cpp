// Rows first: how many fit the window. Then the arrays, each for that many rows.
#include "run/CaptureBuffers.h"
#include "engine/Carver.h"
#include <algorithm>
#include <limits>

namespace k2c::runtime {

Expected<CaptureBuffers> CaptureBuffers::allocate(const Manifest &manifest, CaptureChoice choice) {
  const int64_t choices = choicesPerRow(manifest), hidden = hiddenPerRow(manifest);
  const int64_t rowBytes = captureRowBytes(manifest, choice);
  CaptureBuffers buffers;
  buffers.view.rows = captureRows(manifest, choice);
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
