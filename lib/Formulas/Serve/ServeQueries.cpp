//===- ServeQueries.cpp - Queries about serving ---------------------------===//
//
// The serving model of paper 004, section 3, as queries: time of a decode step from its attention, experts and
// communication, the largest batch that keeps a rate of tokens, bytes of weights and cache on a GPU, traffic between
// GPUs.
//
// The paper simplifies in four places: the FLOP of attention, how many experts a small batch loads, whether layers
// without experts communicate, and how often embeddings are read. `flavour` chooses the paper's answers or the exact
// ones for all four at once; small_batch, comm_layers and count_embed then change one each, so that a difference from
// the paper's tables can be traced to one of them. Factors over the roofline, such as ineff_mem, are those of the
// paper unless given. The formulas need latent attention and experts; other models are refused by name.
//
//===----------------------------------------------------------------------===//

#include "../Parts.h"
#include "../Read.h"
#include "k2c/Formulas/Serve.h"
#include "k2c/Planner/Experts.h"
#include <cmath>

using namespace k2c;
using namespace k2c::formulas;

namespace {

constexpr int64_t maxGpus = 1 << 24;
constexpr double maxRate = 1e24; // bytes/s, FLOP/s, bytes

/// The token itself and those of a run of accepted drafts, each with chance `acceptance`.
QueryAnswer mtpTokens(QueryInputs &in) {
  double acceptance = in.number("acceptance", 0, 1), tokens = 0;
  int64_t depth = in.whole("depth", 0, 1024);
  for (int64_t draft = 0; draft <= depth; ++draft)
    tokens += std::pow(acceptance, double(draft));
  return QueryAnswer(tokens);
}

ServeCluster readCluster(QueryInputs &in) {
  QueryInputs at = in.object("cluster");
  ServeCluster cluster;
  if (!in.ok())
    return cluster;
  cluster.gpus = at.whole("gpus", 1, maxGpus);
  cluster.nodes = at.whole("nodes", 1, cluster.gpus);
  checkDivides(at, "nodes", cluster.nodes, "the GPUs", cluster.gpus);
  cluster.memoryBandwidth = at.number("mem_bw", 1, maxRate);
  cluster.bf16Rate = at.number("flops_bf16", 1, maxRate);
  cluster.fp8Rate = at.number("flops_fp8", 2 * cluster.bf16Rate, 1, maxRate);
  cluster.interBandwidth = at.number("bw_inter", 1, maxRate);
  cluster.intraBandwidth = at.number("bw_intra", 1, maxRate);
  cluster.memory = at.number("mem", 0, 0, maxRate);
  return cluster;
}

/// `small_batch` says whether a small batch spares experts: with the paper's bound, or exactly as its flavour says.
ExpertsLoaded readLoaded(QueryInputs &at, bool paper) {
  const nlohmann::json *value = at.raw("small_batch");
  if (value && value->is_string()) {
    static const ExpertsLoaded kinds[] = {ExpertsLoaded::BallsInBins, ExpertsLoaded::BinomialMax, ExpertsLoaded::Owned};
    return kinds[at.word("small_batch", {"seed", "binomial", "full"})];
  }
  if (!at.flag("small_batch", true))
    return ExpertsLoaded::Owned;
  return paper ? ExpertsLoaded::BallsInBins : ExpertsLoaded::BinomialMax;
}

ServeParameters readParameters(QueryInputs &in) {
  ServeParameters parameters;
  QueryInputs at = in.has("knobs") ? in.object("knobs") : in;
  if (!in.ok())
    return parameters;
  parameters.memoryInefficiency = at.number("ineff_mem", parameters.memoryInefficiency, 0, 1e6);
  parameters.attentionInefficiency = at.number("ineff_mla", parameters.attentionInefficiency, 0, 1e6);
  parameters.expertInefficiency = at.number("ineff_ep", parameters.expertInefficiency, 0, 1e6);
  parameters.linkInefficiency = at.number("ineff_comm", parameters.linkInefficiency, 0, 1e6);
  parameters.balancedness = at.number("beta", parameters.balancedness, 1e-6, 1);
  parameters.additionalExperts = at.whole("additional", 0, 0, 1 << 20);
  parameters.weightBytes = at.number("w_bytes", parameters.weightBytes, 0, 16);
  parameters.cacheElementBytes = at.whole("kv_elem", parameters.cacheElementBytes, 1, 16);
  parameters.cacheFormat =
      at.word("kv_format", {"plain", "flashmla_fp8"}, 0) == 1 ? CacheFormat::FlashMlaFp8 : CacheFormat::Plain;
  parameters.dispatchBytes = at.number("disp_bytes", parameters.dispatchBytes, 0, 16);
  parameters.combineBytes = at.number("comb_bytes", parameters.combineBytes, 0, 16);
  parameters.paperFlops = readPaper(at, "flavour");
  parameters.loaded = readLoaded(at, parameters.paperFlops);
  parameters.allLayersCommunicate = at.word("comm_layers", {"all", "moe"}, parameters.paperFlops ? 0 : 1) == 0;
  parameters.embeddingsRead = at.whole("count_embed", parameters.paperFlops ? 2 : 1, 0, 2);
  return parameters;
}

/// A model that the step's formulas describe.
const ModelSpec *readServed(QueryInputs &in) {
  const ModelSpec *model = in.model();
  return readMla(in, model) && readMoe(in, model) ? model : nullptr;
}

QueryAnswer step(QueryInputs &in) {
  const ModelSpec *model = readServed(in);
  ServeCluster cluster = readCluster(in);
  ServeParameters parameters = readParameters(in);
  int64_t batch = in.whole("B_global", 1), context = in.whole("S", 0);
  bool twoBatches = in.flag("tbo", false);
  if (!in.ok())
    return QueryAnswer();
  double seconds = stepSeconds(*model, cluster, parameters, double(batch), context, twoBatches);
  StepTerms t = stepTerms(*model, cluster, parameters, twoBatches ? double(batch) / 2 : double(batch), context);
  QueryAnswer answer;
  answer.part("tok_s_gpu", double(batch) / seconds / double(cluster.gpus)).part("tok_s_user", 1 / seconds);
  answer.part("tok_s", double(batch) / seconds).part("step_s", seconds).part("attention_s", t.attention);
  answer.part("experts_s", t.experts).part("communication_s", t.communication);
  answer.part("attention_mem_bytes", t.attentionMemory).part("attention_flop", t.attentionCompute);
  answer.part("experts_mem_bytes", t.expertMemory).part("experts_flop", t.expertCompute);
  return answer.part("experts_loaded", t.expertsLoaded);
}

QueryAnswer batchForRate(QueryInputs &in) {
  const ModelSpec *model = readServed(in);
  ServeCluster cluster = readCluster(in);
  ServeParameters parameters = readParameters(in);
  int64_t context = in.whole("S", 0);
  double rate = in.number("min_tps", 1e-9, 1e12);
  bool twoBatches = in.flag("tbo", false);
  if (!in.ok())
    return QueryAnswer();
  return QueryAnswer(Checked(largestBatch(*model, cluster, parameters, context, twoBatches, rate)));
}

QueryAnswer weights(QueryInputs &in) {
  const ModelSpec *model = in.model();
  int64_t gpus = in.whole("gpus", 1, maxGpus), additional = in.whole("additional", 0, 0, 1 << 20);
  Checked bytes = in.whole("all_bytes", 1, 1, 16);
  return readMoe(in, model) ? QueryAnswer(servedParameters(*model, gpus, additional) * bytes) : QueryAnswer();
}

/// Sequences of `context` tokens in the caches of all GPUs; a real number, of which whole sequences count.
QueryAnswer cacheBatch(QueryInputs &in) {
  const ModelSpec *model = in.has("model") || !in.has("kv_bytes_per_token") ? in.model() : nullptr;
  double perGpu = in.has("kv_bytes_per_gpu") ? in.number("kv_bytes_per_gpu", 0, maxRate)
                                             : 1e9 * in.number("kv_GB_per_gpu", 0, maxRate);
  int64_t gpus = in.whole("gpus", 1, maxGpus), context = in.whole("context", 1);
  CacheFormat format =
      in.word("format", {"plain", "bf16", "flashmla_fp8"}, 0) == 2 ? CacheFormat::FlashMlaFp8 : CacheFormat::Plain;
  double sequence = 0;
  if (in.has("kv_bytes_per_token")) { // what an engine allots, of whatever model
    sequence = in.number("kv_bytes_per_token", 1e-6, maxRate) * double(context);
  } else if (model) {
    sequence = cacheBytesOfContext(*model, format, in.whole("elem_bytes", 2, 1, 16), context).real();
  }
  double batch = in.ok() ? perGpu * double(gpus) / sequence : 0;
  return QueryAnswer().part("max_batch", batch).part("whole", std::floor(batch));
}

int64_t readLayers(QueryInputs &in, const ModelSpec *model) {
  return in.whole("layers", model ? int64_t(model->moeLayers().size()) : 1, 1, 1 << 20);
}

QueryAnswer communication(QueryInputs &in, bool seconds) {
  const ModelSpec *model = in.model();
  if (!readMoe(in, model))
    return QueryAnswer();
  ServeCluster cluster = readCluster(in);
  ServeParameters parameters = readParameters(in);
  if (in.has("ineff") && in.has("ineff_comm"))
    in.fail("ineff", "is the same as 'ineff_comm'", "give one of them");
  parameters.linkInefficiency = in.number("ineff", parameters.linkInefficiency, 0, 1e6);
  double batch = in.number("B_global", 0, 1e12);
  int64_t layers = readLayers(in, model);
  if (!in.ok())
    return QueryAnswer();
  double bytes = communicationBytes(*model, cluster, parameters, batch, layers);
  return QueryAnswer(seconds ? communicationSeconds(cluster, parameters, bytes) : bytes);
}

QueryAnswer deduplicated(QueryInputs &in) {
  const ModelSpec *model = in.model();
  const MoeSpec *moe = readMoe(in, model);
  int64_t gpus = in.whole("gpus", 1, maxGpus), nodes = in.whole("nodes", 1, gpus), layers = readLayers(in, model);
  checkDivides(in, "nodes", nodes, "the GPUs", gpus);
  double batch = in.number("B_global", 0, 1e12);
  double bytes = in.number("disp_bytes", 1, 0, 16) + in.number("comb_bytes", 2, 0, 16);
  double reached = moe ? distinctNodesMean(moe->experts, moe->topK, std::min(nodes, moe->experts)) : 0;
  double mean = in.number("mean_nodes", reached, 0, double(nodes));
  return in.ok() ? QueryAnswer(deduplicatedBytes(*model, gpus, nodes, batch, layers, mean, bytes)) : QueryAnswer();
}

} // namespace

std::vector<QueryFunction> formulas::serveQueries() {
  const std::string parameters =
      "knobs ineff_mem ineff_mla ineff_ep ineff_comm beta additional w_bytes kv_elem kv_format "
      "disp_bytes comb_bytes flavour small_batch comm_layers count_embed";
  const std::string traffic = "model cluster B_global layers ineff " + parameters;
  const char *whole = "004, section 3.5", *links = "004, section 3.3";
  return {
      {"s004_step", "tokens/s of a GPU", whole, "model cluster B_global S tbo " + parameters, step},
      {"s004_max_batch_for_tps", "sequences", whole, "model cluster S min_tps tbo " + parameters, batchForRate},
      {"serve_weights_per_gpu", "bytes", "004, section 3.1", "model gpus additional all_bytes", weights},
      {"kv_max_batch", "sequences", "004, section 4",
       "model kv_GB_per_gpu kv_bytes_per_gpu gpus context kv_bytes_per_token format elem_bytes", cacheBatch},
      {"comm_amount", "bytes into a GPU", links, traffic, [](QueryInputs &in) { return communication(in, false); }},
      {"comm_time", "s", links, traffic, [](QueryInputs &in) { return communication(in, true); }},
      {"ib_bytes_dedup", "bytes of a GPU", "node-deduplicated dispatch",
       "model gpus nodes B_global layers mean_nodes disp_bytes comb_bytes", deduplicated},
      {"mtp_tokens_per_step", "tokens", "000, multi-token prediction", "acceptance depth", mtpTokens},
  };
}
