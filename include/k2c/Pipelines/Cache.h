//===- Cache.h - Compiled models that are kept for their user --------------===//
//
// CACHE/bundles/NAME is a bundle, named by what it was made from and for; CACHE/*.o are compiled kernels, which every
// compile shares. CACHE is userCacheFolder().
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PIPELINES_CACHE_H
#define K2C_PIPELINES_CACHE_H

#include "k2c/Pipelines/Compile.h"

namespace k2c {

/// Bytes of a file, or of the files that a folder and the folders in it have; what cannot be read counts 0.
int64_t bytesOfFiles(const std::string &path);

/// What the user's cache has of a model.
struct CachedBundle {
  std::string folder;  ///< of the bundle; "": the cache cannot keep it
  std::string refusal; ///< why not
};

/// Compiles `options.source` with its flags into a folder of the user's cache, unless the bundle there was made by this
/// k2c from the same files (names, sizes, times), with the same flags, and is not damaged. A cache that cannot be
/// written or that fills up is no error. `options.output` is not read.
Expected<CachedBundle> compileCached(CompileOptions options);

/// What `k2c cache` lists.
struct CacheEntry {
  std::string name; ///< "kernels", or a bundle's
  std::string
      source; ///< what a bundle was made from and with which flags; "": it was not finished, or is of another k2c
  int64_t bytes = 0; ///< of its files
};
struct CacheListing {
  std::string folder;
  std::vector<CacheEntry> entries; ///< bundles by name, kernels at the end
};
/// Error: the user has no cache folder.
Expected<CacheListing> listCache();

/// Removes the entry called `name`, or all of them when it is "all", and returns the bytes. Error: there is no such
/// entry, or its files cannot be removed.
Expected<int64_t> removeCached(const std::string &name);

} // namespace k2c

#endif // K2C_PIPELINES_CACHE_H
