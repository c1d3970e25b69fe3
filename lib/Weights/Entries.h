//===- Entries.h - The lists of a bundle ----------------------------------===//
#ifndef K2C_LIB_WEIGHTS_ENTRIES_H
#define K2C_LIB_WEIGHTS_ENTRIES_H

#include "base/JsonFields.h"

namespace k2c::weights {

/// The list `key` of a bundle's file {"format":1, KEY:[{..}, ..]}: what `readEntry` makes of each object and its index.
/// An index or map of a 1T-parameter model is some 15 MB.
template <class Entry>
Expected<std::vector<Entry>> readEntries(const std::string &path, const char *key,
                                         Entry (*readEntry)(const JsonFields &in, int64_t index)) {
  Expected<std::string> text = readTextFile(path, size_t(512) << 20);
  if (!text)
    return text.takeError();
  return readJsonFields(*text, path, [&](const JsonFields &root) {
    root.integer("format", 1, 1);
    std::vector<Entry> entries;
    for (const JsonFields &entry : root.objects(key, size_t(1) << 20))
      entries.push_back(readEntry(entry, int64_t(entries.size())));
    return entries;
  });
}

} // namespace k2c::weights

#endif // K2C_LIB_WEIGHTS_ENTRIES_H
