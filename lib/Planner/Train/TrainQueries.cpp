//===- TrainQueries.cpp - Queries about training memory -----------------------===//

#include "../Query/Parts.h"
#include "../Query/Read.h"
#include "k2c/Planner/Bubble.h"
#include "k2c/Planner/SavedTensors.h"
#include "k2c/Planner/Train.h"

using namespace k2c;
using namespace k2c::planner;

namespace {

constexpr int64_t mostRanks = 1 << 24;

/// Fails at the input that the error names.
template <class T> T taken(QueryInputs &in, Expected<T> result) {
  if (result)
    return *result;
  in.fail(result.error().where, result.error().message, result.error().remedy);
  return T();
}

QueryAnswer edp(QueryInputs &in) {
  int64_t dp = in.whole("dp", 1, mostRanks), tp = in.whole("tp", 1, 1, mostRanks), ep = in.whole("ep", 1, mostRanks);
  int64_t etp = in.whole("etp", 1, 1, mostRanks);
  in.whole("pp", 1, 1, mostRanks); // divides both sides
  return in.ok() ? QueryAnswer(Checked(taken(in, expertDataParallel(dp, tp, ep, etp)))) : QueryAnswer();
}

/// Most layers that a stage can have.
int64_t layersOf(const ModelSpec *model) { return model ? model->layerCount() : 1; }

DeviceParameters readDevice(QueryInputs &in, const ModelSpec *model) {
  StageLayout layout;
  layout.layers =
      in.whole(in.has("layers") && !in.has("layers_on_stage") ? "layers" : "layers_on_stage", 1, layersOf(model));
  layout.tp = in.whole("tp", 1, 1, mostRanks);
  layout.ep = in.whole("ep", 1, 1, mostRanks);
  layout.etp = in.whole("etp", 1, 1, mostRanks);
  layout.splitsQueryRope = in.word("w_qr", {"replicated", "split"}, in.isPaper() ? 0 : 1) == 1;
  layout.splitsSharedExpert = in.word("shared_expert", {"replicated", "tp"}, in.isPaper() ? 0 : 1) == 1;
  return model && in.ok() ? taken(in, deviceParameters(*model, layout)) : DeviceParameters();
}

QueryAnswer device(QueryInputs &in) {
  const ModelSpec *model = in.model();
  DeviceParameters d = readDevice(in, model);
  Checked layers = in.ok() ? in.whole(in.has("layers_on_stage") ? "layers_on_stage" : "layers", 1, 1 << 20) : 1;
  Checked bytes = in.whole("bytes_per_param", 2, 1, 64);
  QueryAnswer answer;
  answer.part("total_params", d.total()).part("total_bytes", d.total() * bytes).part("params", d.total());
  answer.part("norm_per_layer", d.norms / layers).part("norm_params", d.norms).part("norm_bytes", d.norms * bytes);
  answer.part("mla_tp_split", d.attentionSplit).part("mla_replicated", d.attentionReplicated);
  answer.part("mla_total", d.attention()).part("mla_params", d.attention()).part("mla_bytes", d.attention() * bytes);
  answer.part("non_moe_params", d.dense()).part("non_moe_bytes", d.dense() * bytes);
  answer.part("experts_per_rank", Checked(d.expertsPerRank)).part("expert_params", d.routed + d.shared);
  answer.part("router_params", d.router).part("routed_params", d.routed).part("shared_params", d.shared);
  return answer.part("moe_params", d.moe()).part("moe_bytes", d.moe() * bytes);
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
  int64_t dp = in.whole("dp", 1, 1, mostRanks);
  DeviceParameters d = readDevice(in, model);
  int64_t tp = in.whole("tp", 1, 1, mostRanks), ep = in.whole("ep", 1, 1, mostRanks);
  int64_t etp = in.whole("etp", 1, 1, mostRanks);
  int64_t edp =
      in.has("edp") || !in.ok() ? in.whole("edp", 1, 1, mostRanks) : taken(in, expertDataParallel(dp, tp, ep, etp));
  return in.ok() ? stateMemory(d, zero, bytes, dp, edp, paper) : StateMemory();
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
  batch.tp = in.whole("tp", 1, 1, mostRanks);
  batch.sp = in.whole("sp", batch.tp, 1, mostRanks);
  batch.cp = in.whole("cp", 1, 1, mostRanks);
  batch.ep = in.whole("ep", 1, 1, mostRanks);
  batch.layers = in.whole(in.has("layers") ? "layers" : "layers_on_stage", 1, 1, layersOf(model));
  return batch;
}

double readAttention(QueryInputs &in, const ModelSpec *model) {
  Microbatch batch = readMicrobatch(in, model);
  Recompute recompute = Recompute(in.word("recompute", {"none", "full"}, 0));
  bool flash = in.word("attn_matrix", {"eager", "flash"}, in.isPaper() ? 0 : 1) == 1;
  bool mask = in.flag("dropout_mask", !flash && in.isPaper());
  return model ? attentionActivations(*model, batch, recompute, flash, mask) : 0;
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
  static const std::vector<std::string> sets = {"none", "v3", "k2", "k2_fp8", "full"};
  const ModelSpec *model = in.model();
  RecomputeSet set = RecomputeSet(in.word("recompute", sets, 0));
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

/// As given, or as the schedule keeps alive on the rank.
double readInFlight(QueryInputs &in) {
  if (in.has("in_flight"))
    return in.number("in_flight", 0, 1e9);
  static const PipelineKind kinds[] = {PipelineKind::OneFOneB,     PipelineKind::GPipe,    PipelineKind::Interleaved,
                                       PipelineKind::ZeroBubbleH1, PipelineKind::DualPipe, PipelineKind::DualPipeV};
  size_t kind = in.word("schedule", {"1f1b", "gpipe", "interleaved", "zb-h1", "dualpipe", "dualpipev"}, 0);
  int64_t pp = in.whole("pp", 1, 1, mostRanks), rank = in.whole("rank", 0, 0, pp - 1);
  return liveMicrobatches(kinds[kind], pp, in.whole("v", 1, 1, mostRanks), rank,
                          in.whole("microbatches", pp, 1, mostRanks));
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

std::vector<QueryFunction> planner::trainQueries() {
  const std::string layout = "model layers_on_stage layers tp ep etp w_qr shared_expert bytes_per_param dp pp edp";
  const std::string states = layout + " zero grouping bytes bytes_weight bytes_grad bytes_optimizer";
  const std::string batch = "model b s tp sp cp ep etp layers layers_on_stage recompute";
  const std::string kept = batch + " attn_matrix dropout_mask tokens";
  const char *five = "002, section 5";
  return {
      {"edp", "ranks", "002, table 5", "dp tp pp ep etp", edp},
      {"device_params", "parameters", "002, section 3", layout, device},
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
