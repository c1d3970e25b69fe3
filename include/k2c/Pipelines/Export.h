//===- Export.h - From a model to a folder of another format --------------===//
#ifndef K2C_PIPELINES_EXPORT_H
#define K2C_PIPELINES_EXPORT_H

#include "base/Error.h"
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace k2c {

/// The command line of `k2c export`.
struct ExportOptions {
  std::string source;                  ///< checkpoint folder, or org/name in $HF_HOME; a .onnx file or its folder
  std::string output;                  ///< folder
  std::vector<std::string> ignoreKeys; ///< of the config.json of a checkpoint
  bool widen = false;                  ///< weights of few bits of an ONNX file become f32
  bool force = false;                  ///< replaces a folder of other things
  std::string version;                 ///< of k2c, which files name as their producer
  /// Called with (stage, done, total) now and then; null: silent.
  std::function<void(const std::string &, int64_t, int64_t)> progress;
  std::function<void(const std::string &)> note; ///< takes what a user should know; null: silent
};

// Each writes a folder, which is assembled in OUTPUT.export.partial and takes its place at once. Error: OUTPUT is a
// folder of other things, or contains the source.

/// Writes the checkpoint `source` as ONNX, with its files that say what no graph says. Error: as exportOnnx's
/// (k2c/Onnx/Export.h); the source has no weights, or is no checkpoint.
Status exportOnnxFolder(const ExportOptions &options);

/// Writes the decoder of a .onnx file as a checkpoint: config.json of the family that it is of, safetensors files and
/// what of a tokenizer lies beside it. Error: the source is none, is not understood, or is the model of no family
/// (k2c/Model/PublishedForm.h).
Status exportCheckpointFolder(const ExportOptions &options);

} // namespace k2c

#endif // K2C_PIPELINES_EXPORT_H
