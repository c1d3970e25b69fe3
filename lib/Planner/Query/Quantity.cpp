//===- Quantity.cpp - Which part of an answer a quantity names ----------------===//

#include "Quantity.h"

#include <set>
#include <vector>

using namespace k2c;

namespace {

std::vector<std::string> wordsOf(const std::string &text) {
  std::vector<std::string> words;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find('_', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string join(const std::vector<std::string> &words, size_t begin, size_t end) {
  std::string text;
  for (size_t i = begin; i < end; ++i)
    text += (i == begin ? "" : "_") + words[i];
  return text;
}

/// The unit that the last word stands for, in the base unit of parts; "" when it is none.
std::string unitOf(const std::string &word) {
  static const std::set<std::string> bytes = {"KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB", "TB"};
  static const std::set<std::string> parameters = {"B", "M", "T"};
  return bytes.count(word) ? "bytes" : parameters.count(word) ? "params" : "";
}

} // namespace

Expected<std::string> planner::partOf(const std::string &quantity, const nlohmann::ordered_json &parts,
                                      const std::string &function) {
  if (parts.contains(quantity))
    return quantity;
  std::vector<std::string> words = wordsOf(quantity);
  std::string unit = unitOf(words.back());
  if (!unit.empty())
    words.pop_back();
  for (size_t length = words.size(); length > 0; --length)
    for (size_t begin = 0; begin + length <= words.size(); ++begin) {
      std::string name = join(words, begin, begin + length);
      // "moe" of "t6_moe_MiB" is moe_bytes; "total" of "4x_total" is the part of that name.
      if (!unit.empty() && parts.contains(name + "_" + unit))
        return name + "_" + unit;
      if (parts.contains(name))
        return name;
    }
  // "os+g_none_1f1b_rank1" labels an item with its inputs.
  if (quantity.find_first_of("0123456789") != std::string::npos)
    return parts.begin().key();
  std::string names;
  for (const auto &[name, value] : parts.items())
    names += (names.empty() ? "" : ", ") + name;
  return Error{"--quantity", function + " has no quantity '" + quantity + "'", "its quantities: " + names};
}
