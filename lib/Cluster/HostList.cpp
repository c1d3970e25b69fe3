//===- HostList.cpp - Slurm's lists of names with ranges --------------------===//
#include "Importers.h"
#include "base/Utf8.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace k2c::cluster {

namespace {

constexpr size_t maxNames = 65536, maxLength = 256;

bool isNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.'; }

/// Splits at commas outside brackets. False: unbalanced or nested brackets.
bool split(const std::string &text, std::vector<std::string> &parts) {
  bool inside = false;
  parts.emplace_back();
  for (char c : text) {
    if (c == '[' || c == ']') {
      if (inside == (c == '['))
        return false;
      inside = c == '[';
    }
    if (c == ',' && !inside)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return !inside;
}

/// "01-03" as 01, 02, 03, after `names`, each behind `prefix`. An empty text: what is wrong otherwise.
std::string expandRange(const std::string &range, const std::string &prefix, std::vector<std::string> &names) {
  size_t dash = range.find('-');
  std::string first = range.substr(0, dash), last = dash == std::string::npos ? first : range.substr(dash + 1);
  for (const std::string &number : {first, last})
    if (number.empty() || number.size() > 9 || number.find_first_not_of("0123456789") != std::string::npos)
      return "'" + shortened(range) + "' is not a range of numbers";
  long long begin = std::atoll(first.c_str()), end = std::atoll(last.c_str());
  if (begin > end)
    return "range '" + shortened(range) + "' descends";
  if (size_t(end - begin) >= maxNames - std::min(maxNames, names.size()))
    return "more than " + std::to_string(maxNames) + " names";
  for (long long i = begin; i <= end; ++i) {
    std::string digits = std::to_string(i);
    names.push_back(prefix + std::string(first.size() - std::min(first.size(), digits.size()), '0') + digits);
  }
  return "";
}

/// One name with any brackets.
std::string expandName(const std::string &text, std::vector<std::string> &names) {
  if (text.empty() || text.size() > maxLength)
    return text.empty() ? "a name is empty" : "a name is longer than " + std::to_string(maxLength) + " characters";
  std::vector<std::string> heads = {""};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '[') {
      if (!isNameCharacter(text[i]))
        return "'" + shortened(text) + "' is not a name";
      for (std::string &head : heads)
        head += text[i];
      continue;
    }
    size_t end = text.find(']', i);
    std::string inside = text.substr(i + 1, end - i - 1) + ",";
    std::vector<std::string> longer;
    for (const std::string &head : heads)
      for (size_t begin = 0; begin < inside.size(); begin = inside.find(',', begin) + 1)
        if (std::string wrong = expandRange(inside.substr(begin, inside.find(',', begin) - begin), head, longer);
            !wrong.empty())
          return wrong;
    heads = std::move(longer);
    i = end;
  }
  names.insert(names.end(), heads.begin(), heads.end());
  return names.size() > maxNames ? "more than " + std::to_string(maxNames) + " names" : "";
}

} // namespace

Expected<std::vector<std::string>> expandHostList(const std::string &text, const std::string &where, size_t &total) {
  std::vector<std::string> parts, names;
  if (!split(text, parts))
    return Error{where, "'" + shortened(text) + "' has brackets without partner or within brackets", ""};
  for (const std::string &part : parts)
    if (std::string wrong = expandName(part, names); !wrong.empty())
      return Error{where, std::move(wrong), "write names as a[1-3,7],b"};
  total += names.size();
  if (total > maxNames)
    return Error{where, "more than " + std::to_string(maxNames) + " names in the file", ""};
  return names;
}

} // namespace k2c::cluster
