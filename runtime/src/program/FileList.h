// files.json: name, size and hash of every file of a bundle but its blobs, which weights/index.json describes.
//
// Nothing else says what files.json itself must be, so it is read strictly: any change of its text that is still a list
// names another file, another size or another hash, and the file beside it does not have these.
#ifndef K2RT_PROGRAM_FILELIST_H
#define K2RT_PROGRAM_FILELIST_H

#include "base/Error.h"
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace k2c::runtime {

/// The list of a bundle folder. Each failure names the file, both values and the remedy.
class FileList {
public:
  /// Reads `folder`/files.json.
  static Expected<FileList> read(const std::string &folder);

  const std::string &folder() const { return root; }
  /// Each listed file is there, regular, not reached through a link, and has its size.
  Status checkSizes() const;
  /// `file` is listed.
  Status checkListed(const std::string &file) const;
  /// `file` is listed and its bytes have their hash.
  Status checkHash(const std::string &file) const;
  /// The same of every listed file but `others`.
  Status checkHashesBut(const std::set<std::string> &others) const;
  /// What `file` must hash to; 0 where it is not listed.
  uint64_t hashOf(const std::string &file) const;
  /// Of all that is listed but `others`.
  uint64_t hashBut(const std::set<std::string> &others) const;
  /// The bytes of `file`, at most `limitBytes`, checked so.
  Expected<std::string> text(const std::string &file, int64_t limitBytes) const;

private:
  struct Facts {
    int64_t bytes;
    uint64_t hash;
  };
  Expected<Facts> factsOf(const std::string &file) const;
  Status compare(const std::string &file, int64_t bytes, uint64_t hash) const;

  std::string root;
  std::map<std::string, Facts> files;
};

/// The bytes of the running executable have their hash, if it is `folder`/run. Where the list cannot be read,
/// FileList::read says so.
Status checkOwnProgram(const std::string &folder);

} // namespace k2c::runtime

#endif
