// Cuts and their behaviours, applied piece by piece.
#include "text/PreTokenizer.h"

namespace k2c::runtime {

const char *const PreTokenizer::gpt2Pattern = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                                              "\\s+(?!\\S)|\\s+";

Status Cut::parts(std::string_view text, std::vector<Part> &out) const {
  std::vector<TextRange> matches;
  if (Status status = pattern.findAll(text, matches); !status)
    return status.takeError();
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

Status PreTokenizer::applyMetaspace(std::string_view piece, bool begins, Words &words) const {
  static const Pattern space(std::string(" "));
  std::string &word = words.owned.emplace_back();
  word = *space.replaceAll(piece, metaspace->space);
  const bool prepend = metaspace->prepend == Metaspace::always || (metaspace->prepend == Metaspace::first && begins);
  if (prepend && word.compare(0, metaspace->space.size(), metaspace->space) != 0)
    word.insert(0, metaspace->space);
  if (metaspace->cut)
    return metaspace->cut->apply(word, words.list);
  words.list.push_back(word);
  return {};
}

Status PreTokenizer::apply(std::string_view text, bool begins, Words &words) const {
  std::vector<std::string_view> pieces = {text}, next;
  for (const Cut &cut : cuts) {
    next.clear();
    for (std::string_view piece : pieces)
      if (Status status = cut.apply(piece, next); !status)
        return status.takeError();
    pieces.swap(next);
  }
  for (std::string_view piece : pieces) {
    if (metaspace) {
      if (Status status = applyMetaspace(piece, begins && piece.data() == text.data(), words); !status)
        return status.takeError();
      continue;
    }
    if (addPrefixSpace && piece.substr(0, 1) != " ")
      piece = words.owned.emplace_back(" ").append(piece);
    if (!byteLevelCut)
      words.list.push_back(piece);
    else if (Status status = byteLevelCut->apply(piece, words.list); !status)
      return status.takeError();
  }
  return {};
}

} // namespace k2c::runtime
