//===- Join.h - Lists of words ---------------------------------------------===//
#ifndef K2C_SUPPORT_JOIN_H
#define K2C_SUPPORT_JOIN_H

#include <cstdint>
#include <string>
#include <vector>

namespace k2c {

/// "a, b, c": the text of each value, for messages.
template <class Values, class Text> std::string joined(const Values &values, const Text &text) {
  std::string all;
  for (const auto &value : values)
    all += (all.empty() ? "" : ", ") + std::string(text(value));
  return all;
}
template <class Words> std::string joined(const Words &words) {
  return joined(words, [](const auto &word) { return word; });
}
/// "[2, 3]".
inline std::string shapeText(const std::vector<int64_t> &shape) {
  return "[" + joined(shape, [](int64_t size) { return std::to_string(size); }) + "]";
}

} // namespace k2c

#endif // K2C_SUPPORT_JOIN_H
