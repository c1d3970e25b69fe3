//===- WeightIndex.cpp - weights/index.json and its verification ----------===//
//
// Slots of one range are written as the blob that they are; slots of experts as the list of their ranges. Both come
// back as ranges, so that all who read an index walk over one kind of thing. The file may come from anywhere: names,
// sizes and hashes are checked before a path is made of them.
//
// Verifying reads every named range once, in the order of the files; of a file that cannot be read one line is enough.
//
//===----------------------------------------------------------------------===//
#include "k2c/Weights/WeightIndex.h"

#include "BlobStore.h"
#include "Entries.h"
#include "base/JsonText.h"
#include "k2c/Weights/BundleFiles.h"
#include "k2c/Weights/WeightMap.h"
#include <algorithm>
#include <set>
#include <tuple>

namespace k2c {

using namespace weights;

static bool isHex(const std::string &text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool isBlobName(const std::string &file) {
  return file.size() == 36 && isHex(file.substr(0, 32), 32) && file.substr(32) == ".bin";
}

static constexpr int64_t maxBlobBytes = int64_t(1) << 50;
static constexpr size_t maxExperts = 1 << 20;

bool isSound(const BlobRange &range) {
  auto wholePages = [](int64_t bytes) { return bytes >= 0 && bytes <= maxBlobBytes && bytes % blobAlignment == 0; };
  return isHex(range.name, 32) && isBlobName(range.file) && isHex(range.xxh3, 16) && wholePages(range.offset) &&
         wholePages(range.bytes) && range.bytes > 0 && (!range.isWholeBlob() || range.offset == 0);
}

static std::string indexPath(const std::string &bundle) { return bundle + "/weights/index.json"; }

static nlohmann::ordered_json toJson(const IndexedSlot &slot) {
  nlohmann::ordered_json json = {{"slot", slot.slot}, {"name", slot.name}, {"layer", nullptr}};
  if (slot.layer)
    json["layer"] = *slot.layer;
  json["chunk_bytes"] = blobChunkBytes;
  if (!slot.isTable) {
    if (const std::optional<BlobRange> &blob = slot.ranges[0])
      json.update({{"file", blob->file}, {"bytes", blob->bytes}, {"xxh3", blob->xxh3}, {"chunks", blob->chunks}});
    return json;
  }
  json["experts"] = nlohmann::ordered_json::array();
  for (const std::optional<BlobRange> &range : slot.ranges)
    json["experts"].push_back(!range ? nlohmann::ordered_json()
                                     : nlohmann::ordered_json{{"name", range->name},
                                                              {"file", range->file},
                                                              {"offset", range->offset},
                                                              {"bytes", range->bytes},
                                                              {"xxh3", range->xxh3},
                                                              {"chunks", range->chunks}});
  return json;
}

Status writeWeightIndex(const std::vector<IndexedSlot> &slots, const std::string &bundle) {
  // One slot a line: a person can read and compare it.
  std::string text = "{\"format\":1,\"slots\":[\n";
  for (const IndexedSlot &slot : slots)
    text += jsonText(toJson(slot)) + (&slot == &slots.back() ? "\n" : ",\n");
  return replaceFile(indexPath(bundle), text + "]}\n");
}

/// File, bytes, hash and chunks: what slots and experts have in common.
static BlobRange readRange(const JsonFields &in) {
  BlobRange range;
  range.file = in.string("file");
  range.bytes = in.integer("bytes", 0, maxBlobBytes);
  range.xxh3 = in.string("xxh3");
  if (!isBlobName(range.file))
    in.fail("file", "'" + shortened(range.file) + "' is not the name of a blob");
  if (range.bytes % blobAlignment)
    in.fail("bytes", "is " + std::to_string(range.bytes) + ", not a multiple of " + std::to_string(blobAlignment));
  range.chunks = in.strings("chunks", size_t(maxBlobBytes / blobChunkBytes));
  const int64_t chunks = range.bytes / blobChunkBytes + (range.bytes % blobChunkBytes != 0);
  if (int64_t(range.chunks.size()) != chunks)
    in.fail("chunks", "has " + std::to_string(range.chunks.size()) + " hashes, " + std::to_string(range.bytes) +
                          " bytes have " + std::to_string(chunks));
  return range;
}

static BlobRange readExpert(const JsonFields &in) {
  BlobRange range = readRange(in);
  range.name = in.string("name");
  range.offset = in.integer("offset");
  if (!isSound(range))
    in.fail("", "is no range of whole pages with a name of 32 hex digits and a hash of 16");
  return range;
}

static IndexedSlot readSlot(const JsonFields &in, int64_t expected) {
  IndexedSlot slot;
  slot.slot = in.integer("slot");
  slot.name = in.string("name");
  if (in.has("layer"))
    slot.layer = in.integer("layer");
  if (slot.slot != expected)
    in.fail("slot", "is " + std::to_string(slot.slot) + " where " + std::to_string(expected) + " comes next");
  in.integer("chunk_bytes", blobChunkBytes, blobChunkBytes);
  slot.isTable = in.has("experts");
  if (!slot.isTable) {
    slot.ranges.emplace_back();
    if (in.has("file")) {
      slot.ranges[0] = readRange(in);
      slot.ranges[0]->name = slot.ranges[0]->file.substr(0, 32);
    }
    return slot;
  }
  for (const std::optional<JsonFields> &expert : in.objectsOrNulls("experts", maxExperts)) {
    slot.ranges.emplace_back();
    if (expert)
      slot.ranges.back() = readExpert(*expert);
  }
  return slot;
}

Expected<std::vector<IndexedSlot>> readWeightIndex(const std::string &bundle) {
  return readEntries(indexPath(bundle), "slots", readSlot);
}

/// What is wrong with the bytes of `range`, of which `digest` was made; "" when nothing is.
static std::string differenceOf(const BlobRange &range, const FileDigest &digest) {
  std::string part;
  if (!range.isWholeBlob())
    part = "bytes " + std::to_string(range.offset) + " to " + std::to_string(range.offset + range.bytes) + ": ";
  if (digest.bytes != range.bytes)
    return part + "has " + std::to_string(digest.bytes) + " bytes, the index says " + std::to_string(range.bytes);
  if (digest.xxh3 != range.xxh3)
    return part + "hashes to " + digest.xxh3 + ", the index says " + range.xxh3;
  if (digest.chunks != range.chunks)
    return part + "has the hash that the index says, its chunks have others";
  return "";
}

Expected<VerifyReport> verifyBundle(const std::string &bundle,
                                    const std::function<void(int64_t done, int64_t total)> &progress) {
  Expected<std::vector<IndexedSlot>> slots = readWeightIndex(bundle);
  if (!slots)
    return slots.takeError();
  // File by file; a range that is listed again with other hashes is one more to compare.
  auto comesBefore = [](const BlobRange *a, const BlobRange *b) {
    return std::tie(a->file, a->offset, a->bytes, a->xxh3, a->chunks) <
           std::tie(b->file, b->offset, b->bytes, b->xxh3, b->chunks);
  };
  std::set<const BlobRange *, decltype(comesBefore)> ranges(comesBefore);
  for (const IndexedSlot &slot : *slots)
    for (const std::optional<BlobRange> &range : slot.ranges)
      if (range)
        ranges.insert(&*range);
  int64_t total = 0; // at most, since an index may claim anything
  for (const BlobRange *range : ranges)
    total = std::min(total + range->bytes, int64_t(1) << 62);
  VerifyReport report;
  const std::string remedy = "`k2c pack` with the checkpoint writes its blobs again; a table needs `k2c compile`";
  std::string last, unreadable; // files
  for (const BlobRange *range : ranges) {
    if (progress)
      progress(report.bytes, total);
    report.files += range->file != last;
    last = range->file;
    if (range->file == unreadable)
      continue;
    const FilePart part = range->isWholeBlob() ? FilePart() : FilePart{range->offset, range->bytes};
    Expected<FileDigest> digest = digestBundleFile(bundle, "weights/" + range->file, part);
    if (!digest) {
      unreadable = range->file;
      report.problems.push_back(digest.takeError());
      if (report.problems.back().remedy.empty())
        report.problems.back().remedy = remedy;
      continue;
    }
    report.bytes += digest->bytes;
    if (std::string difference = differenceOf(*range, *digest); !difference.empty())
      report.problems.push_back({bundle + "/weights/" + range->file, std::move(difference), remedy});
  }
  return report;
}

} // namespace k2c
