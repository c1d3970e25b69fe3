//===- WeightIndex.cpp - weights/index.json -------------------------------===//
//
// Slots of one range are written as the blob that they are; slots of experts as the list of their ranges. Both come
// back as ranges, so that all who read an index walk over one kind of thing. The file may come from anywhere: names,
// sizes and hashes are checked before a path is made of them.
//
//===----------------------------------------------------------------------===//
#include "k2c/Weights/WeightIndex.h"

#include "BlobStore.h"
#include "Entries.h"
#include "base/JsonText.h"
#include "k2c/Weights/BundleFiles.h"
#include "k2c/Weights/WeightMap.h"
#include <algorithm>
#include <filesystem>

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

static nlohmann::ordered_json toJson(const BlobRange &range, bool isExpert) {
  nlohmann::ordered_json json;
  if (isExpert)
    json["name"] = range.name;
  if (range.pieces.empty())
    json["file"] = range.file;
  if (isExpert && range.pieces.empty())
    json["offset"] = range.offset;
  json.update({{"bytes", range.bytes}, {"xxh3", range.xxh3}, {"chunks", range.chunks}});
  for (const FilePiece &piece : range.pieces)
    json["pieces"].push_back({piece.file, piece.offset, piece.bytes, piece.at});
  return json;
}

static nlohmann::ordered_json toJson(const IndexedSlot &slot) {
  nlohmann::ordered_json json = {{"slot", slot.slot}, {"name", slot.name}, {"layer", nullptr}};
  if (slot.layer)
    json["layer"] = *slot.layer;
  json["chunk_bytes"] = blobChunkBytes;
  if (!slot.isTable) {
    if (const std::optional<BlobRange> &range = slot.ranges[0])
      json.update(toJson(*range, /*isExpert=*/false));
    return json;
  }
  json["experts"] = nlohmann::ordered_json::array();
  for (const std::optional<BlobRange> &range : slot.ranges)
    json["experts"].push_back(range ? toJson(*range, /*isExpert=*/true) : nlohmann::ordered_json());
  return json;
}

Status writeWeightIndex(const WeightIndex &index, const std::string &bundle) {
  // One slot a line: a person can read and compare it.
  std::string text = "{\"format\":1,";
  if (!index.files.empty()) {
    nlohmann::ordered_json files = nlohmann::ordered_json::array();
    for (const PieceFile &file : index.files)
      files.push_back({{"file", file.name}, {"bytes", file.bytes}});
    text += "\"files\":" + jsonText(files) + ",";
  }
  text += "\"slots\":[\n";
  for (const IndexedSlot &slot : index.slots)
    text += jsonText(toJson(slot)) + (&slot == &index.slots.back() ? "\n" : ",\n");
  return replaceFile(indexPath(bundle), text + "]}\n");
}

/// Bytes, hash and chunks, and where the bytes are: what slots and experts have in common.
static BlobRange readRange(const JsonFields &in, const std::vector<PieceFile> &files) {
  BlobRange range;
  range.bytes = in.integer("bytes", 0, maxBlobBytes);
  range.xxh3 = in.string("xxh3");
  if (!isHex(range.xxh3, 16))
    in.fail("xxh3", "is not 16 hex digits");
  const bool isOfBlob = !in.has("pieces");
  if (isOfBlob)
    range.file = in.string("file");
  else
    range.pieces = readFilePieces(in, "pieces", range.bytes, files);
  if (isOfBlob && !isBlobName(range.file))
    in.fail("file", "'" + shortened(range.file) + "' is not the name of a blob");
  if (range.bytes % blobAlignment)
    in.fail("bytes", "is " + std::to_string(range.bytes) + ", not a multiple of " + std::to_string(blobAlignment));
  range.chunks = in.strings("chunks", size_t(maxBlobBytes / blobChunkBytes));
  for (const std::string &hash : range.chunks)
    if (!isHex(hash, 16))
      in.fail("chunks", "has a hash that is not 16 hex digits");
  const int64_t chunks = range.bytes / blobChunkBytes + (range.bytes % blobChunkBytes != 0);
  if (int64_t(range.chunks.size()) != chunks)
    in.fail("chunks", "has " + std::to_string(range.chunks.size()) + " hashes, " + std::to_string(range.bytes) +
                          " bytes have " + std::to_string(chunks));
  return range;
}

static BlobRange readExpert(const JsonFields &in, const std::vector<PieceFile> &files) {
  BlobRange range = readRange(in, files);
  range.name = in.string("name");
  if (!isHex(range.name, 32))
    in.fail("name", "is not 32 hex digits");
  if (!range.pieces.empty())
    return range;
  range.offset = in.integer("offset");
  if (!isSound(range))
    in.fail("", "is no range of whole pages, from 0 on where it has the name of its blob");
  return range;
}

static IndexedSlot readSlot(const JsonFields &in, int64_t expected, const std::vector<PieceFile> &files) {
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
    if (in.has("file") || in.has("pieces")) {
      slot.ranges[0] = readRange(in, files);
      slot.ranges[0]->name = slot.ranges[0]->file.substr(0, 32);
    }
    return slot;
  }
  for (const std::optional<JsonFields> &expert : in.objectsOrNulls("experts", maxExperts)) {
    slot.ranges.emplace_back();
    if (expert)
      slot.ranges.back() = readExpert(*expert, files);
  }
  return slot;
}

Expected<WeightIndex> readWeightIndex(const std::string &bundle) {
  return readListFile(indexPath(bundle), [](const JsonFields &root) {
    WeightIndex index;
    if (root.has("files"))
      index.files = readPieceFiles(root, "files");
    index.slots = entriesOf(
        root, "slots", [&](const JsonFields &in, int64_t expected) { return readSlot(in, expected, index.files); });
    return index;
  });
}

Status linkCheckpoint(const std::string &folder, const std::string &bundle) {
  namespace fs = std::filesystem;
  const fs::path link = fs::path(bundle) / "weights" / checkpointLink;
  std::error_code error;
  const fs::path target = fs::canonical(folder, error);
  if (!error)
    fs::remove(link, error);
  if (!error)
    fs::create_directory_symlink(target, link, error);
  if (error)
    return Error{link.string(), "cannot be a link to " + folder + ": " + error.message(),
                 "use a file system that has symbolic links, or --weights packed"};
  return Status::success();
}

} // namespace k2c
