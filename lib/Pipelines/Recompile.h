//===- Recompile.h - The compile that a bundle records --------------------===//
//
// A bundle of a checkpoint has its config.json, one of an ONNX file does not have the graph, which the user names. The
// manifest states the options, the target and the cores that it was compiled with. So what a bundle does not hold
// (descriptions, tiles, the forms of the IR) is compiled again; its kernels and their tiles must come out as the bundle
// states them, so that what is said of the compile holds for the program that lies there.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PIPELINES_RECOMPILE_H
#define K2C_LIB_PIPELINES_RECOMPILE_H

#include "Stages.h"

namespace k2c {

/// What a bundle says of its compile.
struct RecordedCompile {
  std::string bundle;
  JsonDocument manifest;
  CompileOptions options;
  Inputs inputs; ///< the topology has the recorded number of cores, and the rates of this machine
};

/// Reads the record of `bundle`, its model from `checkpoint`, or "" from its own config.json. Errors: no bundle; a
/// manifest that is damaged, or of another k2c; another model; no `checkpoint` of a bundle of an ONNX file.
Expected<RecordedCompile> readRecord(const std::string &bundle, const std::string &checkpoint);

/// Whether a line of remarks says the tile of a kernel, which it does in full.
bool isTileRemark(llvm::StringRef line);

/// Takes `pipeline`, which is one of `recorded`, to the scheduled form. Error: its kernels, or their tiles, are not
/// those of the bundle.
Status compileAgain(CompilePipeline &pipeline, const RecordedCompile &recorded);

} // namespace k2c

#endif // K2C_LIB_PIPELINES_RECOMPILE_H
