//===- Decoder.h - tokens back into text ----------------------------------===//
//
// Two kinds. Byte-level: tokens are bytes, which together are text. Pieces:
// each token is text in which patterns are replaced (a visible space by a
// space), tokens <0x00> to <0xFF> are bytes, and leading spaces of the whole
// are cut. Bytes side by side that are not UTF-8 together become one U+FFFD
// each, all of them; so they wait for the next piece.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_DECODER_H
#define K2RT_TEXT_DECODER_H

#include "text/Normalizer.h"
#include <cstdint>
#include <optional>

namespace k2c::runtime {

struct Decoder {
  bool byteLevel = true;
  // Of pieces:
  std::vector<ReplaceStep> replacements;
  bool bytesFromTokens = false;
  std::string stripped;       ///< the character cut from the beginning
  size_t strippedAtMost = 0;  ///< how many of them
  std::string droppedAtFirst; ///< left out of the first token wherever it stands; empty: none

  /// What the present text leaves for the tokens to come.
  struct State {
    std::string bytes; ///< not yet text
    size_t strippedSoFar = 0;
    bool first = true, stripping = true;
  };

  /// The text that a token completes; may be empty.
  std::string push(std::string_view token, State &state) const;
  /// The end: what is unfinished becomes U+FFFD.
  std::string finish(State &state) const;

private:
  std::string piece(std::string_view token, State &state) const;
  std::string takeBytes(State &state) const;
  std::string strip(std::string text, State &state) const;
};

/// The byte that a token of the form <0x0A> stands for.
std::optional<uint8_t> byteOfToken(std::string_view token);

/// The token of that form.
std::string tokenOfByte(uint8_t byte);

} // namespace k2c::runtime

#endif // K2RT_TEXT_DECODER_H
