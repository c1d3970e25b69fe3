//===- TiktokenRules.h - what a tiktoken.model leaves to a program --------===//
#ifndef K2RT_TIKTOKENRULES_H
#define K2RT_TIKTOKENRULES_H

#include <cstdint>
#include <string>
#include <vector>

namespace k2c::runtime {

/// The file has ranks only. Its pattern comes from the manifest (the compiler
/// knows it from the model's family), its special tokens from
/// tokenizer_config.json.
struct TiktokenRules {
  std::vector<std::string> patterns; ///< alternatives of the regex that finds words, in order
  /// Ids behind the ranks that are special tokens. One that no name is given to
  /// is <|reserved_token_ID|>.
  int64_t reserved = 0;
  std::string place;      ///< of the patterns, for errors
  std::string config;     ///< the text of tokenizer_config.json; empty: no names
  std::string configName; ///< its path, for errors
};

} // namespace k2c::runtime

#endif // K2RT_TIKTOKENRULES_H
