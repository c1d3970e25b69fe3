//===- WeightIndex.cpp - weights/index.json and its verification ----------===//
#include "k2c/Weights/WeightIndex.h"

#include "BlobStore.h"
#include "ObjectReader.h"
#include "base/JsonText.h"
#include "k2c/Weights/WeightMap.h"
#include <map>

namespace k2c {

using namespace weights;

bool isBlobName(const std::string &file) {
  return file.size() == 36 && file.find_first_not_of("0123456789abcdef") == 32 && file.substr(32) == ".bin";
}

static std::string indexPath(const std::string &bundle) { return bundle + "/weights/index.json"; }

Status writeWeightIndex(const std::vector<IndexedSlot> &slots, const std::string &bundle) {
  // One slot a line: a person can read and compare it.
  std::string text = "{\"format\":1,\"slots\":[\n";
  for (const IndexedSlot &slot : slots) {
    nlohmann::ordered_json json = {{"slot", slot.slot},
                                   {"name", slot.name},
                                   {"layer", nullptr},
                                   {"file", slot.file},
                                   {"bytes", slot.bytes},
                                   {"xxh3", slot.xxh3},
                                   {"chunk_bytes", blobChunkBytes},
                                   {"chunks", slot.chunks}};
    if (slot.layer)
      json["layer"] = *slot.layer;
    text += jsonText(json) + (&slot == &slots.back() ? "\n" : ",\n");
  }
  return replaceFile(indexPath(bundle), text + "]}\n");
}

static Expected<IndexedSlot> readSlot(ObjectReader in, int64_t expected) {
  IndexedSlot slot;
  slot.slot = in.integer("slot");
  slot.name = in.string("name");
  slot.layer = in.integerOrNull("layer");
  slot.file = in.string("file");
  slot.bytes = in.integer("bytes");
  slot.xxh3 = in.string("xxh3");
  if (slot.slot != expected)
    in.fail("slot", "is " + std::to_string(slot.slot) + " where " + std::to_string(expected) + " comes next");
  if (!isBlobName(slot.file))
    in.fail("file", "'" + shortened(slot.file) + "' is not the name of a blob");
  if (slot.bytes < 0 || slot.bytes % blobAlignment)
    in.fail("bytes", "is " + std::to_string(slot.bytes) + ", not a multiple of " + std::to_string(blobAlignment));
  if (const int64_t bytes = in.integer("chunk_bytes"); bytes != blobChunkBytes)
    in.fail("chunk_bytes", "is " + std::to_string(bytes) + ", this k2c reads " + std::to_string(blobChunkBytes));
  slot.chunks = in.strings("chunks");
  const int64_t chunks = slot.bytes / blobChunkBytes + (slot.bytes % blobChunkBytes != 0);
  if (int64_t(slot.chunks.size()) != chunks)
    in.fail("chunks", "has " + std::to_string(slot.chunks.size()) + " hashes, a file of " + std::to_string(slot.bytes) +
                          " bytes has " + std::to_string(chunks));
  if (!in)
    return in.takeError();
  return slot;
}

Expected<std::vector<IndexedSlot>> readWeightIndex(const std::string &bundle) {
  return readEntries(indexPath(bundle), "slots", readSlot);
}

Expected<VerifyReport> verifyBundle(const std::string &bundle) {
  Expected<std::vector<IndexedSlot>> slots = readWeightIndex(bundle);
  if (!slots)
    return slots.takeError();
  std::map<std::string, const IndexedSlot *> files;
  for (const IndexedSlot &slot : *slots)
    files.emplace(slot.file, &slot);
  VerifyReport report;
  for (const auto &[file, slot] : files) {
    std::string path = bundle + "/weights/" + file;
    std::string remedy = "`k2c pack` with the checkpoint writes its blobs again; a table needs `k2c compile`";
    Expected<FileDigest> digest = digestBundleFile(bundle, "weights/" + file);
    ++report.files;
    if (!digest) {
      report.problems.push_back(digest.takeError());
      if (report.problems.back().remedy.empty())
        report.problems.back().remedy = remedy;
      continue;
    }
    report.bytes += digest->bytes;
    if (digest->bytes != slot->bytes)
      report.problems.push_back(
          {path, "has " + std::to_string(digest->bytes) + " bytes, the index says " + std::to_string(slot->bytes),
           remedy});
    else if (digest->xxh3 != slot->xxh3)
      report.problems.push_back({path, "hashes to " + digest->xxh3 + ", the index says " + slot->xxh3, remedy});
    else if (digest->chunks != slot->chunks)
      report.problems.push_back({path, "has the hash that the index says, its chunks have others", remedy});
  }
  return report;
}

} // namespace k2c
