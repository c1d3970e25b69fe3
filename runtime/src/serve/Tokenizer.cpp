// Encoding, decoding and the stream, over a checked TokenizerData.
#include "serve/Tokenizer.h"
#include "serve/TokenizerData.h"
#include "serve/Utf8.h"
#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace k2rt {

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerData> data) : data(std::move(data)) {}
Tokenizer::Tokenizer(Tokenizer &&) noexcept = default;
Tokenizer &Tokenizer::operator=(Tokenizer &&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::parse(std::string_view json, const std::string &name) {
  Result<std::unique_ptr<TokenizerData>> data = readTokenizerData(json, name);
  if (!data)
    return data.takeError();
  return Tokenizer(std::move(*data));
}

Result<Tokenizer> Tokenizer::load(const std::string &path) {
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

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, bool special) const {
  if (text.size() > size_t(INT32_MAX))
    return Error{K2RT_INVALID_ARGUMENT, "text",
                 std::to_string(text.size()) + " bytes; the limit is " + std::to_string(INT32_MAX), ""};
  std::string clean;
  clean.reserve(text.size());
  appendWellFormed(text, false, clean);

  std::vector<int32_t> ids;
  if (special)
    ids = data->before;
  BytePairs::Scratch scratch;
  Words words;
  for (const Segment &segment : data->added.cut(clean)) {
    if (segment.id >= 0) {
      ids.push_back(segment.id);
      continue;
    }
    words.list.clear();
    words.owned.clear();
    if (Status status = data->preTokenizer.apply(segment.text, words); !status)
      return status.takeError();
    uint8_t missing = 0;
    for (std::string_view word : words.list)
      if (!data->pairs.encode(word, ids, scratch, missing))
        return Error{K2RT_INVALID_BUNDLE, data->name,
                     "no token for byte " + std::to_string(missing) + ", which the text contains", ""};
  }
  if (special)
    ids.insert(ids.end(), data->after.begin(), data->after.end());
  return ids;
}

int32_t Tokenizer::size() const { return int32_t(data->begin.size()) - 1; }

std::string_view Tokenizer::bytes(int32_t id) const {
  return id < 0 || id >= size() ? std::string_view() : data->bytes(id);
}

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
  if (skipSpecial && tokenizer->isSpecial(id))
    return "";
  pending += tokenizer->bytes(id);
  std::string text;
  pending.erase(0, appendWellFormed(pending, true, text));
  return text;
}

std::string Tokenizer::Stream::finish() {
  std::string text;
  appendWellFormed(pending, false, text);
  pending.clear();
  return text;
}

} // namespace k2rt
