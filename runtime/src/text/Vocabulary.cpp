// Entries of model.vocab and model.merges out of the parser's events.
#include "text/Vocabulary.h"
#include "base/Utf8.h"

namespace k2c::runtime {

// The root is at depth 0, so the entries of model.vocab and model.merges are
// at depth 3.
static constexpr int entryDepth = 3;

static std::string mergeKey(size_t merge) { return "merges[" + std::to_string(merge) + "]"; }

std::pair<std::string, std::string> Vocabulary::mergeParts(const Json &merge, const std::string &key) const {
  std::pair<std::string, std::string> parts;
  if (merge.is_array()) {
    if (merge.size() != 2)
      model.fail(key, "a merge has 2 parts, this one " + std::to_string(merge.size()));
    parts = {model.stringOf(merge[0], key + "[0]", maxTokenBytes),
             model.stringOf(merge[1], key + "[1]", maxTokenBytes)};
  } else {
    const std::string &text = model.stringOf(merge, key, 2 * maxTokenBytes);
    const size_t space = text.find(' ');
    if (space == text.npos || text.find(' ', space + 1) != text.npos)
      model.fail(key, "a merge is two tokens with one space between them");
    parts = {text.substr(0, space), text.substr(space + 1)};
  }
  if (parts.first.empty() || parts.second.empty())
    model.fail(key, "a part of the merge is empty");
  return parts;
}

bool Vocabulary::take(int depth, Event event, Json &parsed) {
  if (event == Event::key) {
    path.resize(size_t(depth));
    path.back() = parsed.get_ref<const std::string &>();
  }
  const bool inModel = path.size() >= 2 && path[0] == "model";
  const bool inToken = inModel && path.size() == 3 && path[1] == "vocab";
  const bool inMerge = inModel && path.size() == 2 && path[1] == "merges";
  if (depth != entryDepth || !(inToken || inMerge))
    return true;
  switch (event) {
  case Event::key:
    return false;
  case Event::value:
    inToken ? takeToken(parsed) : takeMerge(parsed);
    return false;
  case Event::array_end:
    takeMerge(parsed);
    return false;
  case Event::array_start:
    if (inToken)
      takeToken(Json::array());
    return true;
  case Event::object_start:
    inToken ? takeToken(Json::object()) : takeMerge(Json::object());
    return true;
  case Event::object_end:
    return true;
  }
  return true;
}

void Vocabulary::takeToken(const Json &parsed) {
  const std::string key = "vocab." + shortened(path.back(), maxOfKey);
  declare(path.back(), int32_t(model.integerOf(parsed, key, 0, maxTokens - 1)), model, key);
}

void Vocabulary::declare(const std::string &spelling, int32_t id, const JsonFields &node, const std::string &key) {
  if (spelling.size() > maxTokenBytes)
    node.fail(key, "a token of " + std::to_string(spelling.size()) + " bytes; the limit is " +
                       std::to_string(maxTokenBytes));
  if (size_t(id) >= byId.size())
    byId.resize(size_t(id) + 1, nullptr);
  if (byId[size_t(id)])
    node.fail(key, "id " + std::to_string(id) + " belongs to \"" + shortened(*byId[size_t(id)]) + "\" already");
  auto [entry, added] = data.ids.emplace(spelling, id);
  if (!added)
    node.fail(key, "the token has id " + std::to_string(entry->second) + " already");
  byId[size_t(id)] = &entry->first;
}

void Vocabulary::takeMerge(const Json &parsed) {
  const std::string key = mergeKey(mergesSeen++);
  if (mergesSeen > maxTokens)
    model.fail(key, "the limit is " + std::to_string(maxTokens) + " merges");
  // A comment of the older format keeps its number but is no merge.
  std::pair<std::string, std::string> parts;
  if (!parsed.is_string() || parsed.get_ref<const std::string &>().rfind("#version", 0) != 0)
    parts = mergeParts(parsed, key);
  mergeText += parts.first;
  mergeEnd.push_back(mergeText.size());
  mergeText += parts.second;
  mergeEnd.push_back(mergeText.size());
}

int32_t Vocabulary::tokenOf(const std::string &spelling, size_t merge) const {
  auto found = data.ids.find(spelling);
  if (found == data.ids.end())
    model.fail(mergeKey(merge), "\"" + shortened(spelling) + "\" is not in the vocabulary");
  return found->second;
}

void Vocabulary::resolveMerges() {
  size_t begin = 0;
  data.pairs.reserve(mergesSeen);
  for (size_t i = 0; i < mergesSeen; ++i) {
    const size_t middle = mergeEnd[2 * i], end = mergeEnd[2 * i + 1];
    const std::string left = mergeText.substr(begin, middle - begin);
    const std::string right = mergeText.substr(middle, end - middle);
    begin = end;
    if (left.empty())
      continue;
    const int32_t leftToken = tokenOf(left, i);
    const int32_t rightToken = tokenOf(right, i);
    data.pairs.addMerge(leftToken, rightToken, int32_t(i), tokenOf(left + right, i));
  }
}

} // namespace k2c::runtime
