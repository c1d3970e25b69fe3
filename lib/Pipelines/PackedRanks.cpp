//===- PackedRanks.cpp - What some ranks read of the weights --------------===//
//
// By the rule of the runtime (program/Weights.cpp): of a layer what is of the rank's stage, of no layer what its stage
// enters or ends, of a weight in parts the one of its place, and of experts those in its slots.
//
//===----------------------------------------------------------------------===//
#include "PackedRanks.h"

#include "Stages.h"
#include "base/ExpertPlacement.h"
#include "base/File.h"
#include "base/Utf8.h"
#include <charconv>
#include <filesystem>

using nlohmann::json;

namespace k2c {

namespace {

/// "8-15,20" as numbers, ascending; empty: it is no such list.
std::vector<int64_t> readRankList(const std::string &text) {
  std::set<int64_t> ranks;
  for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
    int64_t first = -1, last = -1;
    at = std::from_chars(at, end, first).ptr;
    last = first;
    if (at < end && *at == '-')
      at = std::from_chars(at + 1, end, last = -1).ptr;
    const bool hasMore = at + 1 < end && *at == ',';
    if (first < 0 || last < first || last >= maxCompiledRanks || (at < end && !hasMore))
      return {};
    for (int64_t rank = first; rank <= last; ++rank)
      ranks.insert(rank);
    at += hasMore;
  }
  return {ranks.begin(), ranks.end()};
}

/// Who reads a slot: of each layer the ranks of its stage, of no layer those of `stage`, the whole of it or a part.
struct SlotReaders {
  SlotStage stage = SlotStage::All;
  int64_t part = 0, parts = 1;
};

/// The readers of each slot by "shares" of the manifest, which name `count` slots; none: they do not.
std::optional<std::vector<SlotReaders>> slotReaders(const json &manifest, size_t count) {
  std::vector<SlotReaders> readers;
  auto number = [](const json &run, const char *key) {
    const auto found = run.find(key);
    return found == run.end() ? 1 : found->is_number_integer() ? found->get<int64_t>() : 0;
  };
  const auto shares = manifest.find("shares");
  for (const json &run : shares != manifest.end() && shares->is_array() ? *shares : json::array()) {
    const int64_t slots = run.is_object() && run.contains("slots") ? number(run, "slots") : 0;
    const int64_t parts = run.is_object() ? number(run, "parts") : 0;
    if (slots < 1 || parts < 1 || slots > static_cast<int64_t>(count - readers.size()))
      return std::nullopt;
    const json stage = run.value("stage", json());
    for (int64_t slot = 0; slot < slots; ++slot)
      readers.push_back({stage == "first"  ? SlotStage::First
                         : stage == "last" ? SlotStage::Last
                                           : SlotStage::All,
                         slot % parts, parts});
  }
  return readers.size() == count ? std::optional(readers) : std::nullopt;
}

/// What one rank has of the model.
class RankReader {
public:
  RankReader(const ParallelLayout &layout, const std::vector<int64_t> &bounds, int64_t rank)
      : stage(rank / layout.devicesOfStage() % layout.pp), place(rank % layout.devicesOfStage()),
        expertRank(place / layout.etp), from(bounds[stage]), end(bounds[stage + 1]), isFirst(stage == 0),
        isLast(stage + 1 == layout.pp) {}

  bool reads(const WeightSlot &slot, const SlotReaders &readers) const {
    const bool isOfStage = slot.layer                          ? *slot.layer >= from && *slot.layer < end
                           : readers.stage == SlotStage::First ? isFirst
                           : readers.stage == SlotStage::Last  ? isLast
                                                               : true;
    return isOfStage && readers.part == place % readers.parts;
  }
  /// Adds its experts of `slot`, a table: by the placement where ranks divide them, else all.
  void addExperts(const WeightSlot &slot, const std::optional<ExpertPlacement> &placement,
                  std::set<int32_t> &experts) const {
    for (int32_t expert = 0; !placement && expert < slot.experts; ++expert)
      experts.insert(expert);
    if (!placement)
      return;
    const auto placed = placement->layers.find(slot.layer.value_or(-1));
    if (placed == placement->layers.end())
      return;
    const auto own = placed->second.decode.begin() + expertRank * placement->slotsOfRank;
    experts.insert(own, own + placement->slotsOfRank);
  }

private:
  const int64_t stage, place, expertRank, from, end;
  const bool isFirst, isLast;
};

} // namespace

bool PackedRanks::takes(const WeightSlot &slot, int64_t expert) const {
  const auto found = slots.find(slot.slot);
  if (found == slots.end())
    return ranks.empty();
  return expert < 0 || found->second.count(static_cast<int32_t>(expert)) > 0;
}

Expected<PackedRanks> readPackedRanks(const std::string &bundle, const std::string &list, const json &manifest,
                                      const ModelSpec &spec, const WeightMap &map) {
  PackedRanks packed;
  if (list.empty())
    return packed;
  const std::string path = (std::filesystem::path(bundle) / "manifest.json").string();
  const int64_t count = manifest["topology"]["ranks"];
  packed.ranks = readRankList(list);
  if (packed.ranks.empty() || packed.ranks.back() >= count)
    return Error{"--ranks " + shortened(list),
                 "is no list of ranks of the program, which has 0 to " + std::to_string(count - 1),
                 "name some of them: --ranks 0-3,6"};
  const json &said = manifest["layout"], &name = manifest["model"]["name"];
  const std::optional<ParallelLayout> layout =
      readCompiledLayout(said.is_string() ? said.get<std::string>() : "", count, spec.layerCount());
  if (!layout)
    return damaged(bundle, "the layout of its manifest is none of " + std::to_string(count) + " ranks");
  const std::optional<std::vector<SlotReaders>> readers = slotReaders(manifest, map.slots.size());
  if (!readers)
    return damaged(path, "'shares' do not name the " + std::to_string(map.slots.size()) + " slots of weights/map.json");
  std::optional<ExpertPlacement> placement;
  if (spec.moe && layout->dividesExperts()) {
    const std::string file = (std::filesystem::path(bundle) / placementFile).string();
    Expected<std::string> text = readUserFile(file, maxPlacementBytes);
    if (!text)
      return text.takeError();
    const PlacedModel model{name.is_string() ? name.get<std::string>() : spec.name, spec.moeLayers(), spec.moe->experts,
                            layout->ep, std::nullopt};
    Expected<ExpertPlacement> read = readExpertPlacement(*text, file, model, "compile the bundle again");
    if (!read)
      return read.takeError();
    placement = std::move(*read);
  }
  const std::vector<int64_t> bounds = stageBounds(spec, *layout);
  for (const int64_t rank : packed.ranks) {
    const RankReader reader(*layout, bounds, rank);
    for (const WeightSlot &slot : map.slots)
      if (reader.reads(slot, (*readers)[static_cast<size_t>(slot.slot)])) {
        std::set<int32_t> &experts = packed.slots[slot.slot];
        if (slot.experts > 0)
          reader.addExperts(slot, placement, experts);
      }
  }
  return packed;
}

} // namespace k2c
