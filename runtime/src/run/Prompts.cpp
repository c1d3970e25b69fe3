// Prompts and routes are the user's files: sizes and every number are checked, errors name the file and the place.
//
//   prompts    --prompt-ids 1,2,3, a batch file of id lists, or text, which needs the bundle's tokenizer
//   routes     what `routes --json` printed: by expert layer and token, experts with their weights
//
// Whether an id is in the vocabulary is not checked here but where a request is added (checkRequest), so that all
// users of the engine get the same check. Routes have no such place: they go to kernels as they are, so each expert
// must exist, none may occur twice for a token, and each weight must be a finite float32. A token may list fewer
// experts than the model chooses, or none; the rest of its places say K2RT_ROUTE_NONE. Layers that the model does not
// route are refused, since they would otherwise be ignored.
#include "base/File.h"
#include "base/Json.h"
#include "base/Utf8.h"
#include "run/Run.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace k2c::runtime {

static constexpr int64_t maxPromptBytes = int64_t(256) << 20;

void addPromptFlags(CLI::App &command, PromptFlags &flags, bool withText, bool withBatch) {
  CLI::Option_group &source = *command.add_option_group("prompt", "exactly one");
  CLI::Option *const ids = source.add_option("--prompt-ids", flags.ids, "token ids: 1,2,3");
  CLI::Option *batch = nullptr;
  if (withBatch)
    batch = source
                .add_option("--batch-file", flags.batchFile,
                            "a JSON list; an entry is an id list or {\"ids\":[..],\"seed\":n}")
                ->check(notEmpty());
  if (withText) {
    source.add_option("--prompt", flags.text, "text");
    source.add_option("--prompt-file", flags.textFile, "a file with text; - is standard input")->check(notEmpty());
    source.add_option("--chat", flags.chatFile, "a JSON list of messages");
    CLI::Option *const noSpecial =
        command.add_flag("--no-special", flags.noSpecial, "leave out what the tokenizer adds to a text");
    noSpecial->excludes(ids); // ids are what they are
    if (batch)
      noSpecial->excludes(batch);
  }
  source.require_option(1);
}

static Expected<std::vector<int32_t>> parseIds(const std::string &text) {
  std::vector<int32_t> ids;
  const char *at = text.data(), *const end = at + text.size();
  for (;;) {
    while (at < end && *at == ' ')
      ++at;
    int32_t id = 0;
    const auto [next, problem] = std::from_chars(at, end, id);
    if (problem != std::errc() || (next < end && *next != ',' && *next != ' '))
      return Error{"--prompt-ids",
                   "\"" + shortened(std::string(at, end), 20) + "\" does not begin with a token id of 32 bits",
                   "write 1,2,3"};
    ids.push_back(id);
    at = next;
    while (at < end && *at == ' ')
      ++at;
    if (at == end)
      return ids;
    at += *at == ',';
  }
}

static Expected<nlohmann::json> readJson(const std::string &path) {
  Expected<std::string> text = readUserFile(path, maxPromptBytes);
  if (!text)
    return text.takeError();
  return parseJsonValue(*text, path);
}

static bool isId(const nlohmann::json &value) {
  return value.is_number_integer() && value >= std::numeric_limits<int32_t>::min() &&
         value <= std::numeric_limits<int32_t>::max();
}

/// A finite float32: what is larger would make the logits NaN.
static bool isWeight(const nlohmann::json &value) {
  return value.is_number() && std::fabs(value.get<double>()) <= double(std::numeric_limits<float>::max());
}

/// How a batch file is written, for errors.
static constexpr const char *batchRemedy = R"(write [[1,2,3],{"ids":[4,5],"seed":7}])";

static Expected<std::vector<int32_t>> readIdList(const nlohmann::json &list, const std::string &place) {
  if (!list.is_array())
    return Error{place, "is not a list of token ids", batchRemedy};
  std::vector<int32_t> ids;
  for (const nlohmann::json &id : list) {
    if (!isId(id))
      return Error{place, "has an element that is no token id", batchRemedy};
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

/// The seed of an entry, if it has one. Error: a key that is none, a seed that is no number of 64 bits.
static Expected<std::optional<uint64_t>> readSeed(const nlohmann::json &entry, const std::string &place) {
  for (const auto &member : entry.items())
    if (member.key() != "ids" && member.key() != "seed")
      return Error{place, "has the key \"" + shortened(member.key()) + "\"; an entry has ids and seed", batchRemedy};
  if (!entry.contains("ids"))
    return Error{place, "has no ids", batchRemedy};
  if (!entry.contains("seed"))
    return std::optional<uint64_t>();
  if (!entry["seed"].is_number_unsigned())
    return Error{place + ".seed", "is not a whole number from 0 to 18446744073709551615", batchRemedy};
  return std::optional<uint64_t>(entry["seed"].get<uint64_t>());
}

static Expected<Prompts> readBatch(const std::string &path) {
  Expected<nlohmann::json> document = readJson(path);
  if (!document)
    return document.takeError();
  Prompts prompts;
  prompts.isBatch = true;
  if (!document->is_array() || document->empty())
    return Error{path, "is not a list of at least one prompt", batchRemedy};
  for (size_t i = 0; i < document->size(); ++i) {
    const nlohmann::json &entry = (*document)[i];
    const std::string place = path + ": [" + std::to_string(i) + "]";
    std::optional<uint64_t> seed;
    if (entry.is_object()) {
      Expected<std::optional<uint64_t>> read = readSeed(entry, place);
      if (!read)
        return read.takeError();
      seed = *read;
    }
    Expected<std::vector<int32_t>> ids =
        entry.is_object() ? readIdList(entry["ids"], place + ".ids") : readIdList(entry, place);
    if (!ids)
      return ids.takeError();
    prompts.ids.push_back(std::move(*ids));
    prompts.seeds.push_back(seed);
  }
  return prompts;
}

Expected<Prompts> readPrompts(const PromptFlags &flags, const Tokenizer *tokenizer) {
  if (flags.chatFile)
    return Error{K2RT_UNSUPPORTED, "--chat", "chat templates are not in this build", "use --prompt"};
  if (flags.batchFile)
    return readBatch(*flags.batchFile);
  Prompts prompts;
  if (flags.ids) {
    Expected<std::vector<int32_t>> ids = parseIds(*flags.ids);
    if (!ids)
      return ids.takeError();
    prompts.ids.push_back(std::move(*ids));
    return prompts;
  }
  std::string text = flags.text.value_or("");
  if (flags.textFile) {
    Expected<std::string> read = readUserFile(*flags.textFile, maxPromptBytes);
    if (!read)
      return read.takeError();
    text = std::move(*read);
  }
  if (!tokenizer)
    return Error{flags.textFile ? "--prompt-file" : "--prompt", "the bundle has no tokenizer",
                 "use --prompt-ids, or compile from a folder with a tokenizer"};
  Expected<std::vector<int32_t>> ids = tokenizer->encode(text, !flags.noSpecial);
  if (!ids)
    return ids.takeError();
  prompts.ids.push_back(std::move(*ids));
  return prompts;
}

/// Copies one layer's lists into its part of the forced routes; a token may have fewer than top_k experts, or none.
static Status readLayerRoutes(const nlohmann::json &layer, const Manifest &manifest, const std::string &place,
                              int64_t offset, ForcedRoutes &routes) {
  const auto wrong = [&](const std::string &message) {
    return Error{place, message, "use what `routes --json` prints for the same prompt"};
  };
  for (const char *key : {"experts", "weights"})
    if (!layer.is_object() || !layer.contains(key) || !layer[key].is_array() ||
        static_cast<int64_t>(layer[key].size()) < routes.tokens)
      return wrong(std::string("has no list \"") + key + "\" of " + std::to_string(routes.tokens) + " tokens");
  for (int64_t token = 0; token < routes.tokens; ++token) {
    const nlohmann::json &experts = layer["experts"][token], &weights = layer["weights"][token];
    const size_t k = static_cast<size_t>(manifest.topK);
    if (!experts.is_array() || !weights.is_array() || experts.size() > k || weights.size() != experts.size())
      return wrong("token " + std::to_string(token) + " does not list as many experts as weights, at most " +
                   std::to_string(k));
    for (size_t j = 0; j < experts.size(); ++j) {
      if (!isId(experts[j]) || experts[j] < 0 || experts[j] >= manifest.experts || !isWeight(weights[j]))
        return wrong("token " + std::to_string(token) + " has an expert outside 0.." +
                     std::to_string(manifest.experts - 1) + " or a weight that is no float32 number");
      if (std::find(experts.begin(), experts.begin() + static_cast<int64_t>(j), experts[j]) !=
          experts.begin() + static_cast<int64_t>(j))
        return wrong("token " + std::to_string(token) + " lists expert " + experts[j].dump() + " twice");
      routes.experts[offset + token * static_cast<int64_t>(k) + static_cast<int64_t>(j)] = experts[j].get<int32_t>();
      routes.weights[offset + token * static_cast<int64_t>(k) + static_cast<int64_t>(j)] = weights[j].get<float>();
    }
  }
  return {};
}

Expected<ForcedRoutes> readRoutes(const std::string &path, const Manifest &manifest, int64_t tokens) {
  Expected<nlohmann::json> document = readJson(path);
  if (!document)
    return document.takeError();
  const int64_t layers = static_cast<int64_t>(manifest.moeLayers.size());
  ForcedRoutes routes;
  routes.tokens = tokens;
  routes.experts.resize(layers * tokens * manifest.topK, K2RT_ROUTE_NONE);
  routes.weights.resize(layers * tokens * manifest.topK);
  if (!document->is_object() || !document->contains("layers") || !(*document)["layers"].is_object())
    return Error{path, "has no object \"layers\"", "use what `routes --json` prints"};
  const nlohmann::json &list = (*document)["layers"];
  for (const auto &entry : list.items())
    if (std::none_of(manifest.moeLayers.begin(), manifest.moeLayers.end(),
                     [&](int64_t layer) { return std::to_string(layer) == entry.key(); }))
      return Error{path + ": layers." + shortened(entry.key()), "is not an expert layer of this model",
                   "use what `routes --json` prints for the same model"};
  for (int64_t i = 0; i < layers; ++i) {
    const std::string name = std::to_string(manifest.moeLayers[i]);
    const std::string place = path + ": layers." + name;
    if (!list.contains(name))
      return Error{place, "is missing", "use what `routes --json` prints"};
    Status read = readLayerRoutes(list[name], manifest, place, i * tokens * manifest.topK, routes);
    if (!read)
      return read.takeError();
  }
  return routes;
}

} // namespace k2c::runtime
