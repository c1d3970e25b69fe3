// The packed weights of a bundle: weights/index.json says which file each slot of the program is; files are mapped.
#ifndef K2RT_PROGRAM_WEIGHTS_H
#define K2RT_PROGRAM_WEIGHTS_H

#include "memory/File.h"
#include <string>
#include <vector>

namespace k2rt {

/// Mapped blobs; slots may share one. Lives as long as anything that reads a slot.
class Weights {
public:
  /// Reads `folder`/`index` and maps what it names from the same folder. Refuses a slot that is missing, twice or out
  /// of range, a file name that is a path, and a file of another size. `slotCount`: what the program has.
  static Result<Weights> map(const std::string &folder, const std::string &index, int32_t slotCount);

  /// Base of each slot, page aligned; null for an empty slot.
  const std::vector<const void *> &slots() const { return bases; }
  /// Each file once.
  const std::vector<MappedFile> &mappedFiles() const { return files; }
  /// Bytes mapped, each file once.
  int64_t bytes() const { return total; }
  /// Brings part `part` of `parts` of all files into the page tables, so that the first step does not fault.
  void prefault(int64_t part, int64_t parts) const;

private:
  std::vector<MappedFile> files;
  std::vector<const void *> bases;
  int64_t total = 0;
};

} // namespace k2rt

#endif
