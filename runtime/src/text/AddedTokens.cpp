// Leftmost-longest search in a trie, and what the flags of a match ask for.
#include "text/AddedTokens.h"
#include "base/Utf8.h"
#include <algorithm>

namespace k2c::runtime {

namespace {

/// Unicode's White_Space.
bool isSpace(std::string_view character) {
  const uint32_t c = utf8CodePoint(character);
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/// The character that begins at text[at]; empty at the end.
std::string_view characterAt(std::string_view text, size_t at) {
  return at < text.size() ? text.substr(at, utf8Step(text, at).length) : std::string_view();
}

/// The character that ends before text[at]; empty at the beginning.
std::string_view characterBefore(std::string_view text, size_t at) {
  size_t begin = at;
  while (begin > 0 && (uint8_t(text[--begin]) & 0xC0) == 0x80)
    ;
  return text.substr(begin, at - begin);
}

} // namespace

void AddedTokens::Trie::insert(std::string_view content, int32_t token) {
  int32_t node = 0;
  for (char byte : content) {
    const uint64_t key = uint64_t(node) << 8 | uint8_t(byte);
    auto [edge, added] = edges.try_emplace(key, int32_t(tokenAt.size()));
    if (added)
      tokenAt.push_back(-1);
    node = edge->second;
  }
  tokenAt[size_t(node)] = token;
}

std::pair<int32_t, size_t> AddedTokens::Trie::longest(std::string_view text, size_t at) const {
  int32_t node = 0;
  std::pair<int32_t, size_t> best = {-1, 0};
  for (size_t end = at; end < text.size();) {
    auto edge = edges.find(uint64_t(node) << 8 | uint8_t(text[end++]));
    if (edge == edges.end())
      break;
    node = edge->second;
    if (tokenAt[size_t(node)] >= 0)
      best = {tokenAt[size_t(node)], end - at};
  }
  return best;
}

Expected<AddedTokens> AddedTokens::create(std::vector<AddedToken> tokens, const std::string &place) {
  AddedTokens added;
  added.tokens = std::move(tokens);
  for (size_t i = 0; i < added.tokens.size(); ++i) {
    const AddedToken &token = added.tokens[i];
    if (!token.content.empty())
      (token.normalized ? added.normalized : added.raw).insert(token.content, int32_t(i));
    if (token.singleWord && !added.word) {
      Expected<Regex> word = Regex::compile("[\\w\\x{200C}\\x{200D}]", place);
      if (!word)
        return word.takeError();
      added.word = std::move(*word);
    }
  }
  return added;
}

bool AddedTokens::isWord(std::string_view character) const { return !character.empty() && word->matches(character); }

bool AddedTokens::standsAlone(std::string_view text, TextRange match) const {
  return !isWord(characterBefore(text, match.begin)) && !isWord(characterAt(text, match.end));
}

std::vector<Segment> AddedTokens::cut(const Trie &trie, std::string_view text) const {
  std::vector<Segment> out;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const auto [index, length] = trie.longest(text, at);
    if (index < 0) {
      ++at;
      continue;
    }
    const AddedToken &token = tokens[size_t(index)];
    TextRange match = {at, at + length};
    at = match.end;
    if (token.singleWord && !standsAlone(text, match))
      continue;
    if (token.leftStrip)
      for (std::string_view before = characterBefore(text, match.begin); match.begin > done && isSpace(before);
           before = characterBefore(text, match.begin))
        match.begin -= before.size();
    if (token.rightStrip)
      for (std::string_view after = characterAt(text, match.end); !after.empty() && isSpace(after);
           after = characterAt(text, match.end))
        match.end += after.size();
    match.begin = std::max(match.begin, done);
    if (done < match.begin)
      out.push_back({text.substr(done, match.begin - done), -1});
    out.push_back({{}, token.id});
    done = match.end;
    at = std::max(at, done);
  }
  if (done < text.size())
    out.push_back({text.substr(done), -1});
  return out;
}

} // namespace k2c::runtime
