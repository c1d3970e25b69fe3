// Search for a literal or by Oniguruma.
#include "text/Pattern.h"

namespace k2c::runtime {

Status Pattern::findAll(std::string_view text, std::vector<TextRange> &matches) const {
  if (const Regex *regex = std::get_if<Regex>(&pattern))
    return regex->findAll(text, matches);
  const std::string &literal = std::get<std::string>(pattern);
  for (size_t at = 0; (at = text.find(literal, at)) != text.npos; at += literal.size())
    matches.push_back({at, at + literal.size()});
  return {};
}

Expected<std::string> Pattern::replaceAll(std::string_view text, std::string_view content) const {
  std::vector<TextRange> matches;
  if (Status status = findAll(text, matches); !status)
    return status.takeError();
  std::string result;
  size_t done = 0;
  for (const TextRange &match : matches) {
    result.append(text, done, match.begin - done).append(content);
    done = match.end;
  }
  result.append(text, done);
  return result;
}

} // namespace k2c::runtime
