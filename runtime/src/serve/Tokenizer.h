//===- Tokenizer.h - text to token ids and back ---------------------------===//
//
// Reads the `tokenizer.json` of a published checkpoint, byte-level BPE kind,
// and gives the ids that the `tokenizers` package gives:
//
//   text -> added tokens cut out -> words (PreTokenizer) -> bytes merged by
//   priority (BytePairs) -> the post-processor's template
//
// Text is bytes. What is not UTF-8 is read as Python's
// bytes.decode("utf-8", "replace") reads it: each maximal ill-formed part
// becomes U+FFFD. A file that asks for something else (a normalizer, another
// model, byte fallback) is refused by name with its place in the file. Two
// differences from the package are deliberate: a byte without a token is an
// error (the package drops it), and "truncation" and "padding" are not applied.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_SERVE_TOKENIZER_H
#define K2RT_SERVE_TOKENIZER_H

#include "status/Status.h"
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace k2rt {

struct TokenizerData;

/// A loaded tokenizer. Immutable: any number of threads may use one.
class Tokenizer {
public:
  /// Reads and checks the file. Errors name the file and the JSON path.
  /// Opens Oniguruma (see Regex.h).
  static Result<Tokenizer> load(const std::string &path);
  /// The same from memory; `name` stands for the file in errors.
  static Result<Tokenizer> parse(std::string_view json, const std::string &name);

  Tokenizer(Tokenizer &&) noexcept;
  Tokenizer &operator=(Tokenizer &&) noexcept;
  ~Tokenizer();

  /// Token ids of `text`. `special`: add what the post-processor adds (a
  /// beginning-of-sequence token, say). Special tokens written in the text are
  /// recognised in both cases. Fails when a pattern gives up on this text.
  Result<std::vector<int32_t>> encode(std::string_view text, bool special) const;

  /// Text of `ids`, always valid UTF-8. `skipSpecial` leaves special tokens
  /// out. Ids that name no token are left out.
  std::string decode(const std::vector<int32_t> &ids, bool skipSpecial) const;

  /// The bytes one id stands for, perhaps a part of a character; empty when the
  /// id names no token.
  std::string_view bytes(int32_t id) const;
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
  std::string pending;
};

} // namespace k2rt

#endif // K2RT_SERVE_TOKENIZER_H
