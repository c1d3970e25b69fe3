// A bundle folder, opened in the order in which trust grows: list of files, manifest, CPU features, program, weights.
#ifndef K2RT_PROGRAM_BUNDLE_H
#define K2RT_PROGRAM_BUNDLE_H

#include "program/FileList.h"
#include "program/Manifest.h"
#include "program/Placement.h"
#include "program/Program.h"
#include "program/Weights.h"
#include <string>

namespace k2c::runtime {

/// Reads files.json of a bundle, whose files are all there and have their sizes.
Expected<FileList> readFileList(const std::string &folder);

/// Reads the manifest alone: enough for `info`, also of a shape-only bundle and for another CPU.
Expected<Manifest> readManifest(const FileList &files);

/// What is read of a bundle before anything else: by `info` alone, by ranks that agree on it.
struct ListedManifest {
  FileList files;
  Manifest manifest;
};
Expected<ListedManifest> readListedManifest(const std::string &folder);

/// The tokenizer's file in the bundle, "" when it has none.
std::string tokenizerFile(const std::string &folder);

/// Of a bundle of several ranks that something wants to run without a transport between them.
Error startedAlone(const std::string &folder, const RankFacts &ranks);

/// A bundle, opened for one of its ranks. Engines refer to it.
struct Bundle {
  std::string folder;
  Manifest manifest;
  Program program;
  Placement placement;
  Weights weights; ///< the rank's
  int32_t rank = 0;
  uint64_t programHash = 0;              ///< of program.so, as files.json says
  std::vector<PlacementText> placements; ///< that were given beside its own

  /// Opens everything; refuses a file that is not what files.json says, a machine without the CPU features, a bundle
  /// without weights, and one of several ranks.
  static Expected<Bundle> open(const std::string &folder);
  /// The same for a rank of a bundle of any number of ranks, with placements beside its own.
  static Expected<Bundle> open(const std::string &folder, int32_t rank, std::vector<PlacementText> placements = {});
  /// The same once list, manifest and placements are read.
  static Expected<Bundle> open(ListedManifest read, int32_t rank, std::vector<PlacementText> placements);
};

} // namespace k2c::runtime

#endif
