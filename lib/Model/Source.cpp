//===- Source.cpp - What a user's SOURCE names --------------------------------===//

#include "k2c/Model/Source.h"

#include "base/Json.h"
#include <cstdlib>
#include <filesystem>
#include <optional>

namespace fs = std::filesystem;
using namespace k2c;

/// The value of an environment variable that names a folder, ~ as the home folder; "": it is not set.
static std::string folderOf(const char *variable) {
  const char *const value = std::getenv(variable), *const home = std::getenv("HOME");
  const std::string text = value ? value : "";
  const bool isHome = text == "~" || text.rfind("~/", 0) == 0;
  return isHome && home ? home + text.substr(1) : text;
}

/// The folder of the Hugging Face cache that holds models, as its own library finds it: $HF_HUB_CACHE, its older name,
/// or hub in $HF_HOME.
static fs::path hubFolder() {
  for (const char *variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string hub = folderOf(variable); !hub.empty())
      return hub;
  if (const std::string home = folderOf("HF_HOME"); !home.empty())
    return fs::path(home) / "hub";
  return fs::path(folderOf("HOME")) / ".cache/huggingface/hub";
}

/// The snapshot that refs/main names in `model`, a folder models--org--name; "": there is none.
static std::string snapshotOf(const fs::path &model) {
  Expected<std::string> revision = readTextFile((model / "refs/main").string(), 256);
  if (!revision)
    return "";
  std::string text = revision->substr(0, revision->find_last_not_of(" \n\r") + 1);
  std::error_code error;
  fs::path snapshot = model / "snapshots" / text;
  return text.find('/') == std::string::npos && fs::is_directory(snapshot, error) ? snapshot.string() : "";
}

/// The folder models--org--name of org/name; none for another text.
static std::optional<fs::path> hubModel(const std::string &name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos || slash == 0 || name.find('/', slash + 1) != std::string::npos)
    return std::nullopt;
  return hubFolder() / ("models--" + name.substr(0, slash) + "--" + name.substr(slash + 1));
}

Expected<std::string> k2c::resolveSource(const std::string &source) {
  std::error_code error;
  fs::path path(source);
  if (path.extension() == ".gguf")
    return Error{source, "is a GGUF file, which loses the published layout",
                 "compile the safetensors checkpoint it was made from"};
  if (fs::exists(path, error)) {
    const std::string snapshot = fs::exists(path / "config.json", error) ? "" : snapshotOf(path);
    return snapshot.empty() ? source : snapshot;
  }
  if (path.extension() == ".onnx")
    return Error{source, "no such file", "name the .onnx file of a model; k2c downloads nothing"};
  const std::optional<fs::path> model = hubModel(source);
  if (!model)
    return Error{source, "no such file or folder", "give a folder with config.json; k2c downloads nothing"};
  if (std::string snapshot = snapshotOf(*model); !snapshot.empty())
    return snapshot;
  return Error{source, "no such file or folder, and the Hugging Face cache has no snapshot in " + model->string(),
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
  if (!found && isPublishedOnHub(source))
    return loadPublishedModel(source);
  if (!found)
    return found.takeError();
  LoadOptions options;
  options.purpose = LoadPurpose::Plan;
  return loadModelSpec(*found, options);
}
