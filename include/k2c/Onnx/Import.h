//===- Import.h - an ONNX file as the model that it is ---------------------------===//
//
// A decoder graph becomes a ModelSpec and the tensors that its weight families name, so that planning, packing and
// compiling go on as from a checkpoint (docs/Onnx.md).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_ONNX_IMPORT_H
#define K2C_ONNX_IMPORT_H

#include "k2c/Model/ModelSpec.h"
#include "k2c/Weights/TensorSource.h"
#include <memory>

namespace k2c {

struct OnnxModel {
  ModelSpec spec; ///< weights have the types that the file stores
  std::shared_ptr<const TensorSource> tensors;
  std::string folder; ///< folderBeside
};

/// The .onnx file that `source` names: itself, or of a folder without safetensors files the one that genai_config.json
/// names, or the only one, or onnx/model.onnx. "": it names none. Error: a folder has several, or lacks the one that is
/// named.
Expected<std::string> onnxFile(const std::string &source);

/// The folder of what is beside a .onnx file: its own, or that above it where this is called onnx, as hubs have it, and
/// the config.json is there.
std::string folderBeside(const std::string &file);

/// Reads a .onnx file, with what genai_config.json, config.json and generation_config.json beside it say of its model.
/// Errors name the node, op and operator set where another thing was expected.
Expected<OnnxModel> importOnnx(const std::string &path);

/// The files that a .onnx file's tensors lie in, itself the first. Error: as importOnnx's, of the graph alone.
Expected<std::vector<std::string>> filesOfOnnx(const std::string &path);

/// The description of a model, read for planning: of the .onnx file that `source` names, or else as loadModelToPlan.
Expected<ModelSpec> loadSourceToPlan(const std::string &source);

} // namespace k2c

#endif // K2C_ONNX_IMPORT_H
