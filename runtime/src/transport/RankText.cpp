#include "transport/RankText.h"
#include <cstdio>

namespace k2c::runtime {

std::string rankList(const std::vector<int32_t> &ranks) {
  std::string list = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i == maxNamed && ranks.size() > maxNamed + 1)
      return list + " and " + std::to_string(ranks.size() - maxNamed) + " more";
    list += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  }
  return list;
}

std::string secondsText(Clock::duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", std::chrono::duration<double>(time).count());
  return text;
}

} // namespace k2c::runtime
