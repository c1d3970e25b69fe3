//===- BundleFiles.cpp - files.json, and what does not belong to a bundle -===//
#include "k2c/Weights/BundleFiles.h"

#include "BlobStore.h"
#include "ObjectReader.h"
#include "k2c/Weights/Packer.h"
#include <algorithm>
#include <filesystem>
#include <set>

namespace fs = std::filesystem;

namespace k2c {

using namespace weights;

static constexpr const char *listName = "files.json";

/// Files below `bundle`, relative to it, in order. Of the weights' folder only the map: blobs are verified by the
/// index, which `k2c pack` replaces. Hidden files mark a bundle that is still being assembled.
static std::vector<std::string> listedFiles(const std::string &bundle) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator it(bundle, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().lexically_relative(bundle).string();
    bool ofWeights = name.rfind("weights/", 0) == 0 && name != "weights/map.json";
    if (it->is_regular_file(error) && name[0] != '.' && name != listName && !ofWeights)
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status writeBundleFiles(const std::string &bundle) {
  std::string text = "{\"format\":1,\"files\":[\n", separator;
  for (const std::string &name : listedFiles(bundle)) {
    Expected<FileDigest> digest = digestFile(bundle + "/" + name);
    if (!digest)
      return digest.takeError();
    nlohmann::ordered_json json = {{"file", name}, {"bytes", digest->bytes}, {"xxh3", digest->xxh3}};
    text += separator + json.dump();
    separator = ",\n";
  }
  return replaceFile(bundle + "/" + listName, text + "\n]}\n");
}

/// A name that stays below the bundle: hostile lists must not make verify read elsewhere.
static bool staysInside(const std::string &name) {
  fs::path path(name);
  return !name.empty() && path.is_relative() && std::find(path.begin(), path.end(), "..") == path.end();
}

static void verifyFile(const std::string &bundle, ObjectReader in, VerifyReport &report) {
  std::string name = in.string("file"), hash = in.string("xxh3");
  int64_t bytes = in.integer("bytes");
  if (!staysInside(name))
    in.fail("file", "'" + name + "' is not a file of the bundle");
  ++report.files;
  if (!in) {
    report.problems.push_back(in.takeError());
    return;
  }
  std::string path = bundle + "/" + name, remedy = "compile the bundle again, or copy the whole folder";
  Expected<FileDigest> digest = digestFile(path);
  if (!digest) {
    report.problems.push_back(digest.takeError());
    report.problems.back().remedy = remedy;
    return;
  }
  report.bytes += digest->bytes;
  if (digest->bytes != bytes)
    report.problems.push_back(
        {path, "has " + std::to_string(digest->bytes) + " bytes, " + listName + " says " + std::to_string(bytes),
         remedy});
  else if (digest->xxh3 != hash)
    report.problems.push_back({path, "hashes to " + digest->xxh3 + ", " + listName + " says " + hash, remedy});
}

Expected<VerifyReport> verifyBundleFiles(const std::string &bundle) {
  Expected<JsonDocument> document = readJsonFile(bundle + "/" + listName, mapLimits);
  if (!document)
    return document.takeError();
  ObjectReader root(*document, document->root(), "");
  if (int64_t format = root.integer("format"); format != 1)
    root.fail("format", "is " + std::to_string(format) + "; this k2c reads format 1");
  size_t count = root.array("files").size();
  if (!root)
    return root.takeError();
  VerifyReport report;
  for (size_t i = 0; i < count; ++i)
    verifyFile(bundle, root.child("files", i), report);
  return report;
}

Status removeStrayBlobs(const std::string &bundle) {
  Expected<WeightMap> map = readWeightMap(bundle);
  if (!map)
    return map.takeError();
  std::set<std::string> named;
  for (const WeightSlot &slot : map->slots)
    if (const auto *table = std::get_if<Table>(&slot.transform))
      named.insert(table->file);
  // A shape-only bundle has no index yet.
  if (Expected<std::vector<IndexedSlot>> index = readWeightIndex(bundle))
    for (const IndexedSlot &slot : *index)
      named.insert(slot.file);
  std::error_code error;
  std::vector<fs::path> strays;
  for (const fs::directory_entry &entry : fs::directory_iterator(bundle + "/weights", error))
    if (std::string name = entry.path().filename().string(); isBlobName(name) && !named.count(name))
      strays.push_back(entry.path());
  for (const fs::path &stray : strays)
    if (!fs::remove(stray, error) || error)
      return systemError(stray.string(), "cannot remove", error.value());
  return Status::success();
}

} // namespace k2c
