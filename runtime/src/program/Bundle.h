// A bundle folder, opened in the order in which trust grows: list of files, manifest, CPU features, program, weights.
#ifndef K2RT_PROGRAM_BUNDLE_H
#define K2RT_PROGRAM_BUNDLE_H

#include "program/FileList.h"
#include "program/Manifest.h"
#include "program/Program.h"
#include "program/Weights.h"
#include <string>

namespace k2c::runtime {

/// Reads files.json of a bundle, whose files are all there and have their sizes.
Expected<FileList> readFileList(const std::string &folder);

/// Reads the manifest alone: enough for `info`, also of a shape-only bundle and for another CPU.
Expected<Manifest> readManifest(const FileList &files);

/// The tokenizer's file in the bundle, "" when it has none.
std::string tokenizerFile(const std::string &folder);

/// An opened bundle. Engines refer to it.
struct Bundle {
  std::string folder;
  Manifest manifest;
  Program program;
  Weights weights;

  /// Opens everything; refuses a file that is not what files.json says, a machine without the CPU features, and a
  /// bundle without weights.
  static Expected<Bundle> open(const std::string &folder);
};

} // namespace k2c::runtime

#endif
