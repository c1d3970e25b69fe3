// Decoding token by token.
#include "text/Decoder.h"
#include "base/Utf8.h"
#include <charconv>

namespace k2c::runtime {

std::optional<uint8_t> byteOfToken(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>')
    return std::nullopt;
  uint8_t byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  return error == std::errc() && end == token.data() + 5 ? std::optional<uint8_t>(byte) : std::nullopt;
}

std::string tokenOfByte(uint8_t byte) {
  constexpr char digits[] = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

/// The waiting bytes as text: all of them, or a U+FFFD for each.
std::string Decoder::takeBytes(State &state) const {
  std::string text;
  size_t at = 0;
  while (at < state.bytes.size()) {
    const Utf8Step step = utf8Step(state.bytes, at);
    if (step.kind != Utf8Step::character)
      break;
    at += step.length;
  }
  if (at == state.bytes.size())
    text = state.bytes;
  else
    for (size_t i = 0; i < state.bytes.size(); ++i)
      text += "\xEF\xBF\xBD";
  state.bytes.clear();
  return text;
}

std::string Decoder::strip(std::string text, State &state) const {
  size_t cut = 0;
  while (state.stripping && cut < text.size()) {
    state.stripping = state.strippedSoFar < strippedAtMost && text.compare(cut, stripped.size(), stripped) == 0;
    if (state.stripping) {
      cut += stripped.size();
      ++state.strippedSoFar;
    }
  }
  return text.substr(cut);
}

std::string Decoder::piece(std::string_view token, State &state) const {
  std::string text(token);
  if (state.first && !droppedAtFirst.empty())
    text = *Pattern(droppedAtFirst).replaceAll(text, "");
  state.first = false;
  for (const ReplaceStep &step : replacements)
    // A pattern that gives up on a token leaves it as it is.
    if (Expected<std::string> replaced = step.pattern.replaceAll(text, step.content))
      text = std::move(*replaced);
  return text;
}

std::string Decoder::push(std::string_view token, State &state) const {
  if (byteLevel) {
    state.bytes += token;
    std::string text;
    state.bytes.erase(0, appendWellFormed(state.bytes, true, text));
    return text;
  }
  const std::string text = piece(token, state);
  if (bytesFromTokens)
    if (std::optional<uint8_t> byte = byteOfToken(text)) {
      state.bytes += char(*byte);
      return "";
    }
  return strip(takeBytes(state) + text, state);
}

std::string Decoder::finish(State &state) const {
  std::string text;
  if (byteLevel)
    appendWellFormed(state.bytes, false, text);
  else
    text = strip(takeBytes(state), state);
  state = State();
  return text;
}

} // namespace k2c::runtime
