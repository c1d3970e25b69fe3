//===- ExportCheckpoint.cpp - a decoder as a checkpoint -------------------------===//
//
//   importOnnx        the decoder of the graph, and its tensors
//   publishedForm     the family that it is of, and the names that this family gives to tensors
//   writeCheckpoint   tensors; beside them config.json, generation_config.json and the tokenizer
//
//===----------------------------------------------------------------------===//
#include "ExportFolder.h"
#include "Stages.h"

#include "base/Json.h"
#include "base/JsonText.h"
#include "k2c/Model/PublishedForm.h"
#include "k2c/Model/Rope.h"
#include "k2c/Model/Source.h"
#include "k2c/Onnx/Import.h"
#include "k2c/Weights/WriteCheckpoint.h"
#include <filesystem>

namespace fs = std::filesystem;
using nlohmann::json;

namespace k2c {

namespace {

/// The object in a file of the folder; an empty one where there is no such file. Of config.json the importer has read
/// what concerns it, so that it is an object.
Expected<json> objectBeside(const std::string &folder, const char *name) {
  const fs::path path = fs::path(folder) / name;
  std::error_code error;
  if (!fs::exists(path, error))
    return json::object();
  Expected<JsonDocument> document = readJsonFile(path.string());
  if (!document)
    return document.takeError();
  return document->root();
}

/// What generates beside the file, with the ids that the model ends a text with; empty: there is nothing to say.
Expected<json> generationConfig(const OnnxModel &model) {
  Expected<json> generation = objectBeside(model.folder, "generation_config.json");
  if (!generation)
    return generation;
  const std::vector<int64_t> &eos = model.spec.eos;
  generation->erase("eos_token_id");
  if (!eos.empty())
    (*generation)["eos_token_id"] = eos.size() == 1 ? json(eos.front()) : json(eos);
  if (model.spec.bos)
    (*generation)["bos_token_id"] = *model.spec.bos;
  return generation;
}

Status writeFiles(const OnnxModel &model, const PublishedForm &form, const ExportOptions &options,
                  const BundleFolder &folder) {
  const Expected<json> generation = generationConfig(model);
  if (!generation)
    return generation.error();
  if (Status status = copyTokenizerFiles(model.folder, folder.path()); !status)
    return status;
  if (!generation->empty())
    if (Status status = folder.write("generation_config.json", jsonText(*generation, 2) + "\n"); !status)
      return status;
  WriteCheckpointOptions write;
  if (options.progress)
    write.progress = [&](int64_t done, int64_t total) { options.progress("weights", done, total); };
  const std::vector<WrittenTensor> tensors = writtenTensors(form.spec, model.spec);
  if (Status status = writeCheckpoint(folder.path(), tensors, *model.tensors, write); !status)
    return status;
  return folder.write("config.json", form.config);
}

/// The .onnx file of the source.
Expected<std::string> fileOf(const std::string &source) {
  const Expected<std::string> found = resolveSource(source);
  Expected<std::string> file = found ? onnxFile(*found) : Expected<std::string>(found.error());
  if (file && file->empty())
    return Error{source, "is no .onnx file, nor the folder of one",
                 "name the file; a checkpoint needs no export to hf"};
  return file;
}

} // namespace

Status exportCheckpointFolder(const ExportOptions &options) {
  const Expected<std::string> file = fileOf(options.source);
  if (!file)
    return file.error();
  if (Status status = checkNoIgnoredKeys(options.ignoreKeys, *file); !status)
    return status;
  const Expected<OnnxModel> model = importOnnx(*file);
  if (!model)
    return model.error();
  if (Status status = checkWiden(options.widen, model->spec, options.source); !status)
    return status;
  const Expected<json> beside = objectBeside(model->folder, "config.json");
  if (!beside)
    return beside.error();
  const auto type = beside->find("model_type");
  const bool isStated = type != beside->end() && type->is_string();
  const Expected<PublishedForm> form = publishedForm(model->spec, isStated ? type->get<std::string>() : "");
  if (!form)
    return form.error();
  if (options.note)
    options.note("the decoder is described as model_type " + form->spec.modelType);
  if (options.note && model->spec.maxPosition == maxRopePositions)
    options.note("no file beside the graph says its longest sequence: max_position_embeddings is " +
                 std::to_string(maxRopePositions));
  return writeExportFolder(options, "hf", *file,
                           [&](const BundleFolder &folder) { return writeFiles(*model, *form, options, folder); });
}

} // namespace k2c
