// Slots are counted over all ranks here; the file has a list of each rank's.
#include "base/ExpertPlacement.h"
#include "base/JsonFields.h"
#include "base/JsonText.h"
#include "base/Utf8.h"
#include <algorithm>
#include <nlohmann/json.hpp>

using nlohmann::json;

namespace k2c {

namespace {

constexpr int64_t noExpert = -1;

/// The lists of one phase, `key` of a layer. Sets the slots of a rank where nobody has said them.
std::vector<int32_t> readPhase(const JsonFields &layer, const char *key, const PlacedModel &model,
                               std::optional<int64_t> &slotsOfRank) {
  const auto lists = layer.integerLists(key, 0, model.experts - 1, noExpert, static_cast<size_t>(model.ranks),
                                        static_cast<size_t>(slotsOfRank.value_or(model.experts)));
  if (static_cast<int64_t>(lists.size()) != model.ranks)
    layer.fail(key, "has the slots of " + std::to_string(lists.size()) + " ranks, the program has " +
                        std::to_string(model.ranks));
  std::vector<int32_t> experts;
  std::vector<bool> isPlaced(model.experts);
  for (int64_t rank = 0; rank < model.ranks; ++rank) {
    const std::vector<int64_t> &own = lists[rank];
    if (const auto slots = static_cast<int64_t>(own.size()); slotsOfRank.value_or(slots) != slots)
      layer.fail(key, "has " + std::to_string(slots) + " slots of rank " + std::to_string(rank) + ", the program has " +
                          std::to_string(*slotsOfRank));
    slotsOfRank = static_cast<int64_t>(own.size());
    for (auto slot = own.begin(); slot != own.end(); ++slot) {
      if (*slot != noExpert && std::find(own.begin(), slot, *slot) != slot)
        layer.fail(key, "has expert " + std::to_string(*slot) + " twice on rank " + std::to_string(rank));
      if (*slot != noExpert)
        isPlaced[*slot] = true;
      experts.push_back(static_cast<int32_t>(*slot));
    }
  }
  if (const auto absent = std::find(isPlaced.begin(), isPlaced.end(), false); absent != isPlaced.end())
    layer.fail(key, "has no slot for expert " + std::to_string(absent - isPlaced.begin()));
  return experts;
}

PlacedExperts readLayer(const JsonFields &layer, const PlacedModel &model, std::optional<int64_t> &slotsOfRank) {
  if (!layer.has("prefill") && !layer.has("decode")) {
    std::vector<int32_t> both = readPhase(layer, "both", model, slotsOfRank);
    return {both, both};
  }
  if (layer.has("both"))
    layer.fail("both", "stands beside a phase's own; leave out one of them");
  std::vector<int32_t> prefill = readPhase(layer, "prefill", model, slotsOfRank);
  return {std::move(prefill), readPhase(layer, "decode", model, slotsOfRank)};
}

json listsOf(const std::vector<int32_t> &experts, int64_t slotsOfRank) {
  json ranks = json::array();
  for (size_t slot = 0; slot < experts.size(); ++slot) {
    if (slot % static_cast<size_t>(slotsOfRank) == 0)
      ranks.push_back(json::array());
    ranks.back().push_back(experts[slot] == noExpert ? json() : json(experts[slot]));
  }
  return ranks;
}

} // namespace

bool ExpertPlacement::hasPhases() const {
  return std::any_of(layers.begin(), layers.end(),
                     [](const auto &layer) { return layer.second.prefill != layer.second.decode; });
}

ExpertPlacement placedInOrder(const PlacedModel &model, bool hasCopies) {
  const int64_t slots = model.slotsOfRank.value_or((model.experts + model.ranks - 1) / model.ranks);
  std::vector<int32_t> experts(model.ranks * slots, noExpert);
  for (int64_t slot = 0; slot < static_cast<int64_t>(experts.size()); ++slot)
    if (slot % slots < model.experts && (hasCopies || slot < model.experts))
      experts[slot] = static_cast<int32_t>(slot % model.experts);
  ExpertPlacement placement;
  placement.slotsOfRank = slots;
  for (const int64_t layer : model.layers)
    placement.layers[layer] = {experts, experts};
  return placement;
}

Expected<ExpertPlacement> readExpertPlacement(std::string_view text, const std::string &place, const PlacedModel &model,
                                              const char *remedy) {
  const auto read = [&](const JsonFields &root) {
    root.integer("format", 1, 1);
    if (root.string("model") != model.name)
      root.fail("model", "is " + shortened(root.string("model"), maxQuoted / 2) + ", the bundle's is " +
                             shortened(model.name, maxQuoted / 2));
    root.integer("experts", model.experts, model.experts);
    root.integer("ranks", model.ranks, model.ranks);
    const JsonFields layers = root.object("layers");
    if (layers.members().size() != model.layers.size())
      root.fail("layers", "has " + std::to_string(layers.members().size()) + " entries, the model has " +
                              std::to_string(model.layers.size()) + " layers of experts");
    ExpertPlacement placement;
    std::optional<int64_t> slotsOfRank = model.slotsOfRank;
    for (const int64_t layer : model.layers)
      placement.layers[layer] = readLayer(layers.object(std::to_string(layer)), model, slotsOfRank);
    placement.slotsOfRank = slotsOfRank.value_or(0);
    return placement;
  };
  return readJsonFields(text, place, read, remedy);
}

std::string placementText(const PlacedModel &model, const ExpertPlacement &placement) {
  json layers = json::object();
  for (const auto &[layer, placed] : placement.layers) {
    json &entry = layers[std::to_string(layer)];
    if (placed.prefill == placed.decode)
      entry = {{"both", listsOf(placed.prefill, placement.slotsOfRank)}};
    else
      entry = {{"prefill", listsOf(placed.prefill, placement.slotsOfRank)},
               {"decode", listsOf(placed.decode, placement.slotsOfRank)}};
  }
  const json text = {
      {"format", 1}, {"model", model.name}, {"experts", model.experts}, {"ranks", model.ranks}, {"layers", layers}};
  return jsonText(text) + "\n";
}

} // namespace k2c
