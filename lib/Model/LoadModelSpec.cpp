//===- LoadModelSpec.cpp - config.json to ModelSpec -----------------------===//
//
// model_type chooses a families file; its keys give fields (Fields.cpp); its
// sections turn fields into the description. Keys that mean the same in every
// family (types, ids, rope, quantisation) are read here and in RopeConfig.cpp.
// At the end no key may be left over.
//
//===----------------------------------------------------------------------===//

#include "ConfigFile.h"
#include "Family.h"
#include "Fields.h"
#include "LayerRuns.h"
#include "QuantizationConfig.h"
#include "RopeConfig.h"
#include "WeightRules.h"
#include "base/JsonText.h"
#include "base/Utf8.h"

#include <algorithm>
#include <filesystem>

using namespace k2c;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const std::map<std::string, Activation> activations = {
    {"silu", Activation::Silu}, {"gelu", Activation::Gelu}, {"relu", Activation::Relu}};

std::string joined(std::vector<std::string> words) {
  std::sort(words.begin(), words.end());
  std::string list;
  for (const std::string &word : words)
    list += (list.empty() ? "" : ", ") + word;
  return list;
}

bool isFor(LoadPurpose purpose, const Family &family, const std::vector<std::string> &compiled) {
  return purpose == LoadPurpose::Plan || std::find(compiled.begin(), compiled.end(), family.name) != compiled.end();
}

/// Finds the family of model_type and checks `architectures` against it.
Expected<const Family *> chooseFamily(ConfigFile &config, const std::vector<Family> &families, LoadPurpose purpose) {
  const Expected<std::vector<std::string>> &compiled = compiledFamilies();
  if (!compiled)
    return compiled.error();
  const json *type = config.get("/model_type");
  const json *architectures = config.getNonNull("/architectures");
  const Family *chosen = nullptr;
  for (const Family &family : families)
    for (const std::string &name : family.modelTypes)
      if (type && *type == name)
        chosen = &family;
  if (!type)
    return Error{config.file(), "key 'model_type' is missing",
                 "known model types: " + joined(knownModelTypes(purpose))};
  if (!chosen)
    return config.error("/model_type", "model_type " + shortenedJson(*type) + " is not in this build",
                        "known model types: " + joined(knownModelTypes(purpose)));
  if (!isFor(purpose, *chosen, *compiled))
    return config.error("/model_type",
                        "model_type " + shortenedJson(*type) + " can be planned, not compiled, in this build",
                        "model types that compile: " + joined(knownModelTypes(purpose)));
  if (!architectures)
    return chosen;
  if (architectures->is_array())
    for (const json &name : *architectures)
      for (const std::string &served : chosen->architectures)
        if (name == served)
          return chosen;
  return config.error("/architectures",
                      "architectures " + shortenedJson(*architectures) + " do not belong to model_type " +
                          shortenedJson(*type),
                      "supported: " + joined(chosen->architectures));
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

/// One id or a list of ids; null is none.
Expected<std::vector<int64_t>> readIds(ConfigFile &config, const std::string &pointer, int64_t vocab) {
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
  gqa.window = section.sizeOr("window", 0);
  gqa.windowedLayers = gqa.window > 0 ? section.sizeOr("windowed_layers", 0) : 0;
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

/// The description proper, from fields and sections.
Status describe(ModelSpec &spec, const Family &family, const Fields &fields) {
  if (Status status = readLayers(spec, family, fields); !status)
    return status;
  Section model(family, fields, "model"), mlp(family, fields, "mlp"), moe(family, fields, "moe"),
      attention(family, fields, "attention");
  spec.hidden = model.size("hidden");
  spec.vocab = model.size("vocab");
  spec.maxPosition = model.size("max_position");
  spec.normEps = model.number("norm_eps");
  spec.tiedEmbeddings = model.flag("tied");
  spec.encoderLayers = model.sizeOr("encoder_layers", 0);
  spec.mtpLayers = model.sizeOr("mtp_layers", 0);
  spec.attention = readAttention(attention);
  if (!spec.layersOf(FeedForward::Moe).empty())
    spec.moe = readMoe(moe);
  if (!spec.layersOf(FeedForward::Dense).empty())
    spec.mlp = MlpSpec{mlp.size("inter"), mlp.oneOf("activation", activations), mlp.flag("bias")};
  for (const Section *section : {&model, &mlp, &moe, &attention})
    if (section->error())
      return *section->error();
  return Status::success();
}

/// generation_config.json beside the config overrides the ids.
Status readGenerationConfig(ModelSpec &spec, const std::string &path) {
  std::error_code ignored;
  if (fs::symlink_status(path, ignored).type() == fs::file_type::not_found)
    return Status::success();
  Expected<JsonDocument> document = readJsonFile(path);
  if (!document)
    return document.takeError();
  if (!document->root().is_object())
    return Error{path, "is not a JSON object", ""};
  ConfigFile config(std::move(*document), {});
  if (config.getNonNull("/eos_token_id")) {
    Expected<std::vector<int64_t>> eos = readIds(config, "/eos_token_id", spec.vocab);
    if (!eos)
      return eos.takeError();
    spec.eos = std::move(*eos);
  }
  return Status::success();
}

/// Everything that config.json says, in one pass.
Expected<ModelSpec> readConfig(ConfigFile &config, const Family &family, const HarmlessKeys &harmless,
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

  if (Section section(family, *fields, "rope"); section.isPresent()) {
    Expected<RopeSpec> rope = readRope(config, section, spec.maxPosition);
    if (!rope)
      return rope.takeError();
    spec.rope = *rope;
  }
  Expected<DType> storage = readStorage(config, Section(family, *fields, "model"));
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

/// The whole description but for what lies beside config.json.
Expected<ModelSpec> readDocument(JsonDocument document, const LoadOptions &options) {
  if (!document.root().is_object())
    return Error{document.file(), "is not a JSON object", "name the config.json of a model"};
  auto type = document.root().find("model_type");
  const bool isNamed = type != document.root().end() && type->is_string();
  const Expected<std::vector<Family>> &families =
      isNamed ? builtInFamiliesOf(type->get<std::string>()) : builtInFamilies();
  if (!families)
    return families.error();
  const Expected<HarmlessKeys> &harmless = builtInHarmlessKeys();
  if (!harmless)
    return harmless.error();
  ConfigFile config(std::move(document), options.ignoreKeys);
  Expected<const Family *> family = chooseFamily(config, *families, options.purpose);
  if (!family)
    return family.takeError();
  return readConfig(config, **family, *harmless, options.purpose);
}

} // namespace

/// org/name for a snapshot in the cache of Hugging Face (models--org--name/snapshots/COMMIT), else the folder's name;
/// printable, because plans and manifests carry it.
static std::string checkpointName(const fs::path &folder) {
  fs::path normal = folder.lexically_normal();
  std::string repository = normal.parent_path().parent_path().filename().string();
  size_t between = repository.find("--", 8);
  if (normal.parent_path().filename() != "snapshots" || repository.compare(0, 8, "models--") != 0 ||
      between == std::string::npos)
    return printable(normal.filename().string());
  return printable(repository.substr(8, between - 8) + "/" + repository.substr(between + 2));
}

Expected<ModelSpec> k2c::parseModelSpec(std::string text, const std::string &file, const LoadOptions &options) {
  Expected<JsonDocument> document = parseJson(std::move(text), file);
  if (!document)
    return document.takeError();
  return readDocument(std::move(*document), options);
}

Expected<ModelSpec> k2c::loadModelSpec(const std::string &path, const LoadOptions &options) {
  std::error_code ignored;
  bool isFolder = fs::is_directory(path, ignored);
  if (fs::path(path).extension() == ".gguf")
    return Error{path, "GGUF files are not read", "use the model's safetensors checkpoint"};
  fs::path file = isFolder ? fs::path(path) / "config.json" : fs::path(path);
  if (!fs::exists(fs::symlink_status(file, ignored)))
    return Error{path, isFolder ? "there is no config.json" : "does not exist",
                 "name a checkpoint folder or a config.json"};
  Expected<JsonDocument> document = readJsonFile(file.string());
  if (!document)
    return document.takeError();
  Expected<ModelSpec> spec = readDocument(std::move(*document), options);
  if (!spec)
    return spec;
  fs::path folder = fs::absolute(file, ignored).parent_path();
  spec->name = checkpointName(folder);
  if (isFolder || file.filename() == "config.json")
    if (Status status = readGenerationConfig(*spec, (folder / "generation_config.json").string()); !status)
      return status.takeError();
  return spec;
}

std::vector<std::string> k2c::knownModelTypes(LoadPurpose purpose) {
  std::vector<std::string> types;
  const Expected<std::vector<Family>> &families = builtInFamilies();
  const Expected<std::vector<std::string>> &compiled = compiledFamilies();
  if (families && compiled)
    for (const Family &family : *families)
      if (isFor(purpose, family, *compiled))
        types.insert(types.end(), family.modelTypes.begin(), family.modelTypes.end());
  std::sort(types.begin(), types.end());
  return types;
}

bool k2c::canCompile(const ModelSpec &spec) {
  const Expected<std::vector<std::string>> &compiled = compiledFamilies();
  return compiled && std::find(compiled->begin(), compiled->end(), spec.family) != compiled->end();
}
