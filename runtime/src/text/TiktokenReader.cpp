// tiktoken.model -> TokenizerData. A line of the file is the base64 of a token's bytes, a space, and its rank, which
// is its id; two neighbours merge when together they are a token.
//
//   aGVsbG8= 15339        the token "hello", of rank 15339
//
// So the file has no list of merges: the rank of the merged token is its priority. Ranks must count up from 0, no two
// tokens may have the same bytes, and every single byte must be a token, so that any text can be encoded. The pattern
// that cuts text into words is not in the file; the model's family gives it, and text that it does not match is left
// out as `tiktoken` does. Special tokens are the ids behind the last rank, with names from tokenizer_config.json or,
// where it names none, <|reserved_token_N|>; a name for an id outside of them is refused.
#include "base/JsonFields.h"
#include "base/Utf8.h"
#include "text/TokenizerData.h"
#include <charconv>

namespace k2c::runtime {

namespace {

Error lineError(const std::string &name, size_t line, const std::string &message) {
  return {K2RT_INVALID_BUNDLE, name + ": line " + std::to_string(line), message, ""};
}

/// The value of a base64 digit (RFC 4648), or -1.
int digitOf(char c) {
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/// Padded base64, strictly; nothing when it is not.
std::optional<std::string> decodeBase64(std::string_view text) {
  if (text.size() % 4 != 0)
    return std::nullopt;
  std::string bytes;
  for (size_t at = 0; at < text.size(); at += 4) {
    uint32_t group = 0;
    size_t digits = 4;
    if (at + 4 == text.size())
      digits -= size_t(text[at + 3] == '=') + size_t(text[at + 3] == '=' && text[at + 2] == '=');
    for (size_t i = 0; i < digits; ++i) {
      const int digit = digitOf(text[at + i]);
      if (digit < 0)
        return std::nullopt;
      group |= uint32_t(digit) << (18 - 6 * i);
    }
    for (size_t i = 0; i + 1 < digits; ++i)
      bytes += char(group >> (16 - 8 * i) & 0xFF);
  }
  return bytes;
}

/// Appends the token of one line; ranks count up from 0.
Status readLine(std::string_view line, size_t number, TokenizerData &data) {
  const size_t space = line.find(' ');
  if (space == line.npos)
    return lineError(data.name, number, "expected a token in base64, a space and its rank");
  std::optional<std::string> bytes = decodeBase64(line.substr(0, space));
  if (!bytes || bytes->empty() || bytes->size() > maxTokenBytes)
    return lineError(data.name, number,
                     "the token is not the base64 of 1 to " + std::to_string(maxTokenBytes) + " bytes");
  const std::string_view digits = line.substr(space + 1);
  int32_t rank = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (error != std::errc() || end != digits.data() + digits.size() || rank != data.tokens.size())
    return lineError(data.name, number,
                     "the rank is \"" + shortened(digits) + "\", expected " + std::to_string(data.tokens.size()));
  if (size_t(rank) >= maxTokens)
    return lineError(data.name, number, "the limit is " + std::to_string(maxTokens) + " tokens");
  data.tokens.push(*bytes);
  return {};
}

Status readRanks(std::string_view text, TokenizerData &data) {
  if (text.size() > maxTokenizerBytes)
    return Error{K2RT_INVALID_BUNDLE, data.name,
                 std::to_string(text.size()) + " bytes; the limit is " + std::to_string(maxTokenizerBytes), ""};
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!line.empty())
      if (Status status = readLine(line, number, data); !status)
        return status.takeError();
  }
  BytePairs &pairs = data.pairs;
  pairs.mergesByRank = true;
  pairs.whole.reserve(data.tokens, size_t(data.tokens.size()));
  for (int32_t id = 0; id < data.tokens.size(); ++id)
    if (const int32_t same = pairs.whole.add(id); same >= 0)
      return Error{K2RT_INVALID_BUNDLE, data.name,
                   "rank " + std::to_string(id) + " has the bytes of rank " + std::to_string(same), ""};
  for (int byte = 0; byte < 256; ++byte) {
    const char symbol = char(byte);
    pairs.byteToken[size_t(byte)] = pairs.whole.find(std::string_view(&symbol, 1));
    if (pairs.byteToken[size_t(byte)] < 0)
      return Error{K2RT_INVALID_BUNDLE, data.name, "no token for byte " + std::to_string(byte), ""};
  }
  return {};
}

/// `specials`, whose ids begin with `first`, with the names that tokenizer_config.json gives them.
std::vector<AddedToken> readNames(const JsonFields &root, int64_t first, std::vector<AddedToken> specials) {
  if (!root.has("added_tokens_decoder"))
    return specials;
  const int64_t last = first + int64_t(specials.size()) - 1;
  for (const auto &[key, node] : root.object("added_tokens_decoder").members()) {
    int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < first || id > last)
      node.fail("", "not an id from " + std::to_string(first) + " to " + std::to_string(last) +
                        ", which are the special tokens");
    AddedToken &special = specials[size_t(id - first)];
    special.content = node.string("content", maxTokenBytes);
    special.special = node.flag("special", true);
    if (special.content.empty())
      node.fail("content", "an empty token");
  }
  return specials;
}

Status readSpecials(const TiktokenRules &rules, TokenizerData &data) {
  const int32_t first = data.tokens.size();
  std::vector<AddedToken> specials;
  for (int64_t i = 0; i < rules.reserved; ++i) {
    const int32_t id = first + int32_t(i);
    specials.push_back({id, "<|reserved_token_" + std::to_string(id) + "|>", false, false, false, false, true});
  }
  if (!rules.config.empty()) {
    const auto read = [&](const JsonFields &root) { return readNames(root, first, std::move(specials)); };
    Expected<std::vector<AddedToken>> named = readJsonFields(rules.config, rules.configName, read, "");
    if (!named)
      return named.takeError();
    specials = std::move(*named);
  }
  data.special.assign(size_t(first) + specials.size(), false);
  for (const AddedToken &special : specials) {
    data.tokens.push(special.content);
    data.special[size_t(special.id)] = special.special;
    auto [same, added] = data.ids.emplace(special.content, special.id);
    if (!added)
      return Error{K2RT_INVALID_BUNDLE, rules.configName,
                   "special tokens " + std::to_string(same->second) + " and " + std::to_string(special.id) +
                       " have one name, \"" + shortened(special.content) + "\"",
                   ""};
  }
  Expected<AddedTokens> added = AddedTokens::create(std::move(specials), rules.configName);
  if (!added)
    return added.takeError();
  data.added = std::move(*added);
  return {};
}

} // namespace

Expected<std::unique_ptr<TokenizerData>> readTiktokenData(std::string_view ranks, const std::string &name,
                                                          const TiktokenRules &rules) {
  auto data = std::make_unique<TokenizerData>();
  data->name = name;
  std::string pattern;
  for (const std::string &alternative : rules.patterns)
    pattern += (pattern.empty() ? "" : "|") + alternative;
  if (pattern.empty())
    return Error{K2RT_UNSUPPORTED, name, "the model's family has no pattern for it", "use token ids instead of text"};
  if (Status status = readRanks(ranks, *data); !status)
    return status.takeError();
  if (Status status = readSpecials(rules, *data); !status)
    return status.takeError();
  Expected<Regex> regex = Regex::compile(pattern, rules.place);
  if (!regex)
    return regex.takeError();
  // Only what the pattern matches is text: `tiktoken` leaves the rest out.
  data->preTokenizer.byteLevel = true;
  data->preTokenizer.cuts.emplace_back(Pattern(std::move(*regex)), CutBehavior::removed, /*invert=*/true);
  return data;
}

} // namespace k2c::runtime
