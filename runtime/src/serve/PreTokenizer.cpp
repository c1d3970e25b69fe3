// Cuts and their behaviours, applied piece by piece.
#include "serve/PreTokenizer.h"

namespace k2rt {

const char *const PreTokenizer::gpt2Pattern = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                                              "\\s+(?!\\S)|\\s+";

Status Cut::parts(std::string_view text, std::vector<Part> &out) const {
  std::vector<TextRange> matches;
  if (const Regex *regex = std::get_if<Regex>(&pattern)) {
    if (Status status = regex->findAll(text, matches); !status)
      return status.takeError();
  } else {
    const std::string &literal = std::get<std::string>(pattern);
    for (size_t at = 0; (at = text.find(literal, at)) != text.npos; at += literal.size())
      matches.push_back({at, at + literal.size()});
  }
  size_t end = 0;
  for (const TextRange &match : matches) {
    if (end < match.begin)
      out.push_back({{end, match.begin}, invert});
    out.push_back({match, !invert});
    end = match.end;
  }
  if (end < text.size())
    out.push_back({{end, text.size()}, invert});
  return {};
}

Status Cut::apply(std::string_view text, std::vector<std::string_view> &pieces) const {
  std::vector<Part> found;
  if (Status status = parts(text, found); !status)
    return status.takeError();
  std::vector<TextRange> ranges;
  bool afterMatch = false; // the last range holds a match as its end
  for (size_t i = 0; i < found.size(); ++i) {
    const Part &part = found[i];
    bool join = false;
    switch (behavior) {
    case CutBehavior::removed:
      if (part.matched)
        continue;
      break;
    case CutBehavior::isolated:
      break;
    case CutBehavior::mergedWithPrevious:
      join = part.matched && !afterMatch;
      break;
    case CutBehavior::mergedWithNext:
      // Of several matches in a row only the last joins what follows.
      join = i > 0 && found[i - 1].matched && !part.matched;
      break;
    case CutBehavior::contiguous:
      join = i > 0 && found[i - 1].matched == part.matched;
      break;
    }
    afterMatch = part.matched;
    if (join && !ranges.empty())
      ranges.back().end = part.range.end;
    else
      ranges.push_back(part.range);
  }
  for (const TextRange &range : ranges)
    if (range.begin < range.end)
      pieces.push_back(text.substr(range.begin, range.end - range.begin));
  return {};
}

Status PreTokenizer::apply(std::string_view text, Words &words) const {
  std::vector<std::string_view> pieces = {text}, next;
  for (const Cut &cut : cuts) {
    next.clear();
    for (std::string_view piece : pieces)
      if (Status status = cut.apply(piece, next); !status)
        return status.takeError();
    pieces.swap(next);
  }
  for (std::string_view piece : pieces) {
    if (addPrefixSpace && piece.substr(0, 1) != " ")
      piece = words.owned.emplace_back(" ").append(piece);
    if (!byteLevelCut)
      words.list.push_back(piece);
    else if (Status status = byteLevelCut->apply(piece, words.list); !status)
      return status.takeError();
  }
  return {};
}

} // namespace k2rt
