//===- Source.cpp - What a user's SOURCE names --------------------------------===//

#include "k2c/Model/Source.h"

#include "base/Json.h"
#include <cstdlib>
#include <filesystem>

namespace fs = std::filesystem;
using namespace k2c;

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

Expected<std::string> k2c::resolveSource(const std::string &source) {
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

/// Whether `source` cannot be a published configuration's name.
static bool isPath(const std::string &source) {
  std::error_code error;
  const fs::path extension = fs::path(source).extension();
  return source.find('/') != std::string::npos || extension == ".json" || extension == ".gguf" ||
         extension == ".onnx" || fs::exists(source, error);
}

Expected<ModelSpec> k2c::loadModelToPlan(const std::string &source) {
  if (!isPath(source))
    return loadPublishedModel(source);
  Expected<std::string> found = resolveSource(source);
  if (!found)
    return found.takeError();
  LoadOptions options;
  options.purpose = LoadPurpose::Plan;
  return loadModelSpec(*found, options);
}
