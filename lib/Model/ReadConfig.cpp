//===- ReadConfig.cpp - config.json to ModelSpec --------------------------===//
//
// The keys of the family give fields (Fields.cpp); its sections turn fields into the description: first the layers with
// their kinds, then the attentions and rotary tables that these name, at last the weights. Keys that mean the same in
// every family (types, ids, rope, quantisation) are read here and in RopeConfig.cpp. At the end no key may be left
// over.
//
//===----------------------------------------------------------------------===//

#include "ReadConfig.h"
#include "Fields.h"
#include "LayerRuns.h"
#include "QuantizationConfig.h"
#include "RopeConfig.h"
#include "WeightRules.h"
#include "base/JsonText.h"
#include "k2c/Model/Layers.h"

using namespace k2c;
using nlohmann::json;

namespace {

const std::map<std::string, Activation> activations = {
    {"silu", Activation::Silu}, {"gelu", Activation::Gelu}, {"relu", Activation::Relu}};

Section section(const Family &family, const Fields &fields, const std::string &name) {
  return Section(family.sections.at(name), fields, family.file + ": " + name);
}

/// torch_dtype, or dtype in newer files; when absent what the family publishes, else float32, as readers agree.
Expected<DType> readStorage(ConfigFile &config, const Section &model) {
  const json *older = config.getNonNull("/torch_dtype");
  const json *newer = config.getNonNull("/dtype");
  if (older && newer && *older != *newer)
    return config.error("/dtype",
                        "dtype " + shortenedJson(*newer) + " differs from torch_dtype " + shortenedJson(*older),
                        "keep one of the two");
  const json *value = newer ? newer : older;
  if (!value)
    return model.has("published_in_bf16") ? DType::BF16 : DType::F32;
  if (*value == "bfloat16")
    return DType::BF16;
  if (*value == "float16")
    return DType::F16;
  if (*value == "float32")
    return DType::F32;
  return config.error(newer ? "/dtype" : "/torch_dtype",
                      "element type " + shortenedJson(*value) + " is not in this build",
                      "supported: bfloat16, float16, float32");
}

AttentionSpec readAttention(Section &section) {
  if (section.word("kind") == "mla") {
    MlaSpec mla;
    mla.heads = section.size("heads");
    mla.queryLatent = section.size("query_latent");
    mla.latent = section.size("latent");
    mla.nope = section.size("nope");
    mla.rope = section.size("rope");
    mla.value = section.size("value");
    mla.latentNormEps = section.number("latent_norm_eps");
    mla.bias = section.flag("bias");
    if (section.has("index_heads"))
      mla.indexer = IndexerSpec{section.size("index_heads"), section.size("index_dim"), section.size("index_top_k")};
    return mla;
  }
  GqaSpec gqa;
  gqa.heads = section.size("heads");
  gqa.kvHeads = section.size("kv_heads");
  gqa.headDim = section.size("head_dim");
  gqa.qkvBias = section.flag("qkv_bias");
  gqa.outputBias = section.flag("output_bias");
  gqa.norm = section.oneOf<QueryKeyNorm>(
      "query_key_norm", {{"none", QueryKeyNorm::None}, {"row", QueryKeyNorm::Row}, {"head", QueryKeyNorm::Head}});
  gqa.clip = section.has("clip") ? section.number("clip") : 0;
  gqa.window = section.has("window") ? section.size("window") : 0;
  return gqa;
}

MoeSpec readMoe(Section &section) {
  MoeSpec moe;
  moe.experts = section.size("experts");
  moe.topK = section.size("top_k");
  moe.groups = section.size("groups");
  moe.topGroups = section.size("top_groups");
  moe.inter = section.size("inter");
  moe.sharedInter = section.size("shared_inter");
  moe.scoring = section.oneOf<Scoring>("scoring", {{"sigmoid", Scoring::Sigmoid}, {"softmax", Scoring::Softmax}});
  moe.groupScore =
      section.oneOf<GroupScore>("group_score", {{"top2_sum", GroupScore::Top2Sum}, {"max", GroupScore::Max}});
  moe.correctionBias = section.flag("correction_bias");
  moe.normalize = section.flag("normalize");
  moe.normalizeEps = section.number("normalize_eps");
  moe.scale = section.number("scale");
  moe.activation = section.oneOf("activation", activations);
  return moe;
}

/// The attentions that layers have.
Status readAttentions(ModelSpec &spec, const Family &family, const Fields &fields) {
  for (const auto &[name, entries] : family.attentions) {
    if (spec.layersOf([name = name](const LayerKind &kind) { return kind.attention == name; }).empty())
      continue;
    Section section(entries, fields, family.file + ": " + name);
    spec.attentions[name] = readAttention(section);
    if (section.error())
      return *section.error();
  }
  if (spec.latentAttention() && spec.attentions.size() > 1)
    return Error{family.file, "a model with latent attention has no other attention in this build", ""};
  return Status::success();
}

/// Layers are of one cache group whose rows are equal and that keep as many of them.
void numberCacheGroups(ModelSpec &spec) {
  std::map<std::tuple<std::vector<int64_t>, std::vector<int64_t>, int64_t>, int64_t> groups;
  for (LayerRun &run : spec.layers)
    for (LayerKind &kind : run.kinds) {
      const AttentionSizes sizes = attentionSizes(spec.attentions.at(kind.attention));
      const std::tuple cache(sizes.cache[0].dims(), sizes.cache[1].dims(), sizes.window);
      kind.cacheGroup = groups.emplace(cache, int64_t(groups.size())).first->second;
    }
}

/// The rotary tables that layers read.
Status readRopes(ModelSpec &spec, ConfigFile &config, const Family &family, const Fields &fields) {
  for (const std::string &name : ropesOfLayers(spec)) {
    Expected<RopeSpec> rope =
        readRope(config, Section(family.ropes.at(name), fields, family.file + ": " + name), spec.maxPosition);
    if (!rope)
      return rope.takeError();
    spec.ropes[name] = *rope;
  }
  return Status::success();
}

/// The description proper, from fields and sections.
Status describe(ModelSpec &spec, const Family &family, const Fields &fields) {
  if (Status status = readLayers(spec, family, fields); !status)
    return status;
  Section model = section(family, fields, "model"), mlp = section(family, fields, "mlp"),
          moe = section(family, fields, "moe");
  spec.hidden = model.size("hidden");
  spec.vocab = model.size("vocab");
  spec.maxPosition = model.size("max_position");
  spec.normEps = model.number("norm_eps");
  spec.tiedEmbeddings = model.flag("tied");
  spec.encoderLayers = model.sizeOr("encoder_layers", 0);
  spec.mtpLayers = model.sizeOr("mtp_layers", 0);
  if (!spec.layersOf(FeedForward::Moe).empty())
    spec.moe = readMoe(moe);
  if (!spec.layersOf(FeedForward::Dense).empty())
    spec.mlp = MlpSpec{mlp.size("inter"), mlp.oneOf("activation", activations), mlp.flag("bias")};
  for (const Section *section : {&model, &mlp, &moe})
    if (section->error())
      return *section->error();
  return Status::success();
}

} // namespace

Expected<std::vector<int64_t>> k2c::readIds(ConfigFile &config, const std::string &pointer, int64_t vocab) {
  std::vector<int64_t> ids;
  const json *value = config.getNonNull(pointer);
  if (!value)
    return ids;
  json list = value->is_array() ? *value : json::array({*value});
  for (const json &item : list) {
    Expected<int64_t> id = config.wholeNumber(pointer, item, 0, vocab - 1);
    if (!id)
      return id.takeError();
    ids.push_back(*id);
  }
  return ids;
}

Expected<ModelSpec> k2c::readConfig(ConfigFile &config, const Family &family, const HarmlessKeys &harmless,
                                    LoadPurpose purpose) {
  ModelSpec spec;
  spec.family = family.name;
  spec.tiktoken = family.tiktoken;
  spec.modelType = config.get("/model_type")->get<std::string>();
  Expected<Fields> fields = readFields(config, family, spec.places);
  if (!fields)
    return fields.takeError();
  if (Status status = describe(spec, family, *fields); !status)
    return status.takeError();

  if (Status status = readAttentions(spec, family, *fields); !status)
    return status.takeError();
  numberCacheGroups(spec);
  if (Status status = readRopes(spec, config, family, *fields); !status)
    return status.takeError();
  Expected<DType> storage = readStorage(config, section(family, *fields, "model"));
  if (!storage)
    return storage.takeError();
  spec.storage = *storage;
  if (purpose == LoadPurpose::Plan && isMicroScaled(config)) {
    spec.microScales = MicroScales();
  } else {
    Expected<std::optional<BlockScales>> quantization = readQuantization(config);
    if (!quantization)
      return quantization.takeError();
    spec.quantization = *quantization;
  }
  if (spec.quantization) {
    Expected<std::vector<std::string>> modules = readUnquantized(config);
    if (!modules)
      return modules.takeError();
    spec.unquantizedModules = std::move(*modules);
    spec.places["quantization"] = config.place("/quantization_config");
  }
  Expected<std::vector<int64_t>> eos = readIds(config, "/eos_token_id", spec.vocab);
  if (!eos)
    return eos.takeError();
  spec.eos = std::move(*eos);
  Expected<std::vector<int64_t>> bos = readIds(config, "/bos_token_id", spec.vocab);
  if (!bos)
    return bos.takeError();
  if (!bos->empty())
    spec.bos = bos->front();

  if (Status status = applyWeightRules(spec, family, *fields, config.file()); !status)
    return status.takeError();
  if (purpose == LoadPurpose::Compile)
    for (const char *object : {"", "/rope_scaling", "/rope_parameters", "/quantization_config"}) {
      Expected<std::vector<std::string>> ignored = config.checkUnknown(object, harmless);
      if (!ignored)
        return ignored.takeError();
      spec.ignoredKeys.insert(spec.ignoredKeys.end(), ignored->begin(), ignored->end());
    }
  for (const char *key : {"rope_theta", "rope_scaling", "rope_parameters"})
    if (config.get(std::string("/") + key))
      spec.places["rope"] = config.place(std::string("/") + key);
  return spec;
}
