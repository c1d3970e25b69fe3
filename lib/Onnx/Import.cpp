//===- Import.cpp - from a file to the model that it is ---------------------------------===//
//
//   file -> graph (Read.cpp) -> roles of inputs (Roles.cpp) -> terms (Fold.cpp) -> decoder (Decoder.cpp) -> spec and
//   tensors (Spec.cpp) -> what files beside it say (Beside.cpp)
//
//===----------------------------------------------------------------------===//
#include "k2c/Onnx/Import.h"

#include "Beside.h"
#include "ImportGraph.h"
#include "base/Utf8.h"
#include "k2c/Model/Safetensors.h"
#include "k2c/Model/Source.h"
#include <algorithm>
#include <filesystem>

namespace fs = std::filesystem;

namespace k2c {

using namespace onnx;

Expected<std::string> onnxFile(const std::string &source) {
  std::error_code error;
  const fs::path path(source);
  const bool isFolder = fs::is_directory(path, error);
  if (path.extension() == ".onnx" && !isFolder)
    return source;
  if (!isFolder || Checkpoint::hasWeights(source))
    return std::string();
  std::vector<std::string> found;
  for (fs::directory_iterator entries(path, error), end; entries != end && !error; entries.increment(error))
    if (entries->path().extension() == ".onnx")
      found.push_back(entries->path().filename().string());
  const fs::path apart = path / "onnx" / "model.onnx"; // as hubs have it, beside files of fewer bits
  if (found.empty())
    return fs::exists(apart, error) ? apart.string() : std::string();
  const Expected<std::string> stated = statedDecoder(source);
  if (!stated)
    return stated.error();
  if (!stated->empty() && std::find(found.begin(), found.end(), *stated) == found.end())
    return Error{(path / "genai_config.json").string(),
                 "model.decoder.filename is '" + shortened(*stated) + "', which is not in its folder",
                 "export or copy the model again"};
  if (stated->empty() && found.size() > 1)
    return Error{source,
                 "has " + std::to_string(found.size()) + " .onnx files, and no genai_config.json names the decoder",
                 "name one of the files"};
  return (path / (stated->empty() ? found[0] : *stated)).string();
}

std::string folderBeside(const std::string &file) {
  std::error_code error;
  const fs::path folder = fs::absolute(file, error).parent_path(), real = fs::canonical(folder, error);
  const auto has = [&](const fs::path &of, const char *name) { return fs::exists(of / name, error); };
  const bool isApart = real.filename() == "onnx" && !has(real, "config.json") && !has(real, "genai_config.json");
  return (isApart && has(real.parent_path(), "config.json") ? real.parent_path() : folder).string();
}

namespace onnx {

static Expected<ImportedGraph> importAs(const Graph &graph, const InputRoles &roles,
                                        const std::vector<RopeSpec> &stated, FoundParts *parts) {
  Fold fold(graph, roles);
  if (Status status = fold.run(); !status)
    return status.takeError();
  Matcher matcher(fold);
  Expected<Decoder> decoder = findDecoder(matcher, parts);
  if (!decoder)
    return decoder.takeError();
  auto tensors = std::make_shared<OnnxTensors>(graph.files);
  Expected<ModelSpec> spec = specOf(fold, *decoder, stated, *tensors);
  if (!spec)
    return spec.takeError();
  return ImportedGraph{roles, std::move(*spec), std::move(tensors)};
}

Expected<ImportedGraph> importGraph(const Graph &graph, FoundParts *parts) {
  const Expected<std::vector<InputRoles>> roles = rolesOf(graph);
  if (!roles)
    return roles.error();
  const auto count = [](const FoundParts &of) { return of.attentions + of.mlps + of.experts; };
  const std::string folder = folderBeside(graph.path);
  const std::optional<ModelSpec> stated = modelBeside(folder);
  std::vector<RopeSpec> guesses;
  for (const auto &[name, rope] : stated ? stated->ropes : std::map<std::string, RopeSpec>())
    guesses.push_back(rope);
  std::optional<Error> error; // by the roles under which most of the graph is understood
  FoundParts unwanted, &best = parts ? *parts : unwanted;
  for (const InputRoles &some : *roles) {
    FoundParts found;
    Expected<ImportedGraph> model = importAs(graph, some, guesses, &found);
    found.roles = some;
    const bool isBest = model || !error || count(found) > count(best);
    if (isBest)
      best = found;
    if (model) {
      const std::string stem = fs::path(graph.path).stem().string();
      const bool isPlain = stem == "model"; // as exporters call all of theirs
      model->spec.name = isPlain ? nameOfFolder(folder) : printable(stem);
      if (Status status = addWhatIsBeside(model->spec, folder, stated); !status)
        return status.takeError();
      return model;
    }
    if (isBest)
      error = model.error();
  }
  return *error;
}

} // namespace onnx

Expected<OnnxModel> importOnnx(const std::string &path) {
  const Expected<Graph> graph = readGraph(path);
  if (!graph)
    return graph.error();
  Expected<ImportedGraph> model = importGraph(*graph);
  if (!model)
    return model.takeError();
  return OnnxModel{std::move(model->spec), std::move(model->tensors), folderBeside(path)};
}

Expected<std::vector<std::string>> filesOfOnnx(const std::string &path) {
  const Expected<Graph> graph = readGraph(path);
  if (!graph)
    return graph.error();
  std::vector<std::string> out;
  for (const Files::File &file : graph->files->files)
    out.push_back(file.path);
  return out;
}

Expected<ModelSpec> loadSourceToPlan(const std::string &source) {
  const Expected<std::string> found = resolveSource(source);
  const Expected<std::string> file = found ? onnxFile(*found) : std::string();
  if (!file)
    return file.error();
  if (file->empty())
    return loadModelToPlan(source);
  Expected<OnnxModel> model = importOnnx(*file);
  if (!model)
    return model.takeError();
  return std::move(model->spec);
}

} // namespace k2c
