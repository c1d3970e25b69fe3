#include "base/RouteStatistics.h"
#include "base/ExpertPlacement.h"
#include "base/File.h"
#include "base/JsonFields.h"
#include "base/Utf8.h"
#include <charconv>

using namespace k2c;

namespace {

constexpr int64_t maxFileBytes = int64_t(1) << 30;
constexpr int64_t maxExperts = int64_t(1) << 20;
constexpr int64_t maxRanks = 4096;
constexpr int64_t maxLayers = 65536;
constexpr size_t maxEntries = size_t(1) << 24;
constexpr size_t maxChosen = 1024;              // experts of a token
constexpr int64_t maxTokens = int64_t(1) << 36; // of all entries of a phase of a layer; and output rows

std::vector<SourcedChoice> readPhase(const JsonFields &layer, const char *phase, const RouteStatistics &of) {
  std::vector<SourcedChoice> choices;
  int64_t left = maxTokens;
  for (const JsonFields &entry : layer.objects(phase, maxEntries)) {
    SourcedChoice choice;
    choice.source = entry.integer("source", 0, of.ranks - 1);
    int64_t least = 0;
    for (const int64_t expert : entry.integers("experts", 0, of.experts - 1, maxChosen)) {
      if (expert < least)
        entry.fail("experts",
                   "has " + std::to_string(expert) + " behind " + std::to_string(least - 1) + ", must be ascending");
      choice.experts.push_back(static_cast<int32_t>(expert));
      least = expert + 1;
    }
    choice.tokens = entry.integer("tokens", 1, maxTokens);
    left -= choice.tokens;
    if (left < 0)
      layer.fail(phase, "has more than " + std::to_string(maxTokens) + " tokens");
    choices.push_back(std::move(choice));
  }
  return choices;
}

int64_t layerOf(const JsonFields &layers, const std::string &key) {
  int64_t layer = -1;
  const char *const end = key.data() + key.size();
  const bool isNumber = std::from_chars(key.data(), end, layer).ptr == end;
  if (!isNumber || layer < 0 || layer >= maxLayers || std::to_string(layer) != key)
    layers.fail(shortened(key, maxOfKey), "is no number of a layer, 0 to " + std::to_string(maxLayers - 1));
  return layer;
}

RouteStatistics readRoot(const JsonFields &root) {
  root.integer("format", 1, 1);
  RouteStatistics statistics;
  statistics.model = root.string("model");
  statistics.experts = root.integer("experts", 1, maxExperts);
  statistics.ranks = root.integer("ranks", 1, maxRanks);
  if (root.has("compute")) {
    statistics.compute = root.string("compute");
    if (statistics.compute != "f32" && statistics.compute != "bf16")
      root.fail("compute", "is \"" + shortened(statistics.compute) + "\", must be f32 or bf16");
  }
  if (root.has("outputs")) {
    const JsonFields outputs = root.object("outputs");
    statistics.outputs = {outputs.integer("prefill", 0, maxTokens), outputs.integer("decode", 0, maxTokens)};
  }
  const JsonFields layers = root.object("layers");
  for (const auto &[key, layer] : layers.members())
    statistics.layers[layerOf(layers, key)] = {readPhase(layer, "prefill", statistics),
                                               readPhase(layer, "decode", statistics)};
  return statistics;
}

} // namespace

Expected<RouteStatistics> k2c::parseStatistics(std::string_view text, const std::string &file) {
  return readJsonFields(text, file, readRoot, statisticsRemedy);
}

Expected<RouteStatistics> k2c::readStatistics(const std::string &path) {
  Expected<std::string> text = readUserFile(path, maxFileBytes);
  if (!text)
    return text.takeError();
  return parseStatistics(*text, path);
}
