//===- Vocabulary.h - tokens and merges, read as they are parsed ----------===//
//
// "vocab" and "merges" are nearly all of a tokenizer.json. As parsed JSON they
// would take eight times the file's size for a moment, which the memory
// certificate would have to cover; so the parser hands them over entry by
// entry and keeps none of them.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_VOCABULARY_H
#define K2RT_TEXT_VOCABULARY_H

#include "base/JsonFields.h"
#include "text/TokenizerData.h"

namespace k2c::runtime {

class Vocabulary {
public:
  using Json = nlohmann::json;
  using Event = Json::parse_event_t;

  /// Fills data.ids and data.pairs; `file` stands in errors. Both outlive this.
  Vocabulary(TokenizerData &data, const std::string &file) : data(data), model(empty, file, "", "model") {}

  /// The parser's callback: false for what was taken and need not be kept.
  /// Refuses bad entries.
  bool take(int depth, Event event, Json &parsed);

  /// Gives a token its id. `key` of `node` is where the file says so.
  void declare(const std::string &spelling, int32_t id, const JsonFields &node, const std::string &key);

  /// Hands the merges to data.pairs; call it when the parse is over.
  void resolveMerges();

  /// Per id the spelling, null in a hole.
  const std::vector<const std::string *> &spellings() const { return byId; }

private:
  void takeToken(const Json &parsed);
  void takeMerge(const Json &parsed);
  std::pair<std::string, std::string> mergeParts(const Json &merge, const std::string &key) const;
  int32_t tokenOf(const std::string &spelling, size_t merge) const;

  TokenizerData &data;
  const Json empty = Json::object();
  const JsonFields model;        ///< of nothing, for places: its entries are not kept
  std::vector<std::string> path; ///< keys from the root to the present place
  std::vector<const std::string *> byId;

  // The parts of merge i are mergeText[mergeEnd[2i-1], mergeEnd[2i]) and
  // mergeText[mergeEnd[2i], mergeEnd[2i+1]).
  std::string mergeText;
  std::vector<size_t> mergeEnd;
  size_t mergesSeen = 0; ///< "#version" lines included
};

} // namespace k2c::runtime

#endif // K2RT_TEXT_VOCABULARY_H
