//===- Entries.h - The lists of a bundle ----------------------------------===//
#ifndef K2C_LIB_WEIGHTS_ENTRIES_H
#define K2C_LIB_WEIGHTS_ENTRIES_H

#include "base/JsonFields.h"
#include <type_traits>

namespace k2c::weights {

/// What `read` makes of the root of a bundle's file {"format":1, ..}. An index or map of a 1T-parameter model is some
/// 15 MB.
template <class Read>
Expected<std::invoke_result_t<Read, const JsonFields &>> readListFile(const std::string &path, const Read &read) {
  Expected<std::string> text = readTextFile(path, size_t(512) << 20);
  if (!text)
    return text.takeError();
  return readJsonFields(*text, path, [&](const JsonFields &root) {
    root.integer("format", 1, 1);
    return read(root);
  });
}

/// What `readEntry` makes of each object of the list `key` and its index.
template <class ReadEntry> auto entriesOf(const JsonFields &root, const char *key, const ReadEntry &readEntry) {
  std::vector<std::invoke_result_t<ReadEntry, const JsonFields &, int64_t>> entries;
  for (const JsonFields &entry : root.objects(key, size_t(1) << 20))
    entries.push_back(readEntry(entry, int64_t(entries.size())));
  return entries;
}

} // namespace k2c::weights

#endif // K2C_LIB_WEIGHTS_ENTRIES_H
