// Which experts tokens chose in a run: the file that `run --expert-stats` writes. How many tokens of which rank chose
// which experts together, by layer and phase, and how many rows of logits there were. Whoever reads one has it from a
// user.
#ifndef K2C_BASE_ROUTESTATISTICS_H
#define K2C_BASE_ROUTESTATISTICS_H

#include "base/Error.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace k2c {

/// Tokens whose sequences are on rank `source`.
struct SourcedChoice {
  int64_t source = 0;
  std::vector<int32_t> experts; ///< ascending
  int64_t tokens = 0;
};

struct RouteStatistics {
  struct Layer {
    std::vector<SourcedChoice> prefill, decode;
  };

  std::string model;
  int64_t experts = 0, ranks = 1;
  std::string compute; ///< of the run: type of the rows that ranks exchanged, "f32" or "bf16"; "": not stated
  std::map<int64_t, Layer> layers; ///< by index in the checkpoint
  struct Outputs {
    int64_t prefill = 0, decode = 0;
  };
  std::optional<Outputs> outputs; ///< rows of logits of all ranks; none: not stated
};

/// Reads the text of `file`: every number has a range, so that sums of them do not overflow.
Expected<RouteStatistics> parseStatistics(std::string_view text, const std::string &file);
Expected<RouteStatistics> readStatistics(const std::string &path);

/// What to do about a file that says something wrong.
inline constexpr char statisticsRemedy[] = "write it with DIR/run COMMAND --expert-stats FILE";

} // namespace k2c

#endif
