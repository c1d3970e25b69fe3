#include "run/StatisticsFile.h"
#include "base/RouteStatistics.h"
#include "base/Utf8.h"
#include "run/JsonWriter.h"

namespace k2c::runtime {

void writeStatistics(const ExpertStatistics &statistics, const Manifest &manifest, FILE *file) {
  JsonWriter json(file);
  json.beginObject().key("format").value(1).key("model").value(manifest.modelName);
  json.key("experts")
      .value(manifest.experts)
      .key("ranks")
      .value(manifest.ranks.sources())
      .key("compute")
      .value(manifest.compute)
      .key("layers")
      .beginObject();
  for (size_t layer = 0; layer < manifest.moeLayers.size(); ++layer) {
    json.key(std::to_string(manifest.moeLayers[layer])).beginObject();
    for (const Phase phase : {Phase::prefill, Phase::decode}) {
      json.key(phaseNames[static_cast<size_t>(phase)]).beginList();
      for (const auto &[set, tokens] : statistics.of(layer, phase)) {
        json.beginObject().key("source").value(set.first).key("experts");
        json.list(set.second.data(), static_cast<int64_t>(set.second.size()));
        json.key("tokens").value(tokens).endObject();
      }
      json.endList();
    }
    json.endObject();
  }
  json.endObject().key("outputs").beginObject();
  for (const Phase phase : {Phase::prefill, Phase::decode})
    json.key(phaseNames[static_cast<size_t>(phase)]).value(statistics.outputsOf(phase));
  json.endObject().endObject().endLine();
}

static Status checkModel(const RouteStatistics &statistics, const std::string &file, const Manifest &manifest) {
  const std::string write = std::string(statisticsRemedy) + " of this bundle";
  if (statistics.model != manifest.modelName)
    return Error{file + ": model",
                 "is " + shortened(statistics.model) + ", the bundle is of " + shortened(manifest.modelName), write};
  if (statistics.experts != manifest.experts)
    return Error{file + ": experts",
                 "is " + std::to_string(statistics.experts) + ", the bundle has " + std::to_string(manifest.experts),
                 write};
  for (const int64_t layer : manifest.moeLayers)
    if (statistics.layers.count(layer) == 0)
      return Error{file + ": layers", "has no layer " + std::to_string(layer) + ", which has experts", write};
  if (statistics.layers.size() != manifest.moeLayers.size())
    return Error{file + ": layers",
                 "has " + std::to_string(statistics.layers.size()) + " entries, the bundle has " +
                     std::to_string(manifest.moeLayers.size()) + " layers with experts",
                 write};
  return {};
}

Expected<std::map<int64_t, ExpertLoads>> readLoads(const std::string &path, const Manifest &manifest) {
  Expected<RouteStatistics> statistics = readStatistics(path);
  if (!statistics)
    return statistics.takeError();
  if (Status right = checkModel(*statistics, path, manifest); !right)
    return right.takeError();
  std::map<int64_t, ExpertLoads> loads;
  for (const auto &[layer, phases] : statistics->layers) {
    ExpertLoads &ofLayer = loads.emplace(layer, manifest.experts).first->second;
    for (const std::vector<SourcedChoice> *phase : {&phases.prefill, &phases.decode})
      for (const SourcedChoice &choice : *phase)
        for (const int32_t expert : choice.experts)
          ofLayer.add(expert, choice.tokens);
  }
  return loads;
}

} // namespace k2c::runtime
