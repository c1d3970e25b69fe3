//===- CheckTokenizer.cpp - The tokenizer of a checkpoint folder ------------===//
#include "k2rt/CheckTokenizer.h"
#include "Stages.h"
#include "base/Json.h"
#include <filesystem>

namespace fs = std::filesystem;

namespace k2c {

/// A published tokenizer.json is some 20 MB at most.
static constexpr size_t maxTokenizerBytes = size_t(256) << 20;

/// The text of a checkpoint's file; no value: there is none.
static Expected<std::optional<std::string>> readOptionalFile(const fs::path &path) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error)))
    return std::optional<std::string>();
  if (!fs::is_regular_file(path, error))
    return Error{path.string(), "not a regular file", "a checkpoint's files are regular files or links to them"};
  Expected<std::string> text = readTextFile(path.string(), maxTokenizerBytes);
  if (!text)
    return text.takeError();
  return std::optional<std::string>(std::move(*text));
}

/// What reading a tokenizer gave. What this build's tokenizer cannot do is the program's to refuse, of text only: token
/// ids need none.
static Expected<std::optional<std::string>> judged(Status tokenizer, const std::string &remedy) {
  if (tokenizer)
    return std::optional<std::string>();
  Error why = tokenizer.takeError();
  if (why.code == K2RT_UNSUPPORTED)
    return std::optional(Error{why.where, why.message, "the program takes and gives token ids, no text"}.text());
  return Error{why.where, why.message, remedy + ": the program then takes ids only"};
}

Expected<std::optional<std::string>> checkTokenizer(const std::string &folder, const TiktokenSpec &tiktoken) {
  const fs::path json = fs::path(folder) / "tokenizer.json", ranks = fs::path(folder) / "tiktoken.model",
                 names = fs::path(folder) / "tokenizer_config.json";
  Expected<std::optional<std::string>> text = readOptionalFile(json);
  if (!text)
    return text.takeError();
  if (*text)
    return judged(runtime::checkTokenizer(**text, json.string()), "download tokenizer.json again, or move it away");
  text = readOptionalFile(ranks);
  if (!text)
    return text.takeError();
  if (!*text)
    return std::optional<std::string>();
  Expected<std::optional<std::string>> config = readOptionalFile(names);
  if (!config)
    return config.takeError();
  runtime::TiktokenRules rules{tiktoken.patterns, tiktoken.reserved, "", config->value_or(""), names.string()};
  return judged(runtime::checkTiktoken(**text, ranks.string(), rules),
                "download the file again, or move tiktoken.model away");
}

} // namespace k2c
