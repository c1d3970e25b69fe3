//===- BundleFiles.cpp - files.json, and what does not belong to a bundle -===//
//
// files.json lists every file of a bundle with its size and hash, except blobs, whose hashes are in the weights'
// index, and files that come and go: the list of finished blobs, the mark of an unfinished bundle, which is hidden,
// and the list itself. It is replaced as a whole, so that no reader sees half of it.
//
// Verifying compares both directions: what is listed must be there with these bytes, and what is there must be listed,
// for a file that someone added to a bundle may be read by no one or by the wrong one. All problems are reported, not
// the first. The list may be hostile: names that are absolute, climb with ".." or occur twice are refused before any
// file is opened. Blobs that neither a table of the weight map nor the index names are left over from another compile;
// they are collected first and removed afterwards, since a folder that changes must not be iterated.
//
//===----------------------------------------------------------------------===//
#include "k2c/Weights/BundleFiles.h"

#include "BlobStore.h"
#include "Entries.h"
#include "base/File.h"
#include "base/JsonText.h"
#include "base/Utf8.h"
#include "k2c/Weights/Packer.h"
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace fs = std::filesystem;

namespace k2c {

using namespace weights;

static constexpr const char *listName = "files.json";
static constexpr const char *indexName = "weights/index.json";
static constexpr const char *remedy = "compile the bundle again, or copy the whole folder";

/// What files.json says of each file, by its name relative to the bundle.
using FileList = std::map<std::string, FileDigest>;

/// Files below `bundle`, relative to it, in order; without blobs (the index has their hashes), their list while there
/// is no index, the mark of an unfinished bundle, and the list itself.
static std::vector<std::string> listedNames(const std::string &bundle) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator it(bundle, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().lexically_relative(bundle).string(), file = it->path().filename().string();
    if (it->is_regular_file(error) && !isBlobName(file) && file != finishedList && file[0] != '.' && name != listName)
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Lists a file as it is now.
static Status addFile(FileList &files, const std::string &bundle, const std::string &name) {
  Expected<FileDigest> digest = digestFile(bundle + "/" + name);
  if (!digest)
    return digest.takeError();
  files[name] = std::move(*digest);
  return Status::success();
}

static Status writeList(const std::string &bundle, const FileList &files) {
  std::string text = "{\"format\":1,\"files\":[\n", separator;
  for (const auto &[name, digest] : files) {
    nlohmann::ordered_json json = {{"file", name}, {"bytes", digest.bytes}, {"xxh3", digest.xxh3}};
    text += separator + jsonText(json);
    separator = ",\n";
  }
  return replaceFile(bundle + "/" + listName, text + "\n]}\n");
}

Status writeBundleFiles(const std::string &bundle) {
  FileList files;
  for (const std::string &name : listedNames(bundle))
    if (Status status = addFile(files, bundle, name); !status)
      return status;
  return writeList(bundle, files);
}

static FileList::value_type readListed(const JsonFields &in, int64_t) {
  const std::string &name = in.string("file");
  if (!isInsidePath(name)) // hostile lists must not make verify read elsewhere
    in.fail("file", "'" + shortened(name) + "' is not a path inside the bundle");
  const std::string &hash = in.string("xxh3");
  if (!parseHash(hash)) // they are quoted
    in.fail("xxh3", "is not 16 hex digits");
  return {name, {hash, in.integer("bytes", 0), {}}};
}

static Expected<FileList> readList(const std::string &bundle) {
  const std::string path = bundle + "/" + listName;
  auto entries = readListFile(path, [](const JsonFields &root) { return entriesOf(root, "files", readListed); });
  if (!entries)
    return entries.takeError();
  FileList files;
  for (size_t i = 0; i < entries->size(); ++i)
    if (const auto &[file, isNew] = files.insert((*entries)[i]); !isNew)
      return Error{path + ": files[" + std::to_string(i) + "].file", shortened(file->first) + " is listed twice",
                   remedy};
  return files;
}

Status updateBundleFiles(const std::string &bundle, const std::vector<std::string> &names) {
  Expected<FileList> files = readList(bundle);
  if (!files)
    return files.takeError();
  for (const std::string &name : names) {
    files->erase(name);
    if (std::error_code error; fs::exists(bundle + "/" + name, error))
      if (Status status = addFile(*files, bundle, name); !status)
        return status;
  }
  return writeList(bundle, *files);
}

static void verifyFile(const std::string &bundle, const std::string &name, const FileDigest &listed,
                       VerifyReport &report) {
  const std::string path = bundle + "/" + shortened(name, maxQuoted);
  ++report.files;
  if (std::error_code error; fs::symlink_status(bundle + "/" + name, error).type() == fs::file_type::not_found) {
    report.problems.push_back({path, std::string("is missing, ") + listName + " names it", remedy});
    return;
  }
  Expected<FileDigest> digest = digestBundleFile(bundle, name);
  if (!digest) {
    report.problems.push_back(digest.takeError());
    report.problems.back().where = path;
    if (report.problems.back().remedy.empty())
      report.problems.back().remedy = remedy;
    return;
  }
  report.bytes += digest->bytes;
  if (digest->bytes != listed.bytes)
    report.problems.push_back(
        {path, "has " + std::to_string(digest->bytes) + " bytes, " + listName + " says " + std::to_string(listed.bytes),
         remedy});
  else if (digest->xxh3 != listed.xxh3)
    report.problems.push_back({path, "hashes to " + digest->xxh3 + ", " + listName + " says " + listed.xxh3, remedy});
}

/// Blobs that neither the weight map nor the index names.
static Expected<std::vector<fs::path>> strayBlobs(const std::string &bundle) {
  Expected<WeightMap> map = readWeightMap(bundle);
  if (!map)
    return map.takeError();
  std::set<std::string> named;
  for (const WeightSlot &slot : map->slots)
    if (const auto *table = std::get_if<Table>(&slot.transform))
      named.insert(table->file);
  // A shape-only bundle has no index yet.
  if (Expected<WeightIndex> index = readWeightIndex(bundle))
    for (const IndexedSlot &slot : index->slots)
      for (const std::optional<BlobRange> &range : slot.ranges)
        if (range)
          named.insert(range->file);
  std::error_code error;
  std::vector<fs::path> strays;
  for (const fs::directory_entry &entry : fs::directory_iterator(bundle + "/weights", error))
    if (std::string name = entry.path().filename().string(); isBlobName(name) && !named.count(name))
      strays.push_back(entry.path());
  std::sort(strays.begin(), strays.end());
  return strays;
}

Expected<VerifyReport> verifyBundleFiles(const std::string &bundle) {
  Expected<FileList> files = readList(bundle);
  if (!files)
    return files.takeError();
  VerifyReport report;
  for (const auto &[name, digest] : *files)
    verifyFile(bundle, name, digest, report);
  for (const std::string &name : listedNames(bundle))
    if (!files->count(name))
      report.problems.push_back({bundle + "/" + name, std::string("is not in ") + listName, "move it away"});
  // Without a map and an index that can be read, their own hashes are wrong, or the index is lost and not its blobs.
  std::error_code error;
  if (files->count(indexName) && !fs::exists(bundle + "/" + indexName, error))
    return report;
  if (Expected<std::vector<fs::path>> strays = strayBlobs(bundle))
    for (const fs::path &stray : *strays)
      report.problems.push_back({stray.string(), "is not in weights/index.json", "move it away"});
  return report;
}

Status removeStrayBlobs(const std::string &bundle) {
  Expected<std::vector<fs::path>> strays = strayBlobs(bundle);
  if (!strays)
    return strays.takeError();
  std::error_code error;
  for (const fs::path &stray : *strays)
    if (!fs::remove(stray, error) || error)
      return diskError(stray.string(), "cannot remove", error.value());
  return Status::success();
}

} // namespace k2c
