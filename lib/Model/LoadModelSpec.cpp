//===- LoadModelSpec.cpp - a checkpoint folder to ModelSpec ---------------===//
//
// model_type chooses a families file, by which ReadConfig.cpp reads config.json. Beside that file stand the ids of
// generation_config.json, which override its own, and the folder's name, which may be a snapshot in the cache of
// Hugging Face. Which families there are depends on the purpose: all can be planned, some compiled.
//
//===----------------------------------------------------------------------===//

#include "ReadConfig.h"
#include "base/JsonText.h"
#include "base/Utf8.h"
#include "k2c/Support/Join.h"

#include <algorithm>
#include <filesystem>

using namespace k2c;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

std::string inOrder(std::vector<std::string> words) {
  std::sort(words.begin(), words.end());
  return joined(words);
}

bool isFor(LoadPurpose purpose, const Family &family, const std::vector<std::string> &compiled) {
  return purpose == LoadPurpose::Plan || std::find(compiled.begin(), compiled.end(), family.name) != compiled.end();
}

/// Finds the family of model_type and checks `architectures` against it.
Expected<const Family *> chooseFamily(ConfigFile &config, const std::vector<Family> &families, LoadPurpose purpose) {
  const Expected<std::vector<std::string>> &compiled = compiledFamilies();
  if (!compiled)
    return compiled.error();
  const json *type = config.get("/model_type");
  const json *architectures = config.getNonNull("/architectures");
  const Family *chosen = nullptr;
  for (const Family &family : families)
    for (const std::string &name : family.modelTypes)
      if (type && *type == name)
        chosen = &family;
  if (!type)
    return Error{config.file(), "key 'model_type' is missing",
                 "known model types: " + inOrder(knownModelTypes(purpose))};
  if (!chosen)
    return config.error("/model_type", "model_type " + shortenedJson(*type) + " is not in this build",
                        "known model types: " + inOrder(knownModelTypes(purpose)));
  if (!isFor(purpose, *chosen, *compiled))
    return config.error("/model_type",
                        "model_type " + shortenedJson(*type) + " can be planned, not compiled, in this build",
                        "model types that compile: " + inOrder(knownModelTypes(purpose)));
  if (!architectures)
    return chosen;
  if (architectures->is_array())
    for (const json &name : *architectures)
      for (const std::string &served : chosen->architectures)
        if (name == served)
          return chosen;
  return config.error("/architectures",
                      "architectures " + shortenedJson(*architectures) + " do not belong to model_type " +
                          shortenedJson(*type),
                      "supported: " + inOrder(chosen->architectures));
}

/// generation_config.json beside the config overrides the ids.
Status readGenerationConfig(ModelSpec &spec, const std::string &path) {
  std::error_code ignored;
  if (fs::symlink_status(path, ignored).type() == fs::file_type::not_found)
    return Status::success();
  Expected<JsonDocument> document = readJsonFile(path);
  if (!document)
    return document.takeError();
  if (!document->root().is_object())
    return Error{path, "is not a JSON object", ""};
  ConfigFile config(std::move(*document), {});
  if (config.getNonNull("/eos_token_id")) {
    Expected<std::vector<int64_t>> eos = readIds(config, "/eos_token_id", spec.vocab);
    if (!eos)
      return eos.takeError();
    spec.eos = std::move(*eos);
  }
  return Status::success();
}

/// The whole description but for what lies beside config.json.
Expected<ModelSpec> readDocument(JsonDocument document, const LoadOptions &options) {
  if (!document.root().is_object())
    return Error{document.file(), "is not a JSON object", "name the config.json of a model"};
  auto type = document.root().find("model_type");
  const bool isNamed = type != document.root().end() && type->is_string();
  const Expected<std::vector<Family>> &families =
      isNamed ? builtInFamiliesOf(type->get<std::string>()) : builtInFamilies();
  if (!families)
    return families.error();
  const Expected<HarmlessKeys> &harmless = builtInHarmlessKeys();
  if (!harmless)
    return harmless.error();
  ConfigFile config(std::move(document), options.ignoreKeys);
  Expected<const Family *> family = chooseFamily(config, *families, options.purpose);
  if (!family)
    return family.takeError();
  return readConfig(config, **family, *harmless, options.purpose);
}

} // namespace

std::string k2c::nameOfFolder(const std::string &folder) {
  fs::path normal = fs::absolute(folder).lexically_normal();
  if (!normal.has_filename())
    normal = normal.parent_path();
  std::string repository = normal.parent_path().parent_path().filename().string();
  size_t between = repository.find("--", 8);
  if (normal.parent_path().filename() != "snapshots" || repository.compare(0, 8, "models--") != 0 ||
      between == std::string::npos)
    return printable(normal.filename().string());
  return printable(repository.substr(8, between - 8) + "/" + repository.substr(between + 2));
}

Expected<ModelSpec> k2c::parseModelSpec(std::string text, const std::string &file, const LoadOptions &options) {
  Expected<JsonDocument> document = parseJson(std::move(text), file);
  if (!document)
    return document.takeError();
  return readDocument(std::move(*document), options);
}

Expected<ModelSpec> k2c::loadModelSpec(const std::string &path, const LoadOptions &options) {
  std::error_code ignored;
  bool isFolder = fs::is_directory(path, ignored);
  if (fs::path(path).extension() == ".gguf")
    return Error{path, "GGUF files are not read", "use the model's safetensors checkpoint"};
  fs::path file = isFolder ? fs::path(path) / "config.json" : fs::path(path);
  if (!fs::exists(fs::symlink_status(file, ignored)))
    return Error{path, isFolder ? "there is no config.json" : "does not exist",
                 "name a checkpoint folder or a config.json"};
  Expected<JsonDocument> document = readJsonFile(file.string());
  if (!document)
    return document.takeError();
  Expected<ModelSpec> spec = readDocument(std::move(*document), options);
  if (!spec)
    return spec;
  fs::path folder = fs::absolute(file, ignored).parent_path();
  spec->name = nameOfFolder(folder.string());
  if (isFolder || file.filename() == "config.json")
    if (Status status = readGenerationConfig(*spec, (folder / "generation_config.json").string()); !status)
      return status.takeError();
  return spec;
}

std::vector<std::string> k2c::knownModelTypes(LoadPurpose purpose) {
  std::vector<std::string> types;
  const Expected<std::vector<Family>> &families = builtInFamilies();
  const Expected<std::vector<std::string>> &compiled = compiledFamilies();
  if (families && compiled)
    for (const Family &family : *families)
      if (isFor(purpose, family, *compiled))
        types.insert(types.end(), family.modelTypes.begin(), family.modelTypes.end());
  std::sort(types.begin(), types.end());
  return types;
}

bool k2c::canCompile(const ModelSpec &spec) {
  if (spec.family == onnxFamily)
    return true;
  const Expected<std::vector<std::string>> &compiled = compiledFamilies();
  return compiled && std::find(compiled->begin(), compiled->end(), spec.family) != compiled->end();
}
