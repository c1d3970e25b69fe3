//===- BundleFiles.h - Hashes of a bundle's files beside its weights ------===//
//
// Blobs of weights carry their hash in weights/index.json. Everything else that k2c puts into a bundle (program.so,
// run, manifest.json, tokenizer, the index itself, ...) is listed in DIR/files.json, so that neither `k2c verify`
// nor the start of a run misses a byte.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_WEIGHTS_BUNDLEFILES_H
#define K2C_WEIGHTS_BUNDLEFILES_H

#include "k2c/Weights/WeightIndex.h"

namespace k2c {

/// Writes `bundle`/files.json: name, bytes and XXH3-64 of every file of the bundle that is no blob.
Status writeBundleFiles(const std::string &bundle);

/// The same for `names` alone (relative to the bundle), which `k2c pack` wrote: what the list says of the others stays,
/// so that a file that was changed since is still found. A name that is not there leaves the list.
Status updateBundleFiles(const std::string &bundle, const std::vector<std::string> &names);

/// Replaces a file of a bundle, atomically and durably: writes a synced temporary file and renames it.
Status replaceFile(const std::string &path, const std::string &text);

/// Hashes what files.json lists, and names what it does not. Error: the list itself cannot be read.
Expected<VerifyReport> verifyBundleFiles(const std::string &bundle);

/// Removes blobs that neither the index nor the weight map of `bundle` names: what an interrupted compile of something
/// else left, or weights of ranks for which the bundle was packed before.
Status removeStrayBlobs(const std::string &bundle);

} // namespace k2c

#endif // K2C_WEIGHTS_BUNDLEFILES_H
