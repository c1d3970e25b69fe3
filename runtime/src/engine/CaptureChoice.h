// What inspection commands see of a step, and of how many of its rows at a time.
#ifndef K2RT_ENGINE_CAPTURECHOICE_H
#define K2RT_ENGINE_CAPTURECHOICE_H

#include "program/Manifest.h"

namespace k2c::runtime {

/// Which arrays a command needs beside those of every step.
struct CaptureChoice {
  bool routes = false;
  bool hidden = false; ///< and the largest attention logits
  bool forced = false;

  bool any() const { return routes || hidden || forced; }
};

/// Elements of a row in all layers: choices of experts, and hidden states.
inline int64_t choicesPerRow(const Manifest &manifest) {
  return static_cast<int64_t>(manifest.moeLayers.size()) * manifest.topK;
}
inline int64_t hiddenPerRow(const Manifest &manifest) { return (manifest.layers + 1) * manifest.hidden; }

/// Bytes of what is captured of a row.
int64_t captureRowBytes(const Manifest &manifest, CaptureChoice choice);
/// Rows of a step of such a command at most, 1 or more: what 64 MiB hold.
int64_t captureRows(const Manifest &manifest, CaptureChoice choice);

} // namespace k2c::runtime

#endif
