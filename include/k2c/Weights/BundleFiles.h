//===- BundleFiles.h - Hashes of a bundle's files beside its weights ------===//
//
// Blobs of weights carry their hash in weights/index.json. Everything else that `k2c compile` puts into a bundle
// (program.so, run, manifest.json, tokenizer, ...) is listed in DIR/files.json, so that `k2c verify` misses no byte.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_WEIGHTS_BUNDLEFILES_H
#define K2C_WEIGHTS_BUNDLEFILES_H

#include "k2c/Weights/WeightIndex.h"

namespace k2c {

/// Writes `bundle`/files.json: name, bytes and XXH3-64 of every file of the bundle that is no blob and no index.
Status writeBundleFiles(const std::string &bundle);

/// Hashes what files.json lists. Error: the list itself cannot be read.
Expected<VerifyReport> verifyBundleFiles(const std::string &bundle);

/// Removes blobs that neither the index nor the weight map of `bundle` names: leavings of an interrupted compile of
/// something else.
Status removeStrayBlobs(const std::string &bundle);

} // namespace k2c

#endif // K2C_WEIGHTS_BUNDLEFILES_H
