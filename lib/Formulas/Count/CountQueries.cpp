//===- CountQueries.cpp - Queries about parameters, FLOP and cache --------===//
//
// A query is a row of the table at the end of this file: its name, what it returns, the section of the paper whose
// count it is (000, 002 section 2, 004 sections 2 and 3), the inputs that it may read, and a function.
//
// The functions read all of their inputs first and compute afterwards. Reading is what makes a key known
// (QueryInputs), so a return that comes too early would report a key as unread that the query has; reads fail softly
// and give a value in range, so that it is safe to go on. Counts are whole numbers that notice overflow, and a count
// of bytes is the count of parameters times `w_bytes` or `bytes_per_param`. Where a paper counts differently from the
// published weights, such as norms of latents that it counts twice, that is an input whose default follows the
// compatibility asked for.
//
//===----------------------------------------------------------------------===//

#include "../Parts.h"
#include "../Read.h"
#include "k2c/Formulas/Flops.h"
#include "k2c/Formulas/StageParameters.h"
#include "k2c/Model/Layers.h"
#include "k2c/Planner/MlaForms.h"

using namespace k2c;
using namespace k2c::formulas;

namespace {

/// A count that follows from the model alone.
template <class Count> QueryAnswer ofModel(QueryInputs &in, Count count) {
  const ModelSpec *model = in.model();
  return model ? QueryAnswer(Checked(count(*model))) : QueryAnswer();
}

/// Parameters; bytes of them with `w_bytes`.
template <class Count> QueryAnswer parametersOf(QueryInputs &in, Count count) {
  Checked bytes = in.whole("w_bytes", 1, 1, 16);
  return ofModel(in, [&](const ModelSpec &model) { return count(model) * bytes; });
}

QueryAnswer total(QueryInputs &in) {
  CountOptions options;
  options.mtp = in.flag("mtp", false);
  options.correctionBias = in.flag("correction_bias", false);
  return parametersOf(in, [&](const ModelSpec &spec) { return totalParameters(spec, options); });
}

QueryAnswer active(QueryInputs &in) {
  bool embedding = in.flag("count_input_embedding", in.flag("embed", false));
  return parametersOf(in, [&](const ModelSpec &spec) { return activeParameters(spec, embedding); });
}

QueryAnswer sparsity(QueryInputs &in) {
  const bool given = in.has("m") || in.has("k");
  const MoeSpec *moe = given && !in.has("model") ? nullptr : readMoe(in, in.model());
  if (given && in.ok()) {
    const int64_t experts = in.whole("m", 1), topK = in.whole("k", 1, experts);
    if (in.ok() && moe && (moe->experts != experts || moe->topK != topK))
      in.fail(moe->experts != experts ? "m" : "k",
              "differs from the model's " + std::to_string(moe->experts) + " experts, " + std::to_string(moe->topK) +
                  " of them chosen",
              "leave out 'model', or 'm' and 'k'");
    return QueryAnswer(double(experts) / double(topK));
  }
  return moe ? QueryAnswer(double(moe->experts) / double(moe->topK)) : QueryAnswer();
}

QueryAnswer matrices(QueryInputs &in) {
  const ModelSpec *model = in.model();
  const MlaSpec *mla = readMla(in, model);
  Checked bytes = in.whole("w_bytes", 1, 1, 16);
  if (!mla)
    return QueryAnswer();
  LatentMatrices w = latentMatrices(*mla, model->hidden);
  QueryAnswer answer;
  answer.part("total", w.total() * bytes);
  const std::pair<const char *, Checked> parts[] = {{"W_DQ", w.dq}, {"W_UQ", w.uq}, {"W_QR", w.qr}, {"W_DKV", w.dkv},
                                                    {"W_UK", w.uk}, {"W_KR", w.kr}, {"W_UV", w.uv}, {"W_O", w.o}};
  for (const auto &[name, count] : parts)
    answer.part(name, count * bytes);
  return answer;
}

QueryAnswer mlaParameters(QueryInputs &in) {
  bool norms = in.flag("with_latent_norms", false);
  Checked bytes = in.whole("w_bytes", 1, 1, 16);
  const ModelSpec *model = in.model();
  const MlaSpec *mla = readMla(in, model);
  if (!mla)
    return QueryAnswer();
  return QueryAnswer((latentMatrices(*mla, model->hidden).total() + (norms ? latentNorms(*model) : Checked(0))) *
                     bytes);
}

QueryAnswer layerCount(QueryInputs &in) {
  bool doubled = in.flag("double_count_latent_norms", in.isPaper());
  const ModelSpec *model = in.model();
  int64_t layer = in.whole("layer", 0, model ? model->layerCount() - 1 : 0);
  Checked bytes = in.whole("bytes_per_param", 2, 1, 64);
  if (!model)
    return QueryAnswer();
  Checked count = paperLayerParameters(*model, layer, doubled);
  return QueryAnswer().part("params", count).part("bytes", count * bytes);
}

std::vector<int64_t> readStages(QueryInputs &in, const ModelSpec *model) {
  int64_t stages = in.whole("pp", 1, model ? model->layerCount() : 1);
  size_t partition = in.word("partition", {"front", "balanced"}, 0);
  return stageLayers(model ? model->layerCount() : 0, stages,
                     partition == 0 ? StagePartition::Front : StagePartition::Balanced);
}

/// Parameters, bytes and layers of a stage; `value` is the part that the function is named after.
QueryAnswer stage(QueryInputs &in, const char *value) {
  const ModelSpec *model = in.model();
  bool doubled = in.flag("double_count_latent_norms", in.isPaper());
  Checked bytes = in.whole("bytes_per_param", 2, 1, 64);
  std::vector<int64_t> layers = readStages(in, model);
  int64_t which = in.whole("stage", 0, int64_t(layers.size()) - 1);
  if (!model || !in.ok())
    return QueryAnswer();
  if (layers[size_t(which)] == 0)
    in.fail("pp",
            std::to_string(layers.size()) + " leaves stage " + std::to_string(which) + " of " +
                std::to_string(model->layerCount()) + " layers empty, " + std::to_string(layers[0]) + " a stage",
            "choose a smaller pp, or partition balanced");
  Checked count = stageParameters(*model, layers, which, doubled);
  QueryAnswer answer;
  answer.part("params", count).part("bytes", count * bytes).part("layers", Checked(layers[size_t(which)]));
  answer.value = answer.parts[value];
  return answer;
}

CacheFormat readFormat(QueryInputs &in, int64_t &elementBytes) {
  size_t format = in.word("format", {"plain", "bf16", "fp8", "flashmla_fp8"}, 0);
  if (format == 3 && in.has("elem_bytes"))
    in.fail("elem_bytes", "is not of format flashmla_fp8, which says the bytes itself", "leave it out");
  elementBytes = in.whole("elem_bytes", format == 2 ? 1 : 2, 1, 16);
  return format == 3 ? CacheFormat::FlashMlaFp8 : CacheFormat::Plain;
}

QueryAnswer cache(QueryInputs &in) {
  int64_t elementBytes = 2;
  CacheFormat format = readFormat(in, elementBytes);
  const ModelSpec *model = in.model();
  if (!model)
    return QueryAnswer();
  if (format == CacheFormat::FlashMlaFp8 && !readMla(in, model))
    return QueryAnswer();
  if (in.has("context"))
    return QueryAnswer(cacheBytesOfContext(*model, format, elementBytes, in.whole("context", 0)));
  return QueryAnswer(cacheBytesPerToken(*model, format, elementBytes));
}

QueryAnswer attentionFlops(QueryInputs &in) {
  const ModelSpec *model = in.model();
  const MlaSpec *mla = readMla(in, model);
  Phase phase = in.word("phase", {"prefill", "decode"}) == 0 ? Phase::Prefill : Phase::Decode;
  LatentForm form = in.word("variant", {"naive", "absorbed"}) == 0 ? LatentForm::Naive : LatentForm::Absorbed;
  bool paper = readPaper(in, "flavour");
  int64_t tokens = in.whole("S", 0);
  return mla ? QueryAnswer(latentAttentionFlops(*mla, model->hidden, phase, tokens, form, paper)) : QueryAnswer();
}

QueryAnswer crossover(QueryInputs &in) {
  const MlaSpec *mla = readMla(in, in.model());
  // null, as left out: a context without end.
  const nlohmann::json *context = in.raw("context");
  std::optional<double> keys;
  if (context && !context->is_null())
    keys = in.number("context", 0, 1e15);
  if (!mla)
    return QueryAnswer();
  std::optional<double> tokens = mlaCrossover(attentionSizes(*mla), keys);
  if (!tokens)
    in.fail("model", "has no crossover: the absorbed form never costs more");
  return QueryAnswer(tokens.value_or(0));
}

/// From which context one form is the cheaper one (paper 004, section 3.2).
QueryAnswer cheaperFrom(QueryInputs &in) {
  const ModelSpec *model = in.model();
  const MlaSpec *mla = readMla(in, model);
  Phase phase = in.word("phase", {"prefill", "decode"}) == 0 ? Phase::Prefill : Phase::Decode;
  bool paper = readPaper(in, "flavour");
  LatentForm wanted = phase == Phase::Prefill ? LatentForm::Naive : LatentForm::Absorbed;
  if (!mla)
    return QueryAnswer();
  return QueryAnswer(Checked(formCheaperFrom(*mla, model->hidden, phase, wanted, phase == Phase::Prefill, paper)));
}

QueryAnswer expertFlops(QueryInputs &in) {
  int64_t tokens = in.whole("B", 0);
  const ModelSpec *model = in.model();
  return readMoe(in, model) ? QueryAnswer(expertLayerFlops(*model, tokens)) : QueryAnswer();
}

/// Sizes by the words of paper 000.
QueryAnswer sizesOfModel(QueryInputs &in) {
  const ModelSpec *model = in.model();
  if (!model)
    return QueryAnswer();
  QueryAnswer answer;
  auto size = [&](const char *name, int64_t number) { answer.part(name, Checked(number)); };
  size("layers", model->layerCount());
  size("hidden", model->hidden);
  size("vocab", model->vocab);
  size("context", model->maxPosition);
  size("dense", model->layerCount() - int64_t(model->moeLayers().size()));
  if (const auto *gqa = std::get_if<GqaSpec>(&model->attentions.begin()->second)) {
    size("heads", gqa->heads);
    size("kv_heads", gqa->kvHeads);
    size("head_dim", gqa->headDim);
  } else {
    const MlaSpec &mla = *model->latentAttention();
    size("heads", mla.heads);
    size("q_lora_rank", mla.queryLatent);
    size("kv_lora_rank", mla.latent);
    size("qk_nope_head_dim", mla.nope);
    size("qk_rope_head_dim", mla.rope);
    size("v_head_dim", mla.value);
  }
  if (model->moe) {
    const MoeSpec &moe = *model->moe;
    size("experts", moe.experts);
    size("topk", moe.topK);
    size("width", moe.inter);
    size("shared", sharedExperts(*model));
    size("groups", moe.groups);
    answer.part("sparsity", double(moe.experts) / double(moe.topK));
  }
  return answer;
}

QueryAnswer checkpoint(QueryInputs &in, CheckpointFormat format) {
  bool mtp = in.flag("mtp", false);
  if (in.has("fp8_block") && format != CheckpointFormat::Fp8Blocks)
    in.fail("fp8_block", "is of format fp8 alone", "leave it out, or give format fp8");
  int64_t block = in.whole("fp8_block", 128, 1, 1 << 20);
  const ModelSpec *model = in.model();
  if (!model)
    return QueryAnswer();
  CheckpointSize size = checkpointSize(*model, format, mtp, block);
  QueryAnswer answer;
  answer.part("bytes", size.bytes).part("elements", size.elements()).part("fp8", size.fp8).part("fp4", size.fp4);
  return answer.part("scales", size.scales).part("bf16", size.bf16).part("f32", size.f32);
}

QueryAnswer anyCheckpoint(QueryInputs &in) {
  static const CheckpointFormat formats[] = {CheckpointFormat::Published, CheckpointFormat::Bf16,
                                             CheckpointFormat::Fp8Blocks, CheckpointFormat::MxFp4};
  return checkpoint(in, formats[in.word("format", {"published", "bf16", "fp8", "mxfp4"}, 0)]);
}

} // namespace

std::vector<QueryFunction> formulas::countQueries() {
  const char *models = "000, table of models", *two = "002, section 2", *four = "004, section 3";
  const char *stages = "model pp stage partition double_count_latent_norms bytes_per_param";
  return {
      {"total_params", "parameters", models, "model mtp correction_bias w_bytes", total},
      {"active_params", "parameters", models, "model count_input_embedding embed w_bytes", active},
      {"sparsity", "experts / top-k", models, "model m k", sparsity},
      {"config", "sizes", models, "model", sizesOfModel},
      {"moe_layers", "layers", two, "model",
       [](QueryInputs &in) { return ofModel(in, [](const ModelSpec &m) { return int64_t(m.moeLayers().size()); }); }},
      {"embedding_params", "parameters, bytes with w_bytes", two, "model w_bytes",
       [](QueryInputs &in) { return parametersOf(in, embeddingParameters); }},
      {"head_params", "parameters, bytes with w_bytes", two, "model w_bytes",
       [](QueryInputs &in) { return parametersOf(in, headParameters); }},
      {"mla_matrices", "parameters, bytes with w_bytes", two, "model w_bytes", matrices},
      {"mla_params", "parameters, bytes with w_bytes", two, "model with_latent_norms w_bytes", mlaParameters},
      {"norm_params_per_layer", "parameters", two, "model",
       [](QueryInputs &in) {
         return ofModel(in, [](const ModelSpec &m) { return layerParameters(m, m.layerCount() - 1).norms; });
       }},
      {"router_params", "parameters, bytes with w_bytes", two, "model w_bytes",
       [](QueryInputs &in) { return parametersOf(in, routerParameters); }},
      {"expert_params", "parameters, bytes with w_bytes", two, "model w_bytes",
       [](QueryInputs &in) { return parametersOf(in, expertParameters); }},
      {"dense_mlp_params", "parameters, bytes with w_bytes", two, "model w_bytes",
       [](QueryInputs &in) { return parametersOf(in, denseMlpParameters); }},
      {"mtp_params", "parameters", "DeepSeek V3 checkpoint", "model",
       [](QueryInputs &in) { return ofModel(in, [](const ModelSpec &m) { return mtpParameters(m, true); }); }},
      {"s002_layer_params", "parameters", two, "model layer double_count_latent_norms bytes_per_param", layerCount},
      {"s002_stage_params", "parameters", two, stages, [](QueryInputs &in) { return stage(in, "params"); }},
      {"stage_layers", "layers", two, stages, [](QueryInputs &in) { return stage(in, "layers"); }},
      {"kv_bytes_per_token", "bytes", "004, section 2.4", "model elem_bytes format context", cache},
      {"flops_mla", "FLOP of a layer and sequence", four, "model phase S variant flavour", attentionFlops},
      {"flops_experts", "FLOP of a layer", four, "model B", expertFlops},
      {"mla_cheaper_from", "tokens", four, "model phase flavour", cheaperFrom},
      {"mla_absorb_query_crossover", "query tokens", "exact form of 004, section 3.2", "model context", crossover},
      {"checkpoint", "bytes", "published storage formats", "model format mtp fp8_block", anyCheckpoint},
      {"fp8_checkpoint", "bytes", "published storage formats", "model mtp fp8_block",
       [](QueryInputs &in) { return checkpoint(in, CheckpointFormat::Fp8Blocks); }},
      {"mxfp4_checkpoint", "bytes", "published storage formats", "model mtp",
       [](QueryInputs &in) { return checkpoint(in, CheckpointFormat::MxFp4); }},
  };
}
