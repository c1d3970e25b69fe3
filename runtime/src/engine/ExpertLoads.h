// How the tokens of a layer fall to its experts: which have none, and which have many.
#ifndef K2RT_ENGINE_EXPERTLOADS_H
#define K2RT_ENGINE_EXPERTLOADS_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace k2c::runtime {

class ExpertLoads {
public:
  explicit ExpertLoads(int64_t experts) : tokens(static_cast<size_t>(experts)) {}

  void add(int32_t expert, int64_t count) { tokens[static_cast<size_t>(expert)] += count; }
  int64_t of(int32_t expert) const { return tokens[static_cast<size_t>(expert)]; }
  /// No token has chosen it.
  bool isDead(int32_t expert) const { return of(expert) == 0; }
  double mean() const;
  /// Ascending.
  std::vector<int32_t> dead() const;
  /// Those that more than twice as many tokens have chosen as the mean: by falling load, then ascending.
  std::vector<int32_t> hot() const;

private:
  std::vector<int64_t> tokens; ///< by expert
};

} // namespace k2c::runtime

#endif
