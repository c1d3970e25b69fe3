//===- TokenizerData.h - what a tokenizer's file says ---------------------===//
//
// The content of a checked tokenizer.json or tiktoken.model, and their readers.
// Every reference is resolved: merges name tokens by id, the template is two
// lists of ids.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_TOKENIZERDATA_H
#define K2RT_TEXT_TOKENIZERDATA_H

#include "k2rt/TiktokenRules.h"
#include "text/AddedTokens.h"
#include "text/BytePairs.h"
#include "text/Decoder.h"
#include "text/PreTokenizer.h"

namespace k2c::runtime {

/// Sizes a tokenizer's file may not exceed; published ones stay well below.
constexpr size_t maxTokenizerBytes = size_t(64) << 20;
constexpr size_t maxTokens = size_t(1) << 22;
constexpr size_t maxTokenBytes = size_t(1) << 16;

struct TokenizerData {
  TokenizerData() = default;
  TokenizerData(const TokenizerData &) = delete; // pairs.whole points at tokens

  std::string name; ///< the file, for errors
  AddedTokens added;
  Normalizer normalizer;
  PreTokenizer preTokenizer;
  BytePairs pairs;
  std::vector<int32_t> before, after; ///< what the post-processor adds
  Decoder decoder;

  /// What a token stands for: its bytes, or, when the vocabulary is not
  /// byte-level, its spelling, which the decoder reads.
  TokenBytes tokens;
  std::vector<bool> special;
  /// The ids of tokens by their spelling; of a tiktoken.model, special tokens only.
  std::unordered_map<std::string, int32_t> ids;
};

/// Reads a tokenizer.json. Errors name `name` and the JSON path.
Expected<std::unique_ptr<TokenizerData>> readTokenizerData(std::string_view json, const std::string &name);

/// Reads a tiktoken.model. Errors name `name` and the line, or rules.configName
/// and the JSON path.
Expected<std::unique_ptr<TokenizerData>> readTiktokenData(std::string_view ranks, const std::string &name,
                                                          const TiktokenRules &rules);

} // namespace k2c::runtime

#endif // K2RT_TEXT_TOKENIZERDATA_H
