//===- TokenizerData.h - what a tokenizer.json says -----------------------===//
//
// The content of a checked tokenizer.json, and its reader. Every reference is
// resolved: merges name tokens by id, the template is two lists of ids.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_SERVE_TOKENIZERDATA_H
#define K2RT_SERVE_TOKENIZERDATA_H

#include "serve/AddedTokens.h"
#include "serve/BytePairs.h"
#include "serve/PreTokenizer.h"

namespace k2rt {

/// Sizes a tokenizer.json may not exceed; published ones stay well below.
constexpr size_t maxTokenizerBytes = size_t(64) << 20;
constexpr size_t maxTokens = size_t(1) << 22;
constexpr size_t maxTokenBytes = size_t(1) << 16;
constexpr int maxNesting = 32;

struct TokenizerData {
  std::string name; ///< the file, for errors
  AddedTokens added;
  PreTokenizer preTokenizer;
  BytePairs pairs;
  std::vector<int32_t> before, after; ///< what the post-processor adds

  /// The bytes token `id` stands for; `id` is in [0, begin.size() - 1).
  std::string_view bytes(int32_t id) const {
    return std::string_view(text).substr(begin[size_t(id)], begin[size_t(id) + 1] - begin[size_t(id)]);
  }

  // The bytes of token i are text[begin[i], begin[i + 1]).
  std::string text;
  std::vector<size_t> begin;
  std::vector<bool> special;
  std::unordered_map<std::string, int32_t> ids; ///< spelling -> id
};

/// Reads a tokenizer.json. Errors name `name` and the JSON path.
Result<std::unique_ptr<TokenizerData>> readTokenizerData(std::string_view json, const std::string &name);

} // namespace k2rt

#endif // K2RT_SERVE_TOKENIZERDATA_H
