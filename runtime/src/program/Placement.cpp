// Only what is in a slot is read; what follows from it (k2rt/placement.h) is computed.
#include "program/Placement.h"
#include "base/File.h"
#include "base/JsonFields.h"
#include "base/Utf8.h"
#include "k2rt/ExpertNodes.h"
#include "k2rt/placement.h"
#include <algorithm>

namespace k2c::runtime {

static constexpr size_t maxTables = 64; // in the bits of what a rank says it has

Expected<std::vector<PlacementText>> readPlacementFiles(std::vector<PlacementFile> files) {
  std::stable_sort(files.begin(), files.end(),
                   [](const PlacementFile &a, const PlacementFile &b) { return a.fromStep < b.fromStep; });
  std::vector<PlacementText> texts;
  for (const auto &[path, fromStep] : files) {
    if (!texts.empty() && texts.back().fromStep == fromStep)
      return Error{K2RT_INVALID_ARGUMENT, "--placement",
                   "names " + texts.back().place + " and " + path + " from step " + std::to_string(fromStep) + " on",
                   "name one, or another step: --placement FILE@STEP"};
    if (path == "-")
      return Error{K2RT_INVALID_ARGUMENT, "--placement -", "is standard input, and every rank reads the file",
                   "name a file"};
    Expected<std::string> text = readUserFile(path, maxPlacementBytes);
    if (!text)
      return text.takeError();
    texts.push_back({path, std::move(*text), fromStep, /*isOwn=*/false});
  }
  return texts;
}

size_t tableAt(const std::vector<PlacementPeriod> &periods, int64_t step, bool isPrefill) {
  const auto after = std::upper_bound(periods.begin(), periods.end(), step,
                                      [](int64_t at, const PlacementPeriod &period) { return at < period.fromStep; });
  if (after == periods.begin())
    return 0; // no tables
  return isPrefill ? after[-1].prefill : after[-1].decode;
}

/// A router that is bound to nodes chooses by where experts are, so that other nodes would be other results.
static Status checkNodes(const std::string &place, const ExpertNodes &nodes, const Manifest &manifest) {
  if (manifest.expertNodes.empty() || nodes.hash() == manifest.expertNodes)
    return {};
  return Error{K2RT_INVALID_BUNDLE, place,
               "has experts on other nodes than the program's routers choose by: their hash is " + nodes.hash() +
                   ", that of numerics " + shortened(manifest.numericsId, maxQuoted) + " is " +
                   shortened(manifest.expertNodes, maxQuoted / 2),
               "leave every expert on its nodes, or compile the bundle without --route-limit and --locality-penalty"};
}

/// A table of each layer.
std::vector<int32_t> Placement::fill(const ExpertPlacement &placement, std::vector<int32_t> PlacedExperts::*phase,
                                     int64_t nodes) const {
  const int64_t perLayer = k2rt_placement_entries(expertCount, slots);
  std::vector<int32_t> entries(perLayer * static_cast<int64_t>(moeLayers.size()));
  std::vector<int32_t> list(k2rt_places_entries(expertCount, slots));
  int32_t *table = entries.data();
  for (const auto &[layer, placed] : placement.layers) {
    std::copy((placed.*phase).begin(), (placed.*phase).end(), table);
    k2rt_placement_fill(table, list.data(), expertCount, slots, ranks, nodes, rank);
    table += perLayer;
  }
  return entries;
}

Expected<Placement> Placement::parse(const std::vector<PlacementText> &texts, const Manifest &manifest, int32_t rank) {
  const RankFacts &facts = manifest.ranks;
  const PlacedModel model{manifest.modelName, manifest.moeLayers, facts.placement.experts, facts.expertRanks(),
                          facts.placement.slots / facts.expertRanks()};
  Placement all;
  all.moeLayers = manifest.moeLayers;
  all.expertCount = model.experts;
  all.slots = facts.placement.slots;
  all.ranks = facts.expertRanks();
  all.rank = facts.expertRankOf(rank);
  for (const auto &[place, text, fromStep, isOwn] : texts) {
    const char *const remedy = isOwn ? compileAgain : "make it with k2c place STATISTICS --bundle DIR";
    Expected<ExpertPlacement> read = readExpertPlacement(text, place, model, remedy);
    if (!read)
      return read.takeError();
    for (const auto phase : {&PlacedExperts::prefill, &PlacedExperts::decode})
      if (Status same = checkNodes(place, expertNodes(*read, phase, model.experts, facts.stageNodes()), manifest);
          !same)
        return same.takeError();
    all.numbered.push_back(all.fill(*read, &PlacedExperts::prefill, facts.stageNodes()));
    const size_t prefill = all.numbered.size() - 1;
    if (read->hasPhases())
      all.numbered.push_back(all.fill(*read, &PlacedExperts::decode, facts.stageNodes()));
    all.inOrder.push_back({place, fromStep, prefill, all.numbered.size() - 1, isOwn});
    if (all.numbered.size() > maxTables)
      return Error{K2RT_INVALID_ARGUMENT, "--placement",
                   "a run has at most " + std::to_string(maxTables) + " tables, number " +
                       std::to_string(all.numbered.size()) + " is of " + place,
                   "give fewer files"};
  }
  return all;
}

const int32_t *Placement::expertsOf(size_t table, int64_t layer) const {
  const auto found = std::lower_bound(moeLayers.begin(), moeLayers.end(), layer);
  if (found == moeLayers.end() || *found != layer || numbered.empty())
    return nullptr;
  return numbered[table].data() + (found - moeLayers.begin()) * k2rt_placement_entries(expertCount, slots) +
         rank * slotsOfRank();
}

} // namespace k2c::runtime
