#include "engine/ExpertLoads.h"
#include <algorithm>
#include <numeric>

namespace k2c::runtime {

double ExpertLoads::mean() const {
  const auto sum = static_cast<double>(std::accumulate(tokens.begin(), tokens.end(), int64_t(0)));
  return tokens.empty() ? 0 : sum / static_cast<double>(tokens.size());
}

std::vector<int32_t> ExpertLoads::dead() const {
  std::vector<int32_t> found;
  for (int32_t expert = 0; expert < static_cast<int32_t>(tokens.size()); ++expert)
    if (isDead(expert))
      found.push_back(expert);
  return found;
}

std::vector<int32_t> ExpertLoads::hot() const {
  const double limit = 2 * mean();
  std::vector<int32_t> found;
  for (int32_t expert = 0; expert < static_cast<int32_t>(tokens.size()); ++expert)
    if (static_cast<double>(of(expert)) > limit)
      found.push_back(expert);
  std::stable_sort(found.begin(), found.end(), [this](int32_t a, int32_t b) { return of(a) > of(b); });
  return found;
}

} // namespace k2c::runtime
