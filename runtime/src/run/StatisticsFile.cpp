#include "run/StatisticsFile.h"
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

} // namespace k2c::runtime
