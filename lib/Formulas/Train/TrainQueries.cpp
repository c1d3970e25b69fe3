//===- TrainQueries.cpp - Queries about training memory -------------------===//
//
// Training memory as paper 002 counts it: parameters of a device (section 3), states under ZeRO (section 4),
// activations (section 5) and their total with live micro-batches, buffers and fragmentation (section 6).
//
// Inputs of the paper's tables are redundant: EDP follows from DP, TP, EP and ETP, the layers of a stage have two
// names, micro-batches in flight follow from a schedule. Redundant inputs are accepted where they agree with what
// follows and refused where they do not, with both numbers in the message; without DP, EDP gives DP. What the paper's
// text leaves implicit, such as replicated rotary queries, shared experts that no rank divides or a kept dropout mask,
// is an input each, whose default is the paper's only where compatibility with it is asked for.
//
//===----------------------------------------------------------------------===//

#include "../Parts.h"
#include "../Read.h"
#include "k2c/Formulas/SavedTensors.h"
#include "k2c/Formulas/TrainRank.h"
#include "k2c/Model/Layers.h"
#include "k2c/Planner/Bubble.h"

using namespace k2c;
using namespace k2c::formulas;

namespace {

constexpr int64_t maxRanks = 1 << 24;

/// Fails at the input that the error names.
template <class T> T taken(QueryInputs &in, Expected<T> result) {
  if (result)
    return *result;
  in.fail(result.error().where, result.error().message, result.error().remedy);
  return T();
}

/// Most layers that a stage can have.
int64_t layersOf(const ModelSpec *model) { return model ? model->layerCount() : 1; }

/// Layers of the stage under either name.
int64_t readStageLayers(QueryInputs &in, const ModelSpec *model, std::optional<int64_t> otherwise = std::nullopt) {
  const char *key = in.has("layers_on_stage") || !in.has("layers") ? "layers_on_stage" : "layers";
  const int64_t layers = in.whole(key, otherwise, 1, layersOf(model));
  if (in.ok() && in.whole("layers", layers, 1, layersOf(model)) != layers)
    in.fail("layers", "differs from 'layers_on_stage' " + std::to_string(layers), "give one of them");
  return layers;
}

/// Ranks of data and expert parallelism. Without `dp` it follows from `edp`; given both, they have to agree.
struct Replicas {
  int64_t dp = 1, edp = 1;
};

Replicas readReplicas(QueryInputs &in) {
  const int64_t tp = in.whole("tp", 1, 1, maxRanks), ep = in.whole("ep", 1, 1, maxRanks);
  const int64_t etp = in.whole("etp", 1, 1, maxRanks);
  in.whole("pp", 1, 1, maxRanks); // divides both sides
  Replicas replicas;
  replicas.edp = in.whole("edp", 1, 1, maxRanks);
  if (in.has("edp") && !in.has("dp")) {
    const int64_t ranks = replicas.edp * ep * etp;
    checkDivides(in, "tp", tp, "EDP x EP x ETP", ranks);
    in.whole("dp", 1, 1, maxRanks);
    replicas.dp = ranks / tp;
    return replicas;
  }
  replicas.dp = in.whole("dp", 1, 1, maxRanks);
  if (!in.ok())
    return replicas;
  const int64_t derived = taken(in, expertDataParallel(replicas.dp, tp, ep, etp));
  if (in.ok() && in.has("edp") && replicas.edp != derived)
    in.fail("edp", std::to_string(replicas.edp) + " differs from DP x TP / (EP x ETP) = " + std::to_string(derived),
            "leave it out, or correct the others");
  replicas.edp = derived;
  return replicas;
}

QueryAnswer edp(QueryInputs &in) {
  if (!in.has("dp"))
    in.whole("dp", 1, maxRanks);
  if (!in.has("ep"))
    in.whole("ep", 1, maxRanks);
  if (in.has("model") || in.has("layers_on_stage"))
    readStageLayers(in, in.model(), 1);
  const Replicas replicas = readReplicas(in);
  return in.ok() ? QueryAnswer(Checked(replicas.edp)) : QueryAnswer();
}

DeviceParameters readDevice(QueryInputs &in, const ModelSpec *model) {
  StageLayout layout;
  layout.layers = readStageLayers(in, model);
  layout.tp = in.whole("tp", 1, 1, maxRanks);
  layout.ep = in.whole("ep", 1, 1, maxRanks);
  layout.etp = in.whole("etp", 1, 1, maxRanks);
  layout.splitsQueryRope = in.word("w_qr", {"replicated", "split"}, in.isPaper() ? 0 : 1) == 1;
  layout.splitsSharedExpert = in.word("shared_expert", {"replicated", "tp"}, in.isPaper() ? 0 : 1) == 1;
  return model && in.ok() ? taken(in, deviceParameters(*model, layout)) : DeviceParameters();
}

QueryAnswer device(QueryInputs &in) {
  const ModelSpec *model = in.model();
  DeviceParameters d = readDevice(in, model);
  Checked layers = readStageLayers(in, model);
  if (in.has("dp") || in.has("edp") || in.has("pp"))
    in.has("dp") || in.has("edp") ? void(readReplicas(in)) : void(in.whole("pp", 1, maxRanks));
  Checked bytes = in.whole("bytes_per_param", 2, 1, 64);
  QueryAnswer answer;
  const std::pair<const char *, Checked> counts[] = {
      {"total", d.total()}, {"norm", d.norms},    {"mla", d.attention()},      {"non_moe", d.dense()},
      {"router", d.router}, {"routed", d.routed}, {"shared_expert", d.shared}, {"expert", d.routed + d.shared},
      {"moe", d.moe()}};
  for (const auto &[name, count] : counts) {
    const std::string stem = name;
    answer.part(stem + "_params", count).part(stem + "_bytes", count * bytes);
    answer.part(stem + "_per_layer", count / layers);
  }
  answer.part("mla_tp_split", d.attentionSplit).part("mla_replicated", d.attentionReplicated);
  return answer.part("experts_per_rank", Checked(d.expertsPerRank))
      .part("experts_per_layer", Checked(d.expertsPerRank) / layers);
}

/// `bytes` [weight, gradient, optimizer], or each on its own.
StateBytes readBytes(QueryInputs &in) {
  StateBytes bytes;
  if (const nlohmann::json *list = in.raw("bytes"); list && list->is_array()) {
    std::vector<double> each = in.numbers("bytes", 0, 64, 3);
    if (in.ok() && each.size() != 3)
      in.fail("bytes", "must be three numbers: of weight, gradient and optimizer state");
    return in.ok() ? StateBytes{each[0], each[1], each[2]} : bytes;
  }
  bytes.weight = in.number("bytes_weight", 2, 0, 64);
  bytes.gradient = in.number("bytes_grad", 4, 0, 64);
  bytes.optimizer = in.number("bytes_optimizer", 8, 0, 64);
  return bytes;
}

StateMemory readStates(QueryInputs &in, const ModelSpec *model) {
  Zero zero = Zero(in.word("zero", {"none", "os", "os+g", "os+g+params"}, 0));
  bool paper = readPaper(in, "grouping");
  StateBytes bytes = readBytes(in);
  DeviceParameters d = readDevice(in, model);
  const Replicas replicas = readReplicas(in);
  return in.ok() ? stateMemory(d, zero, bytes, replicas.dp, replicas.edp, paper) : StateMemory();
}

QueryAnswer zeroMemory(QueryInputs &in) {
  StateMemory m = readStates(in, in.model());
  QueryAnswer answer;
  answer.part("total_bytes", m.total());
  answer.part("params_bytes", m.parameters).part("grads_bytes", m.gradients);
  return answer.part("gradients_bytes", m.gradients).part("optimizer_bytes", m.optimizer);
}

Microbatch readMicrobatch(QueryInputs &in, const ModelSpec *model) {
  Microbatch batch;
  batch.sequences = in.whole("b", 1, 1 << 24);
  batch.tokens = in.whole("s", 1, 1 << 30);
  batch.tp = in.whole("tp", 1, 1, maxRanks);
  batch.sp = in.whole("sp", batch.tp, 1, maxRanks);
  batch.cp = in.whole("cp", 1, 1, maxRanks);
  batch.ep = in.whole("ep", 1, 1, maxRanks);
  batch.layers = readStageLayers(in, model, 1);
  checkDivides(in, "sp", batch.sp, "the tokens b x s", batch.sequences * batch.tokens);
  checkDivides(in, "cp", batch.cp, "the tokens s", batch.tokens);
  if (model)
    checkDivides(in, "tp", batch.tp, "the attention heads", commonHeads(*model));
  batch.etp = in.whole("etp", 1, 1, maxRanks);
  if (model && model->moe) {
    checkDivides(in, "ep", batch.ep, "the experts", model->moe->experts);
    checkDivides(in, "etp", batch.etp, "the width of an expert", model->moe->inter);
  }
  return batch;
}

double readAttention(QueryInputs &in, const ModelSpec *model) {
  Microbatch batch = readMicrobatch(in, model);
  Recompute recompute = Recompute(in.word("recompute", {"none", "full"}, 0));
  bool flash = in.word("attn_matrix", {"eager", "flash"}, in.isPaper() ? 0 : 1) == 1;
  bool mask = in.flag("dropout_mask", !flash && in.isPaper());
  if (!model)
    return 0;
  return attentionActivations(*model, attentionLayers(*model).front().sizes, batch, recompute, flash, mask);
}

double readExperts(QueryInputs &in, const ModelSpec *model) {
  Microbatch batch = readMicrobatch(in, model);
  Recompute recompute = Recompute(in.word("recompute", {"none", "full"}, 0));
  bool paper = readPaper(in, "tokens");
  return readMoe(in, model) ? moeActivations(*model, batch, recompute, paper) : 0;
}

QueryAnswer activations(QueryInputs &in) {
  const ModelSpec *model = in.model();
  double attention = readAttention(in, model), experts = readExperts(in, model);
  return QueryAnswer().part("total_bytes", attention + experts).part("mla_bytes", attention).part("moe_bytes", experts);
}

/// Per token and layer, or of `b` sequences of `s` tokens in `layers` layers.
QueryAnswer saved(QueryInputs &in) {
  static const RecomputeSet sets[] = {RecomputeSet::None, RecomputeSet::DeepSeekV3, RecomputeSet::KimiK2,
                                      RecomputeSet::KimiK2Fp8, RecomputeSet::Layer};
  static const std::vector<std::string> names = {"none", "v3", "k2", "k2_fp8", "full"};
  const ModelSpec *model = in.model();
  RecomputeSet set = sets[in.word("recompute", names, 0)];
  double tokens = double(in.whole("b", 1, 1, 1 << 24)) * double(in.whole("s", 1, 1, 1 << 30));
  double layers = double(in.whole("layers", 1, 1, layersOf(model))), sum = 0;
  if (!readMla(in, model) || !readMoe(in, model))
    return QueryAnswer();
  QueryAnswer answer;
  for (const SavedTensor &tensor : savedTensors(*model, set)) {
    sum += tensor.bytes * tokens * layers;
    answer.parts[tensor.name] = tensor.bytes * tokens * layers;
  }
  answer.value = sum;
  return answer;
}

/// As the schedule keeps alive on the rank, or as given.
double readInFlight(QueryInputs &in) {
  const PipelineKind kind = readSchedule(in, PipelineKind::OneFOneB);
  const int64_t pp = in.whole("pp", 1, 1, maxRanks), rank = in.whole("rank", 0, 0, pp - 1);
  const double live = liveMicrobatches(kind, pp, readChunks(in, kind), rank, in.whole("microbatches", pp, 1, maxRanks));
  const double given = in.number("in_flight", live, 0, 1e9);
  if (in.ok() && in.has("schedule") && given != live)
    in.fail("in_flight", "differs from what the schedule keeps alive on the rank, " + nlohmann::json(live).dump(),
            "leave out one of 'schedule' and 'in_flight'");
  return given;
}

QueryAnswer trainTotal(QueryInputs &in) {
  const ModelSpec *model = in.model();
  StateMemory states = readStates(in, model);
  double kept = readAttention(in, model) + readExperts(in, model), live = readInFlight(in);
  double buffers = in.number("buffers", 0, 0, 1e18), fragmentation = in.number("frag", 0, 0, 100);
  QueryAnswer answer;
  answer.part("total_bytes", trainingMemory(states, kept, live, buffers, fragmentation));
  return answer.part("states_bytes", states.total()).part("activations_bytes", kept * live).part("in_flight", live);
}

} // namespace

std::vector<QueryFunction> formulas::trainQueries() {
  const std::string layout = "model layers_on_stage layers tp ep etp w_qr shared_expert dp pp edp";
  const std::string states = layout + " zero grouping bytes bytes_weight bytes_grad bytes_optimizer";
  const std::string batch = "model b s tp sp cp ep etp layers layers_on_stage recompute";
  const std::string kept = batch + " attn_matrix dropout_mask tokens";
  const char *five = "002, section 5";
  return {
      {"edp", "ranks", "002, table 5", "dp tp pp ep etp edp model layers_on_stage", edp},
      {"device_params", "parameters", "002, section 3", layout + " bytes_per_param", device},
      {"zero_memory", "bytes", "002, section 4", states, zeroMemory},
      {"act_mla", "bytes", five, batch + " attn_matrix dropout_mask",
       [](QueryInputs &in) { return QueryAnswer(readAttention(in, in.model())); }},
      {"act_moe", "bytes", five, batch + " tokens",
       [](QueryInputs &in) { return QueryAnswer(readExperts(in, in.model())); }},
      {"activations", "bytes", five, kept, activations},
      {"saved_activations", "bytes", "000, recomputation sets", "model recompute b s layers", saved},
      {"train_total", "bytes", "002, section 6",
       states + " " + kept + " schedule rank microbatches v in_flight buffers frag", trainTotal},
  };
}
