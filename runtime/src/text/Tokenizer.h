//===- Tokenizer.h - text to token ids and back ---------------------------===//
//
// Reads the `tokenizer.json` of a published checkpoint (byte-pair encoding,
// byte-level or with byte fallback) and gives the ids that the `tokenizers`
// package gives; or its `tiktoken.model`, and gives those of `tiktoken`:
//
//   text -> added tokens cut out -> Normalizer -> words (PreTokenizer) ->
//   symbols merged by priority (BytePairs) -> the post-processor's template
//
// Text is bytes. What is not UTF-8 is read as Python's
// bytes.decode("utf-8", "replace") reads it: each maximal ill-formed part
// becomes U+FFFD. A file that asks for something else (another model, another
// normalizer) is refused by name with its place in the file. Two differences
// from the package are deliberate: a symbol that nothing stands for is an error
// (the package drops it), and "truncation" and "padding" are not applied.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_TOKENIZER_H
#define K2RT_TEXT_TOKENIZER_H

#include "k2rt/TiktokenRules.h"
#include "text/Decoder.h"
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace k2c::runtime {

struct TokenizerData;

/// A loaded tokenizer. Immutable: any number of threads may use one.
class Tokenizer {
public:
  /// Reads and checks the file. Errors name the file and the JSON path.
  /// Opens Oniguruma (see Regex.h).
  static Expected<Tokenizer> load(const std::string &path);
  /// The same from memory; `name` stands for the file in errors.
  static Expected<Tokenizer> parse(std::string_view json, const std::string &name);
  /// A tiktoken.model: its ranks, and what the file does not say.
  static Expected<Tokenizer> parseRanks(std::string_view ranks, const std::string &name, const TiktokenRules &rules);

  Tokenizer(Tokenizer &&) noexcept;
  Tokenizer &operator=(Tokenizer &&) noexcept;
  ~Tokenizer();

  /// Token ids of `text`. `special`: add what the post-processor adds (a
  /// beginning-of-sequence token, say). Special tokens written in the text are
  /// recognised in both cases. Fails when a pattern gives up on this text.
  Expected<std::vector<int32_t>> encode(std::string_view text, bool special) const;

  /// Text of `ids`, always valid UTF-8. `skipSpecial` leaves special tokens
  /// out. Ids that name no token are left out.
  std::string decode(const std::vector<int32_t> &ids, bool skipSpecial) const;

  /// True for an added token marked special.
  bool isSpecial(int32_t id) const;
  /// The id of a token by its text as the file spells it, or -1.
  int32_t find(std::string_view spelling) const;
  /// One more than the largest id.
  int32_t size() const;

  class Stream;

private:
  explicit Tokenizer(std::unique_ptr<const TokenizerData> data);
  std::unique_ptr<const TokenizerData> data;
};

/// Text of one sequence as its tokens come, never half a character: bytes of an
/// unfinished character wait for the next token. All pieces together are
/// decode() of all ids. The tokenizer must outlive the stream.
class Tokenizer::Stream {
public:
  Stream(const Tokenizer &tokenizer, bool skipSpecial) : tokenizer(&tokenizer), skipSpecial(skipSpecial) {}

  /// The text that `id` completes; may be empty.
  std::string push(int32_t id);
  /// The end: an unfinished character becomes U+FFFD.
  std::string finish();

private:
  const Tokenizer *tokenizer;
  bool skipSpecial;
  Decoder::State state;
};

} // namespace k2c::runtime

#endif // K2RT_TEXT_TOKENIZER_H
