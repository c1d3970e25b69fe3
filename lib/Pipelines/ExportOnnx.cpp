//===- ExportOnnx.cpp - A checkpoint as ONNX --------------------------------===//
#include "ExportFolder.h"
#include "Stages.h"

#include "k2c/Model/CheckWeights.h"
#include "k2c/Model/Source.h"
#include "k2c/Onnx/Export.h"
#include "k2c/Onnx/Import.h"
#include "k2c/Weights/CheckpointTensors.h"

namespace k2c {

namespace {

struct ExportedModel {
  ModelSpec spec;
  CheckpointTensors tensors;
  std::string folder;
};

/// The checkpoint that the source is, its tensors checked.
Expected<ExportedModel> exportedModel(const ExportOptions &options) {
  Expected<std::string> folder = resolveSource(options.source);
  const Expected<std::string> onnx = folder ? onnxFile(*folder) : Expected<std::string>(folder.error());
  if (!onnx)
    return onnx.error();
  if (!onnx->empty())
    return Error{*onnx, "is an ONNX file already", "name a checkpoint"};
  LoadOptions load;
  load.ignoreKeys = options.ignoreKeys;
  Expected<ModelSpec> spec = loadModelSpec(*folder, load);
  if (!spec)
    return spec.takeError();
  if (Status status = checkWiden(options.widen, *spec, options.source); !status)
    return status.takeError();
  if (!Checkpoint::hasWeights(*folder))
    return Error{options.source, "has no weights, and an export is of weights",
                 "name a folder with the safetensors files of its config.json"};
  Expected<Checkpoint> checkpoint = Checkpoint::open(*folder);
  if (!checkpoint)
    return checkpoint.takeError();
  if (Status status = checkWeights(*spec, *checkpoint); !status)
    return status.takeError();
  return ExportedModel{std::move(*spec), CheckpointTensors(std::move(*checkpoint)), std::move(*folder)};
}

Status writeExport(const ExportedModel &model, const ExportOptions &options, const std::string &folder) {
  OnnxExport graph{model.spec, model.tensors, options.version};
  if (options.progress)
    graph.progress = [&](int64_t done, int64_t total) { options.progress("weights", done, total); };
  if (Status status = exportOnnx(graph, folder); !status)
    return status;
  if (Status status = copyTokenizerFiles(model.folder, folder); !status)
    return status;
  return copyConfigFiles(model.folder, folder);
}

} // namespace

Status exportOnnxFolder(const ExportOptions &options) {
  const Expected<ExportedModel> model = exportedModel(options);
  if (!model)
    return model.error();
  return writeExportFolder(options, "onnx", model->folder,
                           [&](const BundleFolder &folder) { return writeExport(*model, options, folder.path()); });
}

} // namespace k2c
