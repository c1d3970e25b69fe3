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
  std::string source; ///< checkpoint folder, or org/name in $HF_HOME
  std::string output; ///< folder
  std::vector<std::string> ignoreKeys;
  bool force = false;  ///< replaces a folder of other things
  std::string version; ///< of k2c, which files name as their producer
  /// Called with (stage, done, total) now and then; null: silent.
  std::function<void(const std::string &, int64_t, int64_t)> progress;
};

/// Writes the model of `source` as ONNX, with the files of its checkpoint that say what no graph says. The folder is
/// assembled in OUTPUT.partial and takes its place at once. Error: as exportOnnx's (k2c/Onnx/Export.h); the source has
/// no weights, or is no checkpoint; OUTPUT is a folder of other things.
Status exportOnnxFolder(const ExportOptions &options);

} // namespace k2c

#endif // K2C_PIPELINES_EXPORT_H
