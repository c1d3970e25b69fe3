// A step is no larger than what it is captured into, which changes no bit of it.
#include "engine/CaptureChoice.h"
#include <algorithm>

namespace k2c::runtime {

int64_t captureRowBytes(const Manifest &manifest, CaptureChoice choice) {
  const int64_t choices = choicesPerRow(manifest) * 8, hidden = hiddenPerRow(manifest) * 4;
  return (choice.routes ? choices : 0) + (choice.forced ? choices : 0) + (choice.hidden ? hidden : 0);
}

int64_t captureRows(const Manifest &manifest, CaptureChoice choice) {
  constexpr int64_t windowBytes = int64_t(64) << 20;
  const int64_t rows = windowBytes / std::max<int64_t>(captureRowBytes(manifest, choice), 1);
  return std::max<int64_t>(std::min(manifest.limits.step_tokens, rows), 1);
}

} // namespace k2c::runtime
