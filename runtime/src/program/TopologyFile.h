// topology.yaml of a bundle of several ranks: the topology that it was compiled for, as k2c prints it.
//
// The runtime needs the tiers alone, and no YAML for them: of that text each key of a tier has a line, whose value can
// be replaced. All other lines stay as they are, so the rest of the topology need not be understood.
#ifndef K2RT_PROGRAM_TOPOLOGYFILE_H
#define K2RT_PROGRAM_TOPOLOGYFILE_H

#include "program/FileList.h"
#include <array>
#include <vector>

namespace k2c::runtime {

/// So many units of the tier below, of ranks for the first, joined by links.
struct TopologyTier {
  std::string name;
  int64_t count = 1;
};

/// What replaces the numbers of a tier: YAML on one line each.
struct TierNumbers {
  std::string bandwidth, latency, efficiency;
};

class TopologyFile {
public:
  /// Of a bundle with so many ranks.
  static Expected<TopologyFile> read(const FileList &files, int64_t ranks);
  /// `place` names the text in errors. Refuses tiers that are not as k2c prints them, or not of so many ranks.
  static Expected<TopologyFile> parse(const std::string &text, const std::string &place, int64_t ranks);

  /// Innermost first.
  const std::vector<TopologyTier> &tiers() const { return all; }
  /// The text with other numbers of those tiers that have any in `numbers`, by tier.
  std::string with(const std::vector<TierNumbers> &numbers) const;

private:
  static constexpr size_t replacedKeys = 3;

  Status addLine(const std::string &line, const std::string &place);
  Status check(const std::string &place, int64_t ranks) const;

  std::vector<std::string> lines;
  std::vector<TopologyTier> all;
  std::vector<std::array<size_t, replacedKeys>> places; ///< of each tier: lines of its numbers, counted from 1
};

} // namespace k2c::runtime

#endif
