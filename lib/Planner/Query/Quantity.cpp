//===- Quantity.cpp - Which part of an answer a quantity names ----------------===//

#include "Quantity.h"

#include "k2c/Model/Source.h"
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

using namespace k2c;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

std::vector<std::string> split(const std::string &text, const char *separators) {
  std::vector<std::string> words;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find_first_of(separators, at), text.size());
    if (end > at)
      words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string join(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : "_") + word;
  return text;
}

bool isDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

/// How part names end for a unit; "" when the word is none.
std::string suffixOf(const std::string &unit) {
  static const std::map<std::string, std::string> suffixes = {
      {"KiB", "bytes"}, {"MiB", "bytes"}, {"GiB", "bytes"}, {"TiB", "bytes"}, {"KB", "bytes"},
      {"MB", "bytes"},  {"GB", "bytes"},  {"TB", "bytes"},  {"B", "params"},  {"M", "params"},
      {"T", "params"},  {"s", "s"},       {"ms", "s"},      {"us", "s"}};
  auto at = suffixes.find(unit);
  return at == suffixes.end() ? "" : at->second;
}

/// What the inputs say, as quantities repeat it.
class Labels {
public:
  Labels(const json &inputs, const QueryAnswer &answer) : inputs(inputs) {
    for (const std::string &name : publishedModels())
      add(name);
    for (const auto &[key, value] : inputs.items())
      if (key == "quantity" || key == "note")
        continue; // a remark, not an input
      else if (value.is_string())
        add(value.get<std::string>().substr(0, value.get<std::string>().find(' ')));
      else if (value == true)
        add(key);
    for (const auto &[name, value] : answer.parts.items())
      for (const std::string &word : split(name, "_"))
        spoken.insert(word);
    for (const auto &[name, part] : answer.aliases)
      for (const std::string &word : split(name, "_"))
        spoken.insert(word);
  }

  /// Whether words[i] repeats an input, or says by which convention; never a word of a part's name.
  bool isLabel(const std::vector<std::string> &words, size_t i) const {
    const std::string &word = words[i];
    if (spoken.count(word))
      return false;
    if (said.count(word))
      return true;
    if (word.find_first_not_of("0123456789.") == std::string::npos)
      return (i > 0 && !keyOf(words[i - 1]).empty()) || isInput(std::atof(word.c_str()));
    // "tp4", "b8", "4x8", "1f1b"; not "speed2".
    return std::any_of(word.begin(), word.end(), isDigit) &&
           (isDigit(word[0]) || word.find_first_of("0123456789") <= 2 || !namesOf(keyOf(word)).empty());
  }

  /// The input that a word like "tp4" contradicts; "": none. "stage1_14" is a range.
  std::string contradicted(const std::vector<std::string> &words, size_t i) const {
    const std::string &word = words[i], key = keyOf(word);
    if (key.empty() || said.count(word) || spoken.count(word))
      return "";
    for (const std::string &name : namesOf(key)) {
      if (!inputs.contains(name) || !inputs[name].is_number())
        continue;
      const double low = std::atof(word.c_str() + key.size()), value = inputs[name].get<double>();
      const bool isRange = i + 1 < words.size() && words[i + 1].find_first_not_of("0123456789") == std::string::npos;
      return low <= value && value <= (isRange ? std::atof(words[i + 1].c_str()) : low) ? "" : name;
    }
    return "";
  }

private:
  void add(const std::string &text) {
    said.insert(text);
    for (const std::string &word : split(text, "_-./ "))
      said.insert(word);
  }
  /// The letters of a word of letters and a number; "" of another.
  static std::string keyOf(const std::string &word) {
    size_t digits = word.find_first_of("0123456789");
    return digits == std::string::npos || word.find_first_not_of("0123456789.", digits) != std::string::npos
               ? ""
               : word.substr(0, digits);
  }
  /// Inputs that letters stand for.
  static std::vector<std::string> namesOf(const std::string &letters) {
    static const std::map<std::string, std::vector<std::string>> names = {{"L", {"layers_on_stage", "layers"}},
                                                                          {"g", {"gpus"}},
                                                                          {"add", {"additional"}},
                                                                          {"stage", {"stage"}},
                                                                          {"layer", {"layer"}},
                                                                          {"rank", {"rank"}},
                                                                          {"etp", {"etp"}},
                                                                          {"edp", {"edp"}}};
    auto at = names.find(letters);
    if (at != names.end())
      return at->second;
    return letters.size() <= 2 ? std::vector<std::string>{letters} : std::vector<std::string>();
  }
  bool isInput(double number) const {
    return std::any_of(inputs.begin(), inputs.end(), [&](const json &value) { return value == number; });
  }

  const json &inputs;
  std::set<std::string> said = {"text", "no", "zero", "seed", "paper", "exact", "megatron", "seq", "global"};
  std::set<std::string> spoken; ///< words of part names
};

/// The number of a part, by its name or another name of it; null: there is none.
const ordered_json *partOf(const QueryAnswer &answer, const std::string &name) {
  auto alias = answer.aliases.find(name);
  auto at = answer.parts.find(alias == answer.aliases.end() ? name : alias->second);
  return at == answer.parts.end() ? nullptr : &*at;
}

/// Of words without labels.
const ordered_json *named(const QueryAnswer &answer, std::vector<std::string> words) {
  if (words.empty())
    return answer.isTable ? nullptr : &answer.value;
  if (const ordered_json *part = partOf(answer, join(words)))
    return part;
  const std::string suffix = suffixOf(words.back());
  if (suffix.empty()) {
    // "grads" has one reading where parts are of one unit.
    const ordered_json *only = nullptr;
    for (const char *unit : {"bytes", "params", "s"})
      if (const ordered_json *part = partOf(answer, join(words) + "_" + unit)) {
        if (only)
          return nullptr;
        only = part;
      }
    return only;
  }
  words.pop_back();
  if (!words.empty() && words.back() == suffix)
    return partOf(answer, join(words)); // "params_B"
  if (!words.empty())
    return partOf(answer, join(words) + "_" + suffix);
  const ordered_json *total = partOf(answer, "total_" + suffix);
  return total ? total : partOf(answer, suffix);
}

} // namespace

std::string planner::namesOf(const ordered_json &fields) {
  std::string names;
  for (const auto &[name, value] : fields.items())
    names += (names.empty() ? "" : ", ") + name;
  return names;
}

Expected<ordered_json> planner::quantityOf(const std::string &quantity, const QueryAnswer &answer, const json &inputs,
                                           const std::string &function) {
  if (const ordered_json *part = partOf(answer, quantity))
    return *part;
  const Labels labels(inputs, answer);
  const std::vector<std::string> words = split(quantity, "_");
  std::vector<std::string> left;
  for (size_t i = 0; i < words.size(); ++i) {
    if (std::string key = labels.contradicted(words, i); !key.empty())
      return Error{"--quantity",
                   "'" + words[i] + "' of '" + quantity + "' contradicts the input '" + key + "' " + inputs[key].dump(),
                   "ask with inputs and a quantity that agree"};
    if (!labels.isLabel(words, i))
      left.push_back(words[i]);
  }
  if (const ordered_json *part = named(answer, left))
    return *part;
  const std::string names = namesOf(answer.parts);
  return Error{"--quantity", function + " has no quantity '" + quantity + "'",
               names.empty() ? "it answers one number: leave --quantity out" : "its quantities: " + names};
}
