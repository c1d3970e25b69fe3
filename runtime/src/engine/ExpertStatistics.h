// Which sets of experts tokens chose together, and where these tokens lived: what placements are made from.
#ifndef K2RT_ENGINE_EXPERTSTATISTICS_H
#define K2RT_ENGINE_EXPERTSTATISTICS_H

#include "engine/ExpertLoads.h"
#include "k2rt/program.h"
#include "program/Manifest.h"
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace k2c::runtime {

/// A row generates (decode) where its sequence has generated a token before and no other row in the step; otherwise it
/// reads a prompt.
enum class Phase : uint8_t { prefill, decode };
/// Of the rows of sequence `sequence` of a step: it has generated a token before and has no other row, or it has not.
Phase phaseOf(const k2rt_ir_step &step, int64_t sequence);
inline constexpr std::array<const char *, 2> phaseNames = {"prefill", "decode"};

class ExpertStatistics {
public:
  /// The rank that carried a token's row, and the token's experts, ascending; none where it was dropped.
  using SourcedSet = std::pair<int32_t, std::vector<int32_t>>;
  /// Tokens, in the order of sources and then of experts.
  using Counts = std::map<SourcedSet, int64_t>;

  /// `manifest` outlives it.
  explicit ExpertStatistics(const Manifest &manifest) : manifest(manifest), counts(manifest.moeLayers.size()) {}

  /// The rows of a step, which has run, the rank that carried each, and their experts as k2rt_ir_step captures them.
  void count(const std::vector<int32_t> &sources, const k2rt_ir_step &step, const int32_t *experts);
  const Counts &of(size_t moeLayer, Phase phase) const { return counts[moeLayer][static_cast<size_t>(phase)]; }
  /// Of both phases and all sources.
  ExpertLoads loads(size_t moeLayer) const;
  /// Rows of which logits were computed.
  int64_t outputsOf(Phase phase) const { return outputs[static_cast<size_t>(phase)]; }

private:
  const Manifest &manifest;
  std::vector<std::array<Counts, phaseNames.size()>> counts; ///< by layer with experts
  std::array<int64_t, phaseNames.size()> outputs{};
};

} // namespace k2c::runtime

#endif
