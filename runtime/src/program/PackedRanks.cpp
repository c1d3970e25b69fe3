// A host may have the weights of more ranks than run on it.
#include "program/PackedRanks.h"
#include "base/Hash.h"
#include "base/JsonFields.h"
#include "base/Utf8.h"
#include <algorithm>

namespace k2c::runtime {

static constexpr int64_t maxBytes = int64_t(1) << 20;

Expected<PackedRanks> readPackedRanks(const FileList &files, const Manifest &manifest) {
  if (files.hashOf(packedRanksFile) == 0)
    return PackedRanks();
  Expected<std::string> text = files.text(packedRanksFile, maxBytes);
  if (!text)
    return text.takeError();
  return readJsonFields(*text, files.folder() + "/" + packedRanksFile, [&](const JsonFields &root) {
    root.integer("format", 1, 1);
    const int64_t count = manifest.ranks.count;
    PackedRanks packed;
    if (root.has("ranks")) {
      packed.ranks = root.integers("ranks", 0, count - 1, static_cast<size_t>(count));
      if (packed.ranks.empty() || !std::is_sorted(packed.ranks.begin(), packed.ranks.end()))
        root.fail("ranks", "must be some ranks in their order", "run k2c pack");
    }
    const std::optional<uint64_t> common = parseHash(root.string("common"));
    if (!common)
      root.fail("common", "must be a hash of 16 hex digits", "run k2c pack");
    packed.common = common.value_or(0);
    return packed;
  });
}

Status checkPacked(const PackedRanks &packed, const std::string &folder, int32_t rank) {
  if (packed.ranks.empty() || std::binary_search(packed.ranks.begin(), packed.ranks.end(), rank))
    return {};
  std::string text;
  for (const int64_t each : packed.ranks)
    text += (text.empty() ? "" : ",") + std::to_string(each);
  return Error{K2RT_INVALID_BUNDLE, folder,
               "has the weights of ranks " + shortened(text) + ", and rank " + std::to_string(rank) + " runs here",
               "run k2c pack DIR --checkpoint FOLDER --ranks with all ranks of this host"};
}

} // namespace k2c::runtime
