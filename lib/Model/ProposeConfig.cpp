//===- ProposeConfig.cpp - config.json of a description ------------------===//
//
// A families file read backwards. specJson has a value for each entry of a section, and the file says of the entry what
// it is made of:
//
//   moe: {scale: routed_scale, shared_inter: moe_inter * shared_experts}        specJson: scale 2.5, shared_inter 48
//   ->  routed_scale = 2.5;  48 = moe_inter * shared_experts, in which moe_inter is known: shared_experts = 2
//   ->  the keys of these fields: routed_scaling_factor 2.5, n_shared_experts 2
//
// So a field is known where it is an entry, and an expression with one unknown field is solved as a line. Fields that
// say which layers are of which kind follow from the layers (ProposeLayers.cpp), a word that nothing says is tried with
// each of its values, and keys of which the file knows one value have that. What is left has its default, or is a size
// that nothing reads. Nothing here need be right: who takes a proposal reads it again and compares.
//
//===----------------------------------------------------------------------===//

#include "ProposeConfig.h"
#include "KnownFields.h"
#include "k2c/Model/Rope.h"
#include "k2c/Model/SpecJson.h"

#include <cctype>
#include <cmath>

using namespace k2c;
using nlohmann::json;

namespace {

const char *typeName(DType type) {
  return type == DType::F32 ? "float32" : type == DType::F16 ? "float16" : "bfloat16";
}

/// What a word of a families file stands for in config.json.
json literal(const std::string &text) {
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? json(text) : value;
}

json scalingOf(const RopeSpec &, const RopeUnscaled &, bool) { return nullptr; }
json scalingOf(const RopeSpec &, const RopePublished &, bool) { return nullptr; } // no config.json says frequencies
json scalingOf(const RopeSpec &, const RopeLinear &linear, bool) {
  return {{"rope_type", "linear"}, {"factor", linear.factor}};
}
json scalingOf(const RopeSpec &, const RopeDynamic &dynamic, bool) {
  return {{"rope_type", "dynamic"}, {"factor", dynamic.factor}};
}
json scalingOf(const RopeSpec &, const RopeLlama3 &llama3, bool) {
  return {{"rope_type", "llama3"},
          {"factor", llama3.factor},
          {"low_freq_factor", llama3.lowFrequencyFactor},
          {"high_freq_factor", llama3.highFrequencyFactor},
          {"original_max_position_embeddings", llama3.originalContext}};
}
json scalingOf(const RopeSpec &rope, const RopeYarn &yarn, bool scalesScores) {
  json out = {{"rope_type", "yarn"},
              {"factor", yarn.factor},
              {"beta_fast", yarn.betaFast},
              {"beta_slow", yarn.betaSlow},
              {"original_max_position_embeddings", yarn.originalContext}};
  if (!yarn.truncate)
    out["truncate"] = false;
  double implied = yarnMagnitude(yarn.factor, 1);
  if (scalesScores && rope.attentionScale != 1) {
    // Files say mscale with three digits.
    const double exact = yarnMscale(yarn.factor, rope.attentionScale), rounded = std::round(exact * 1000) / 1000;
    const double magnitude = yarnMagnitude(yarn.factor, rounded);
    out["mscale"] = out["mscale_all_dim"] = magnitude * magnitude == rope.attentionScale ? rounded : exact;
    implied = 1;
  }
  if (rope.cosSinScale != implied)
    out["attention_factor"] = rope.cosSinScale;
  return out;
}

class Proposer {
public:
  Proposer(const Family &family, const ModelSpec &spec) : family(family), spec(spec) {}

  std::vector<json> propose() {
    KnownFields fields(family);
    readEntries(fields);
    knowLayers(fields, family, spec);
    std::vector<json> out;
    for (KnownFields &choice : choices(std::move(fields))) {
      solve(choice);
      out.push_back(configOf(choice));
    }
    return out;
  }

private:
  /// An entry of a section is what the file says, or else the field of its name.
  void addEntry(KnownFields &fields, const Entries &section, const std::string &entry, const json &value) {
    const auto found = section.find(entry);
    const std::string &text = found == section.end() ? entry : found->second;
    fields.know(text, value);
    if (value.is_number_integer())
      equations.emplace_back(text, value.get<int64_t>());
  }

  void addEntries(KnownFields &fields, const Entries &section, const json &values) {
    for (const auto &[entry, value] : values.items())
      if (value.is_primitive())
        addEntry(fields, section, entry, value);
  }

  void readEntries(KnownFields &fields) {
    const json values = specJson(spec);
    addEntries(fields, family.sections.at("model"), values);
    addEntry(fields, family.sections.at("model"), "tied", spec.tiedEmbeddings);
    for (const char *name : {"mlp", "moe"})
      if (values.contains(name))
        addEntries(fields, family.sections.at(name), values[name]);
    addEntries(fields, family.attentions.at(firstAttention), values.value(firstAttention, json::object()));
    addEntries(fields, family.ropes.at(firstRope), values.value(firstRope, json::object()));
  }

  /// `fields` with each value of each word that nothing says.
  std::vector<KnownFields> choices(KnownFields fields) const {
    std::vector<KnownFields> out;
    out.push_back(std::move(fields));
    for (const KeyRule &rule : family.keys) {
      if (rule.kind != KeyKind::Word || rule.oneOf.size() < 2 || out.front().has(rule.field))
        continue;
      std::vector<KnownFields> more;
      for (const KnownFields &before : out)
        for (const std::string &word : rule.oneOf) {
          more.push_back(before);
          more.back().know(rule.field, word);
        }
      out = std::move(more);
    }
    return out;
  }

  void solve(KnownFields &fields) const {
    for (bool isNew = true; isNew;) {
      isNew = false;
      for (const auto &[text, value] : equations)
        isNew |= fields.solve(text, value);
    }
  }

  /// What a key says of a field that is not known; discarded: nothing. A default that is made of other fields is
  /// written, for another reader's may be a number.
  json unknown(const KnownFields &fields, const KeyRule &rule) const {
    if (rule.oneOf.size() == 1)
      return literal(rule.oneOf.front());
    const std::string otherwise = rule.defaultText.value_or("");
    if (const std::optional<int64_t> derived = fields.integer(otherwise);
        derived && rule.kind == KeyKind::Size && std::any_of(otherwise.begin(), otherwise.end(), ::isalpha))
      return *derived;
    if (!rule.defaultText && rule.nullText)
      return nullptr;
    if (!rule.defaultText && rule.kind == KeyKind::Size)
      return spec.hidden; // no layer reads it
    if (!rule.defaultText && rule.kind == KeyKind::Count)
      return 0;
    return json(json::value_t::discarded);
  }

  json knownValue(const KeyRule &rule, const json &value) const {
    if (rule.kind == KeyKind::Where) {
      const auto isOther = [&](const std::string &word) { return word != rule.is; };
      const auto other = std::find_if(rule.oneOf.begin(), rule.oneOf.end(), isOther);
      json list(size_t(spec.layerCount()), literal(other == rule.oneOf.end() ? rule.is : *other));
      for (const json &at : value)
        list[at.get<size_t>()] = literal(rule.is);
      return list;
    }
    // 0 stands for what the key cannot say.
    if ((rule.kind == KeyKind::Size || rule.kind == KeyKind::Number) && value == 0)
      return rule.nullText ? json() : json(json::value_t::discarded);
    return value;
  }

  json configOf(const KnownFields &fields) const {
    json config = {{"model_type", family.modelTypes.front()},
                   {"architectures", json::array({family.architectures.front()})},
                   {"torch_dtype", typeName(spec.storage)},
                   {"bos_token_id", nullptr},
                   {"eos_token_id", nullptr},
                   {"pad_token_id", nullptr}}; // where a key is left out, readers have ids of their own
    if (spec.bos)
      config["bos_token_id"] = *spec.bos;
    if (spec.eos.size() == 1)
      config["eos_token_id"] = spec.eos.front();
    else if (!spec.eos.empty())
      config["eos_token_id"] = spec.eos;
    for (const KeyRule &rule : family.keys) {
      const json value = fields.has(rule.field) ? knownValue(rule, fields.value(rule.field)) : unknown(fields, rule);
      std::string pointer = "/" + rule.key;
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      if (!value.is_discarded())
        config[json::json_pointer(pointer)] = value;
    }
    if (const auto rope = spec.ropes.find(firstRope); rope != spec.ropes.end())
      addRope(config, rope->second);
    return config;
  }

  void addRope(json &config, const RopeSpec &rope) const {
    config["rope_theta"] = rope.theta;
    const bool scalesScores = family.ropes.at(firstRope).count("attention_scale");
    const json scaling =
        std::visit([&](const auto &found) { return scalingOf(rope, found, scalesScores); }, rope.scaling);
    if (!scaling.is_null())
      config["rope_scaling"] = scaling;
  }

  const Family &family;
  const ModelSpec &spec;
  std::vector<std::pair<std::string, int64_t>> equations; ///< an entry's text, and the value of the entry
};

} // namespace

std::vector<json> k2c::proposeConfigs(const Family &family, const ModelSpec &spec) {
  return Proposer(family, spec).propose();
}
