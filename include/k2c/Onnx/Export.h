//===- Export.h - a model as an ONNX file -------------------------------------------===//
#ifndef K2C_ONNX_EXPORT_H
#define K2C_ONNX_EXPORT_H

#include "k2c/Model/ModelSpec.h"
#include "k2c/Weights/TensorSource.h"
#include <functional>
#include <string>

namespace k2c {

/// A model that is to be written as ONNX.
struct OnnxExport {
  const ModelSpec &spec;
  const TensorSource &tensors;
  std::string version;                                            ///< of k2c, the producer that the file names
  std::function<void(int64_t done, int64_t total)> progress = {}; ///< of bytes; may be null
};

/// Writes model.onnx, model.onnx.data and genai_config.json to `folder`, which has none of them: a graph of float32
/// that ONNX Runtime runs on processors, with the inputs and outputs of onnxruntime-genai. Weights are streamed.
/// Error: what the graph cannot say, with the place in config.json; the folder's file system has too little space; a
/// file cannot be read or written.
Status exportOnnx(const OnnxExport &model, const std::string &folder);

} // namespace k2c

#endif // K2C_ONNX_EXPORT_H
