//===- TrainStep.cpp - One micro-batch on one pipeline stage ------------------===//

#include "TrainStep.h"

#include "k2c/Planner/MlaForms.h"
#include <algorithm>

using namespace k2c;
using namespace k2c::planner;

TrainStages::TrainStages(const RequestModel &context, const ParallelLayout &layout) : context(context), layout(layout) {
  int64_t count = layout.pp;
  if (layout.schedule == PipelineKind::Interleaved)
    count *= layout.chunks;
  if (layout.schedule == PipelineKind::DualPipeV)
    count *= 2;
  for (LayerRange layers : context.model.stages(count))
    stages.push_back(context.model.of(layers, layout));
  if (layout.recompute != RecomputeSet::None && layout.recompute != RecomputeSet::Layer) {
    double all = 0, some = 0;
    for (const SavedTensor &tensor : savedTensors(context.request.spec, RecomputeSet::None))
      all += tensor.bytes;
    for (const SavedTensor &tensor : savedTensors(context.request.spec, layout.recompute))
      some += tensor.bytes;
    kept = some / all;
  }
}

std::vector<size_t> TrainStages::ofRank(int64_t rank) const {
  std::vector<size_t> own = {size_t(rank)};
  if (layout.schedule == PipelineKind::Interleaved)
    for (int64_t chunk = 1; chunk < layout.chunks; ++chunk)
      own.push_back(size_t(chunk * layout.pp + rank));
  if (parameterCopies(layout.schedule) == 2)
    own.push_back(stages.size() - 1 - size_t(rank));
  return own;
}

RankShare TrainStages::shareOf(int64_t rank) const {
  RankShare share;
  for (size_t stage : ofRank(rank))
    share += stages[stage];
  return share;
}

double TrainStages::tokens() const {
  return double(layout.microbatchSize) * double(context.request.workload.train.sequence) / double(layout.cp);
}

/// FLOP of scores and sums over values of one layer, causal, all heads.
static double coreFlops(const ModelSpec &spec, double tokens, double sequence) {
  if (const auto *gqa = std::get_if<GqaSpec>(&spec.attention)) {
    const double layers = double(spec.layerCount()), windowed = double(gqa->windowedLayers) / layers;
    const double keys = (1 - windowed) * sequence / 2 + windowed * std::min(sequence / 2, double(gqa->window));
    return 4 * tokens * keys * double(gqa->heads * gqa->headDim);
  }
  const MlaSpec &mla = std::get<MlaSpec>(spec.attention);
  double keys = sequence / 2, indexing = 0;
  if (mla.indexer) {
    indexing = 2 * tokens * keys * double(mla.indexer->heads * mla.indexer->dim);
    keys = std::min(keys, double(mla.indexer->topK));
  }
  return 2 * tokens * keys * double(mla.heads * (mla.nope + mla.rope + mla.value)) + indexing;
}

namespace {

/// FLOP of the linears and of attention's products.
struct Work {
  double linear = 0, core = 0;
  double flops() const { return linear + core; }
};

/// What is computed a second time of a stage's forward.
Work recomputed(RecomputeSet set, const Work &forward, double experts, double up) {
  switch (set) {
  case RecomputeSet::None:
    return {};
  case RecomputeSet::DeepSeekV3:
    return {up, 0};
  case RecomputeSet::KimiK2:
  case RecomputeSet::KimiK2Fp8:
    return {up + experts / 3, 0}; // the down projections
  case RecomputeSet::Layer:
    return forward;
  }
  return {};
}

PassTime passOf(const Work &work, double bytes, const DeviceRates &rates) {
  const double computing = work.linear / rates.experts + work.core / rates.attention, moving = bytes / rates.memory;
  return {work.flops(), bytes, std::max(computing, moving), moving > computing ? Bound::Memory : Bound::Compute};
}

} // namespace

/// Memory traffic counts each tensor that a layer computes as written once and read once, its gradient likewise; the
/// backward reads what was kept, gradients of weights are added to sums of their own width.
void TrainStages::timePasses(StageTime &time, size_t stage) const {
  const ModelSpec &spec = context.request.spec;
  const RankShare &share = stages[stage];
  const StateBytes &state = context.request.workload.train.bytes;
  const bool isLast = stage + 1 == stages.size();
  const double rows = tokens(), tp = double(layout.tp), layers = double(share.layerCount());
  Work forward;
  double up = 0, experts = 0;
  for (Piece piece : {Piece::Attention, Piece::Router, Piece::Shared, Piece::Mlp})
    forward.linear += 2 * rows * at(share.parameters, piece);
  if (isLast)
    forward.linear += 2 * rows * at(share.parameters, spec.tiedEmbeddings ? Piece::Embedding : Piece::Head);
  if (const auto *mla = std::get_if<MlaSpec>(&spec.attention)) {
    LatentMatrices w = latentMatrices(*mla, spec.hidden);
    up = 2 * rows * layers * (w.uq + w.qr + w.uk + w.uv).real() / tp;
  }
  // All ranks of an expert group bring rows / tp tokens; each computes its share of what they chose.
  if (spec.moe)
    experts = 2 * rows / tp * double(spec.moe->topK) * context.model.expert * double(share.moeLayers);
  forward.linear += experts;
  forward.core = layers * coreFlops(spec, rows, double(context.request.workload.train.sequence)) / tp;
  const Work again = recomputed(layout.recompute, forward, experts, up);

  // Of an embedding only the rows of the tokens move.
  double parameters = sum(share.parameters);
  if (!(isLast && spec.tiedEmbeddings))
    parameters -= at(share.parameters, Piece::Embedding);
  const double weights = parameters * state.weight;
  const double tensors = tensorBytes(stage, RecomputeSet::None) + (isLast ? rows * double(spec.vocab) * 4 / tp : 0);
  const double reading = weights + 2 * tensors;
  const double readingAgain = forward.flops() > 0 ? reading * again.flops() / forward.flops() : 0;
  time.forward = passOf(forward, reading, context.rates);
  // The gradient of attention costs two and a half times its forward (scores are computed again).
  time.inputGrad = passOf({forward.linear + again.linear, 2.5 * forward.core + again.core},
                          weights + 3 * tensors + readingAgain, context.rates);
  time.weightGrad = passOf({forward.linear, 0}, 2 * tensors + 2 * parameters * state.gradient, context.rates);
}

StageTime TrainStages::time(size_t stage) const {
  const ModelSpec &spec = context.request.spec;
  const RankShare &share = stages[stage];
  const DeviceRates &rates = context.rates;
  const double rows = tokens(), tp = double(layout.tp), layers = double(share.layerCount()),
               hidden = double(spec.hidden);
  StageTime t;
  timePasses(t, stage);
  const Links &links = context.links;
  if (spec.moe && share.moeLayers > 0 && layout.ep > 1)
    t.dispatch = links.dispatch({double(layout.ep), double(layout.etp)}, *spec.moe, rows / tp,
                                hidden * (rates.dispatchBytes + rates.combineBytes)) *
                 double(share.moeLayers);
  if (layout.tp > 1)
    t.tensor = links.allReduce({tp, 1}, rows * hidden * rates.activationBytes) * (2 * layers);
  if (layout.pp > 1)
    t.pipeline = links.send(double(layout.tp * layout.cp * layout.dp),
                            rows * hidden * rates.activationBytes / (layout.sp ? tp : 1));
  t.linkSeconds = links.seconds(t.dispatch) + links.seconds(t.tensor) + links.seconds(t.pipeline);
  if (layout.offload != Offload::None) {
    t.hostBytes = activations(stage);
    t.hostSeconds = t.hostBytes / context.request.topology.host->effective().value;
  }
  return t;
}

/// Bytes of one dense layer: input, gate, up, product, output, and the residual and norm before it.
static double denseActivations(const ModelSpec &spec, const Microbatch &batch) {
  const double rows = double(batch.sequences) * double(batch.tokens) / double(batch.cp), h = double(spec.hidden);
  return rows * (6 * h / double(batch.sp) + 8 * double(spec.mlp ? spec.mlp->inter : 0) / double(batch.tp));
}

double TrainStages::tensorBytes(size_t stage, RecomputeSet set) const {
  const ModelSpec &spec = context.request.spec;
  const RankShare &of = stages[stage];
  Microbatch batch;
  batch.sequences = layout.microbatchSize;
  batch.tokens = context.request.workload.train.sequence;
  batch.tp = layout.tp;
  batch.sp = layout.sp ? layout.tp : 1;
  batch.cp = layout.cp;
  batch.ep = layout.ep;
  const bool isFull = set == RecomputeSet::Layer;
  const Recompute full = isFull ? Recompute::Full : Recompute::None;
  const double share = set == RecomputeSet::None ? 1 : kept;
  const double attention = attentionActivations(spec, batch, full, /*flash=*/true, /*dropoutMask=*/false) * share;
  const double moe = moeActivations(spec, batch, full, /*paperTokens=*/false) * share;
  const double dense = isFull ? 0 : denseActivations(spec, batch);
  return double(of.layerCount()) * attention + double(of.moeLayers) * moe + double(of.denseLayers()) * dense;
}

double TrainStages::activations(size_t stage) const { return tensorBytes(stage, layout.recompute); }

double TrainStages::activationsOfRows(size_t stage, double rows) const {
  if (layout.recompute == RecomputeSet::Layer || !context.request.spec.moe)
    return 0;
  // As moeActivations counts a row: input, gate, up, product, output.
  const double row =
      3 * double(context.request.spec.hidden) + 8 * double(context.request.spec.moe->inter) / double(layout.etp);
  return rows * row * kept * double(stages[stage].moeLayers);
}
