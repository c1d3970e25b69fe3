// Only what is in a slot is read; what follows from it (k2rt/placement.h) is computed.
#include "program/Placement.h"
#include "base/JsonFields.h"
#include "base/Utf8.h"
#include "k2rt/placement.h"
#include <algorithm>

namespace k2c::runtime {

namespace {

/// Fills expert_of_slot of one layer's table.
void readLayer(const JsonFields &layer, int64_t experts, int64_t ranks, int64_t slotsOfRank, int32_t *table) {
  int32_t *const expertOfSlot = table + experts;
  const std::vector<std::vector<int64_t>> lists = layer.integerLists(
      "both", 0, experts - 1, /*none=*/-1, static_cast<size_t>(ranks), static_cast<size_t>(slotsOfRank));
  if (static_cast<int64_t>(lists.size()) != ranks)
    layer.fail("both",
               "has the slots of " + std::to_string(lists.size()) + " ranks, the program has " + std::to_string(ranks));
  std::fill_n(table, experts, -1);
  std::fill_n(expertOfSlot, ranks * slotsOfRank, -1);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (static_cast<int64_t>(lists[rank].size()) != slotsOfRank)
      layer.fail("both", "has " + std::to_string(lists[rank].size()) + " slots of rank " + std::to_string(rank) +
                             ", the program has " + std::to_string(slotsOfRank));
    for (size_t slot = 0; slot < lists[rank].size(); ++slot) {
      const int64_t expert = lists[rank][slot], physical = rank * slotsOfRank + static_cast<int64_t>(slot);
      if (expert < 0)
        continue;
      if (table[expert] >= 0)
        layer.fail("both", "has expert " + std::to_string(expert) + " in slots " + std::to_string(table[expert]) +
                               " and " + std::to_string(physical) + ": copies of experts are not in this build");
      table[expert] = static_cast<int32_t>(physical);
      expertOfSlot[physical] = static_cast<int32_t>(expert);
    }
  }
  if (const int32_t *absent = std::find(table, table + experts, -1); absent != table + experts)
    layer.fail("both", "has no slot for expert " + std::to_string(absent - table));
}

} // namespace

int32_t *Placement::tableOf(size_t moeLayer) {
  return entries.data() + static_cast<int64_t>(moeLayer) * k2rt_placement_entries(expertCount, slots);
}

Expected<Placement> Placement::parse(std::string_view text, const std::string &place, const Manifest &manifest) {
  const RankFacts &facts = manifest.ranks;
  return readJsonFields(text, place, [&](const JsonFields &root) {
    root.integer("format", 1, 1);
    if (root.string("model") != manifest.modelName)
      root.fail("model", "is " + shortened(root.string("model"), maxQuoted / 2) + ", the bundle's is " +
                             shortened(manifest.modelName, maxQuoted / 2));
    root.integer("experts", facts.placement.experts, facts.placement.experts);
    root.integer("ranks", facts.count, facts.count);
    Placement placement;
    placement.moeLayers = manifest.moeLayers;
    placement.expertCount = facts.placement.experts;
    placement.slots = facts.placement.slots;
    placement.ranks = facts.count;
    const JsonFields layers = root.object("layers");
    if (layers.members().size() != manifest.moeLayers.size())
      root.fail("layers", "has " + std::to_string(layers.members().size()) + " entries, the model has " +
                              std::to_string(manifest.moeLayers.size()) + " layers of experts");
    const int64_t perLayer = k2rt_placement_entries(placement.expertCount, placement.slots);
    for (size_t i = 0; i < manifest.moeLayers.size(); ++i) {
      const JsonFields layer = layers.object(std::to_string(manifest.moeLayers[i]));
      placement.entries.resize(placement.entries.size() + perLayer);
      readLayer(layer, placement.expertCount, placement.ranks, placement.slotsOfRank(), placement.tableOf(i));
      k2rt_placement_fill(placement.tableOf(i), placement.expertCount, placement.slots, placement.ranks, facts.nodes);
    }
    return placement;
  });
}

const int32_t *Placement::expertsOf(int64_t layer, int64_t rank) const {
  const auto found = std::lower_bound(moeLayers.begin(), moeLayers.end(), layer);
  if (found == moeLayers.end() || *found != layer || entries.empty())
    return nullptr;
  return entries.data() + (found - moeLayers.begin()) * k2rt_placement_entries(expertCount, slots) + expertCount +
         rank * slotsOfRank();
}

} // namespace k2c::runtime
