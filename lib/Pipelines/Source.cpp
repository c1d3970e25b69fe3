//===- Source.cpp - Where a checkpoint lies, and its tokenizer --------------===//
#include "Stages.h"
#include "k2c/Support/Json.h"
#include "serve/Tokenizer.h"
#include <filesystem>

namespace fs = std::filesystem;

namespace k2c {

/// A published tokenizer.json is some 20 MB at most.
static constexpr size_t mostTokenizerBytes = size_t(256) << 20;

/// A folder of the Hugging Face cache: $HF_HOME/hub/models--org--name/snapshots/<the one refs/main names>.
static std::string cachedSnapshot(const std::string &name) {
  size_t slash = name.find('/');
  if (slash == std::string::npos || name.find('/', slash + 1) != std::string::npos)
    return "";
  const char *home = std::getenv("HF_HOME");
  fs::path hub = home ? fs::path(home) / "hub"
                      : fs::path(std::getenv("HOME") ? std::getenv("HOME") : "") / ".cache/huggingface/hub";
  fs::path model = hub / ("models--" + name.substr(0, slash) + "--" + name.substr(slash + 1));
  Expected<std::string> revision = readTextFile((model / "refs/main").string(), 256);
  if (!revision)
    return "";
  std::string text = revision->substr(0, revision->find_last_not_of(" \n\r") + 1);
  std::error_code error;
  fs::path snapshot = model / "snapshots" / text;
  return text.find('/') == std::string::npos && fs::is_directory(snapshot, error) ? snapshot.string() : "";
}

Expected<std::string> resolveSource(const std::string &source) {
  std::error_code error;
  fs::path path(source);
  if (path.extension() == ".gguf")
    return Error{source, "is a GGUF file, which loses the published layout",
                 "compile the safetensors checkpoint it was made from"};
  if (path.extension() == ".onnx")
    return Error{source, "importing ONNX is not in this build", "compile the safetensors checkpoint"};
  if (fs::exists(path, error))
    return source;
  if (std::string snapshot = cachedSnapshot(source); !snapshot.empty())
    return snapshot;
  return Error{source, "no such file or folder, and not in the Hugging Face cache",
               "give a folder with config.json; k2c downloads nothing"};
}

/// The text of a checkpoint's file; no value: there is none.
static Expected<std::optional<std::string>> readOptionalFile(const fs::path &path) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error)))
    return std::optional<std::string>();
  if (!fs::is_regular_file(path, error))
    return Error{path.string(), "not a regular file", "a checkpoint's files are regular files or links to them"};
  Expected<std::string> text = readTextFile(path.string(), mostTokenizerBytes);
  if (!text)
    return text.takeError();
  return std::optional<std::string>(std::move(*text));
}

/// What reading a tokenizer gave, as a status. What this build's tokenizer cannot do is the program's to refuse, of
/// text only: token ids need none.
static Status damage(k2rt::Result<k2rt::Tokenizer> tokenizer, const std::string &remedy) {
  if (tokenizer || tokenizer.error().code == K2RT_UNSUPPORTED)
    return {};
  k2rt::Error why = tokenizer.takeError();
  return Error{why.place, why.message, remedy + ": the program then takes ids only"};
}

Status checkTokenizer(const std::string &folder, const TiktokenSpec &tiktoken) {
  const fs::path json = fs::path(folder) / "tokenizer.json", ranks = fs::path(folder) / "tiktoken.model",
                 names = fs::path(folder) / "tokenizer_config.json";
  Expected<std::optional<std::string>> text = readOptionalFile(json);
  if (!text)
    return text.takeError();
  if (*text)
    return damage(k2rt::Tokenizer::parse(**text, json.string()), "download tokenizer.json again, or move it away");
  text = readOptionalFile(ranks);
  if (!text)
    return text.takeError();
  if (!*text)
    return {};
  Expected<std::optional<std::string>> config = readOptionalFile(names);
  if (!config)
    return config.takeError();
  k2rt::TiktokenRules rules{tiktoken.patterns, tiktoken.reserved, "", config->value_or(""), names.string()};
  return damage(k2rt::Tokenizer::parseRanks(**text, ranks.string(), rules),
                "download the file again, or move tiktoken.model away");
}

} // namespace k2c
