//===- Beside.cpp - what files beside a .onnx file say of its model ---------------------===//
//
// onnxruntime-genai writes genai_config.json, optimum and transformers write config.json and generation_config.json.
// The graph is the model; of the files are taken what no graph has, ids and lengths. What they state of what the graph
// has must be that, or file and graph are of two models.
//
//===----------------------------------------------------------------------===//
#include "Beside.h"

#include "base/Json.h"
#include "base/JsonText.h"
#include "base/Utf8.h"
#include "k2c/Model/PublishedForm.h"
#include "k2c/Model/Rope.h"
#include "k2c/Model/SpecJson.h"
#include <algorithm>
#include <cmath>
#include <filesystem>

namespace fs = std::filesystem;
using nlohmann::json;

namespace k2c::onnx {

namespace {

/// An object of a file.
struct Stated {
  const json &object;
  std::string file; ///< for messages

  /// A member that is neither null nor left out, else null.
  const json *find(const char *key) const {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  /// Error: the file states another number than the graph's, `found`; nothing where the graph has none, 0.
  Status check(const char *key, double found) const {
    const json *const stated = find(key);
    if (!stated || !stated->is_number() || found == 0 || float(stated->get<double>()) == float(found))
      return Status::success();
    return Error{file,
                 std::string(key) + " is " + shortenedJson(*stated) + ", and the graph has " +
                     shortenedJson(found == std::floor(found) ? json(int64_t(found)) : json(found)),
                 "take both from one export"};
  }

  Status check(const std::vector<std::pair<const char *, double>> &all) const {
    for (const auto &[key, found] : all)
      if (Status status = check(key, found); !status)
        return status;
    return Status::success();
  }
};

/// The ids of a key: a number, or a list of them.
std::vector<int64_t> idsOf(const Stated &stated, const char *key) {
  std::vector<int64_t> out;
  if (const json *const found = stated.find(key))
    for (const json &id : found->is_array() ? *found : json::array({*found}))
      if (id.is_number_integer())
        out.push_back(id.get<int64_t>());
  return out;
}

void takeIds(ModelSpec &spec, const Stated &stated) {
  if (std::vector<int64_t> eos = idsOf(stated, "eos_token_id"); !eos.empty())
    spec.eos = std::move(eos);
  if (const std::vector<int64_t> bos = idsOf(stated, "bos_token_id"); !bos.empty())
    spec.bos = bos[0];
  // An id outside of the vocabulary, as exporters write that of padding, is never generated, and begins no text.
  const auto isOutside = [&](int64_t id) { return id < 0 || id >= spec.vocab; };
  spec.eos.erase(std::remove_if(spec.eos.begin(), spec.eos.end(), isOutside), spec.eos.end());
  if (spec.bos && isOutside(*spec.bos))
    spec.bos.reset();
}

/// `key` names the longest sequence.
void takeLength(ModelSpec &spec, const Stated &stated, const char *key) {
  if (const json *const length = stated.find(key); length && length->is_number_integer() && length->get<int64_t>() > 0)
    spec.maxPosition = length->get<int64_t>();
}

/// The JSON object in `folder`/`name`; null: there is no such file.
Expected<json> objectIn(const std::string &folder, const char *name) {
  const fs::path path = fs::path(folder) / name;
  std::error_code error;
  if (!fs::exists(path, error))
    return json();
  Expected<JsonDocument> document = readJsonFile(path.string());
  if (!document)
    return document.takeError();
  if (!document->root().is_object())
    return Error{path.string(), "is not a JSON object", "export or copy the model again"};
  return document->root();
}

/// Numbers of the graph that both kinds of file state.
struct Sizes {
  explicit Sizes(const ModelSpec &spec) {
    if (spec.attentions.empty())
      return;
    const AttentionSpec &attention = spec.attentions.begin()->second;
    if (const GqaSpec *const gqa = std::get_if<GqaSpec>(&attention)) {
      heads = gqa->heads;
      kvHeads = gqa->kvHeads;
      headDim = gqa->headDim;
    } else {
      latent = std::get<MlaSpec>(attention);
      heads = latent.heads;
    }
  }
  int64_t heads = 0, kvHeads = 0, headDim = 0; ///< 0: the graph has none
  MlaSpec latent;
};

Status checkConfig(const ModelSpec &spec, const Stated &config) {
  const Sizes sizes(spec);
  const MoeSpec moe = spec.moe.value_or(MoeSpec());
  const bool isOfExperts = spec.moe && !config.find("moe_intermediate_size");
  if (Status status = config.check({{"vocab_size", spec.vocab},
                                    {"hidden_size", spec.hidden},
                                    {"num_hidden_layers", spec.layerCount()},
                                    {"num_attention_heads", sizes.heads},
                                    {"num_key_value_heads", sizes.kvHeads},
                                    {"head_dim", sizes.headDim},
                                    {"q_lora_rank", sizes.latent.queryLatent},
                                    {"kv_lora_rank", sizes.latent.latent},
                                    {"intermediate_size", isOfExperts ? moe.inter
                                                          : spec.mlp  ? spec.mlp->inter
                                                                      : 0},
                                    {"moe_intermediate_size", moe.inter},
                                    {"n_routed_experts", moe.experts},
                                    {"num_local_experts", moe.experts},
                                    {"num_experts", moe.experts},
                                    {"num_experts_per_tok", moe.topK},
                                    {"rms_norm_eps", spec.normEps}});
      !status)
    return status;
  // Of two pairs a scaling is another theta, and frequencies of no formula have none: the graph does not tell which one
  // its model has.
  const RopeSpec *const rope = spec.ropes.size() == 1 ? &spec.ropes.begin()->second : nullptr;
  if (!rope || rope->dims <= 4 || std::holds_alternative<RopePublished>(rope->scaling))
    return Status::success();
  const double theta = rope->theta;
  const json *const inner = config.find("rope_parameters");
  if (inner && inner->is_object())
    if (Status status = Stated{*inner, config.file + ": rope_parameters"}.check("rope_theta", theta); !status)
      return status;
  return config.check("rope_theta", theta);
}

/// What 16 bits may round: a graph has numbers in its own type, a file has them as decimals.
bool isNear(double a, double b) { return std::abs(a - b) <= 0x1p-8 * std::abs(b); }

/// The graph's angles are among those that the file states, which ropeOf has tried first.
Status checkRopes(const ModelSpec &spec, const ModelSpec &stated, const std::string &file) {
  const std::string remedy = "take both from one export";
  for (const auto &[name, rope] : spec.ropes) {
    const std::vector<float> found = ropeInverseFrequencies(rope);
    std::optional<Error> other;
    for (const auto &[statedName, one] : stated.ropes) {
      const std::vector<float> wanted = ropeInverseFrequencies(one);
      const auto [mine, theirs] = std::mismatch(found.begin(), found.end(), wanted.begin(), wanted.end(), isNear);
      if (mine == found.end() && theirs == wanted.end()) {
        other.reset();
        break;
      }
      if (found.size() != wanted.size())
        other = Error{file,
                      "turns " + std::to_string(wanted.size()) + " pairs of a head's elements, and the graph " +
                          std::to_string(found.size()),
                      remedy};
      else
        other = Error{file,
                      "rope_theta and rope_scaling turn pair " + std::to_string(mine - found.begin()) + " by " +
                          shortenedJson(json(*theirs)) + " a position, and the graph turns it by " +
                          shortenedJson(json(*mine)),
                      remedy};
    }
    if (other)
      return *other;
  }
  return Status::success();
}

/// Attentions, experts, MLPs, norms and layers are the same in both. Left out are lengths and types, angles and their
/// factors (checkRopes), windows, which a file may state in a key that its family has not, and what follows from the
/// weights themselves: their shapes, and whether embedding and head are equal.
Status checkDescription(const ModelSpec &spec, const ModelSpec &stated, const std::string &file) {
  const auto described = [](const ModelSpec &of) {
    json out = sameModelJson(of);
    for (const char *key :
         {"max_position", firstRope, "ropes", "weights", "tied_embeddings", "quantization", "micro_scales"})
      out.erase(key);
    json flat = out.flatten();
    for (auto at = flat.begin(); at != flat.end();)
      at = dottedKey(at.key()).find(".window") == std::string::npos ? std::next(at) : flat.erase(at);
    return flat;
  };
  const json found = described(spec), wanted = described(stated);
  for (const std::string &key : differingKeys(found, wanted)) {
    const bool areBoth = found.contains(key) && wanted.contains(key);
    if (areBoth && found[key].is_number() && wanted[key].is_number_float() &&
        isNear(found[key].get<double>(), wanted[key].get<double>()))
      continue;
    const auto valueIn = [&](const json &flat) {
      return flat.contains(key) ? shortenedJson(flat.at(key), maxQuoted / 3) : std::string("none");
    };
    return Error{file,
                 "describes a model whose " + shortened(dottedKey(key), maxQuoted / 3) + " is " + valueIn(wanted) +
                     ", and the graph's is " + valueIn(found),
                 "take both from one export"};
  }
  return Status::success();
}

Status takeConfig(ModelSpec &spec, const std::string &folder, const std::optional<ModelSpec> &described) {
  const Expected<json> config = objectIn(folder, "config.json");
  if (!config)
    return config.error();
  if (config->is_object()) {
    const Stated stated{*config, (fs::path(folder) / "config.json").string()};
    if (Status status = checkConfig(spec, stated); !status)
      return status;
    if (Status status = described ? checkRopes(spec, *described, stated.file) : Status(); !status)
      return status;
    if (Status status = described ? checkDescription(spec, *described, stated.file) : Status(); !status)
      return status;
    takeLength(spec, stated, "max_position_embeddings");
    takeIds(spec, stated);
  }
  const Expected<json> generation = objectIn(folder, "generation_config.json");
  if (!generation)
    return generation.error();
  if (generation->is_object())
    takeIds(spec, {*generation, (fs::path(folder) / "generation_config.json").string()});
  return Status::success();
}

/// The object in `object` under `key`; null: there is none.
const json *objectOf(const json &object, const char *key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_object() ? &*found : nullptr;
}

} // namespace

Expected<std::string> statedDecoder(const std::string &folder) {
  const Expected<json> genai = objectIn(folder, "genai_config.json");
  if (!genai)
    return genai.error();
  const json *const model = objectOf(*genai, "model"), *const decoder = model ? objectOf(*model, "decoder") : nullptr;
  const auto name = decoder ? decoder->find("filename") : json::const_iterator();
  return decoder && name != decoder->end() && name->is_string() ? name->get<std::string>() : std::string();
}

std::optional<ModelSpec> modelBeside(const std::string &folder) {
  LoadOptions options;
  options.purpose = LoadPurpose::Plan;
  Expected<ModelSpec> spec = loadModelSpec((fs::path(folder) / "config.json").string(), options);
  return spec && canCompile(*spec) ? std::optional<ModelSpec>(std::move(*spec)) : std::nullopt;
}

Status addWhatIsBeside(ModelSpec &spec, const std::string &folder, const std::optional<ModelSpec> &stated) {
  spec.maxPosition = maxRopePositions;
  if (Status status = takeConfig(spec, folder, stated); !status)
    return status;
  const Expected<json> genai = objectIn(folder, "genai_config.json");
  if (!genai)
    return genai.error();
  const json *const model = objectOf(*genai, "model");
  if (!model)
    return Status::success();
  const Stated genaiModel{*model, (fs::path(folder) / "genai_config.json").string()};
  const Sizes sizes(spec);
  if (Status status = genaiModel.check("vocab_size", double(spec.vocab)); !status)
    return status;
  if (const json *const decoder = objectOf(*model, "decoder"))
    if (Status status =
            Stated{*decoder, genaiModel.file + ": model.decoder"}.check({{"hidden_size", spec.hidden},
                                                                         {"num_hidden_layers", spec.layerCount()},
                                                                         {"num_attention_heads", sizes.heads},
                                                                         {"num_key_value_heads", sizes.kvHeads},
                                                                         {"head_size", sizes.headDim}});
        !status)
      return status;
  takeLength(spec, genaiModel, "context_length");
  takeIds(spec, genaiModel);
  return Status::success();
}

} // namespace k2c::onnx
