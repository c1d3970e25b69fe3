// Encoding, decoding and the stream, over a checked TokenizerData.
#include "text/Tokenizer.h"
#include "base/Utf8.h"
#include "text/TokenizerData.h"
#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace k2c::runtime {

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerData> data) : data(std::move(data)) {}
Tokenizer::Tokenizer(Tokenizer &&) noexcept = default;
Tokenizer &Tokenizer::operator=(Tokenizer &&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Expected<Tokenizer> Tokenizer::parse(std::string_view json, const std::string &name) {
  Expected<std::unique_ptr<TokenizerData>> data = readTokenizerData(json, name);
  if (!data)
    return data.takeError();
  return Tokenizer(std::move(*data));
}

Expected<Tokenizer> Tokenizer::parseRanks(std::string_view ranks, const std::string &name, const TiktokenRules &rules) {
  Expected<std::unique_ptr<TokenizerData>> data = readTiktokenData(ranks, name, rules);
  if (!data)
    return data.takeError();
  return Tokenizer(std::move(*data));
}

Expected<Tokenizer> Tokenizer::load(const std::string &path) {
  std::unique_ptr<FILE, int (*)(FILE *)> file(fopen(path.c_str(), "rb"), fclose);
  if (!file)
    return systemError(path, "cannot be opened", errno);
  std::error_code unknownSize;
  const uintmax_t size = std::filesystem::file_size(path, unknownSize);
  std::string content;
  if (!unknownSize && size <= maxTokenizerBytes)
    content.reserve(size);
  char buffer[1 << 16];
  // One byte beyond the limit is enough for the reader to refuse.
  while (content.size() <= maxTokenizerBytes) {
    const size_t count = fread(buffer, 1, sizeof buffer, file.get());
    content.append(buffer, count);
    if (count < sizeof buffer)
      break;
  }
  if (ferror(file.get()))
    return systemError(path, "cannot be read", errno);
  return parse(content, path);
}

namespace {

/// Appends the tokens of stretches of text, with working memory that is used again and again.
class Encoder {
public:
  Encoder(const TokenizerData &data, std::vector<int32_t> &ids) : data(data), ids(ids) {}

  /// `begins`: the stretch stands at the beginning of the text.
  Status stretch(std::string_view text, bool begins) {
    std::string normalized(text);
    if (Status status = data.normalizer.apply(normalized); !status)
      return status.takeError();
    for (const Segment &segment : data.added.cutNormalized(normalized))
      if (segment.id >= 0)
        ids.push_back(segment.id);
      else if (Status status = words(segment.text, begins && segment.text.data() == normalized.data()); !status)
        return status.takeError();
    return {};
  }

private:
  Status words(std::string_view text, bool begins) {
    found.list.clear();
    found.owned.clear();
    if (Status status = data.preTokenizer.apply(text, begins, found); !status)
      return status.takeError();
    std::string_view missing;
    for (std::string_view word : found.list)
      if (!data.pairs.encode(word, ids, scratch, missing))
        return Error{K2RT_INVALID_BUNDLE, data.name,
                     data.pairs.characters
                         ? "no token for \"" + shortened(missing) + "\", which the text contains"
                         : "no token for byte " + std::to_string(uint8_t(missing[0])) + ", which the text contains",
                     ""};
    return {};
  }

  const TokenizerData &data;
  std::vector<int32_t> &ids;
  BytePairs::Scratch scratch;
  Words found;
};

} // namespace

Expected<std::vector<int32_t>> Tokenizer::encode(std::string_view text, bool special) const {
  if (text.size() > size_t(INT32_MAX))
    return Error{K2RT_INVALID_ARGUMENT, "text",
                 std::to_string(text.size()) + " bytes; the limit is " + std::to_string(INT32_MAX), ""};
  std::string clean;
  clean.reserve(text.size());
  appendWellFormed(text, false, clean);

  std::vector<int32_t> ids;
  if (special)
    ids = data->before;
  Encoder encoder(*data, ids);
  for (const Segment &segment : data->added.cutRaw(clean))
    if (segment.id >= 0)
      ids.push_back(segment.id);
    else if (Status status = encoder.stretch(segment.text, segment.text.data() == clean.data()); !status)
      return status.takeError();
  if (special)
    ids.insert(ids.end(), data->after.begin(), data->after.end());
  return ids;
}

int32_t Tokenizer::size() const { return data->tokens.size(); }

bool Tokenizer::isSpecial(int32_t id) const { return id >= 0 && id < size() && data->special[size_t(id)]; }

int32_t Tokenizer::find(std::string_view spelling) const {
  auto found = data->ids.find(std::string(spelling));
  return found == data->ids.end() ? -1 : found->second;
}

std::string Tokenizer::decode(const std::vector<int32_t> &ids, bool skipSpecial) const {
  Stream stream(*this, skipSpecial);
  std::string text;
  for (int32_t id : ids)
    text += stream.push(id);
  return text + stream.finish();
}

std::string Tokenizer::Stream::push(int32_t id) {
  const bool names = id >= 0 && id < tokenizer->size();
  if (!names || (skipSpecial && tokenizer->isSpecial(id)))
    return "";
  return tokenizer->data->decoder.push(tokenizer->data->tokens[id], state);
}

std::string Tokenizer::Stream::finish() { return tokenizer->data->decoder.finish(state); }

} // namespace k2c::runtime
