//===- TrainStep.cpp - One micro-batch on one pipeline stage ------------------===//
//
// Time of one micro-batch on one stage, as the three passes that a pipeline schedule places: forward, gradient of the
// inputs, gradient of the weights. A pass is the larger of its FLOP over a rate and its bytes over the bandwidth.
//
//   linears      each of the three passes does the same FLOP once
//   attention    its inner products take 2.5 times as many in the backward, where scores are computed again: all in the
//                gradient of the inputs, as they have no weights
//   recomputed   what is recomputed is added to the gradient of the inputs, its bytes in proportion to its FLOP
//
// Keys go around the ranks of a sequence (ring attention) and are hidden by the products of the blocks that are there,
// all but the last. Activations that go to the host are hidden by a micro-batch's passes. Times add up: those of the
// stages of a rank, or of single layers where a planner of stages asks for them.
//
//===----------------------------------------------------------------------===//

#include "TrainStep.h"

#include "k2c/Model/Layers.h"
#include "k2c/Planner/MlaForms.h"
#include <algorithm>
#include <numeric>

using namespace k2c;
using namespace k2c::planner;

PipelineShape planner::shapeOf(const ParallelLayout &layout, int64_t microbatches) {
  PipelineShape shape;
  shape.kind = layout.schedule;
  shape.pp = layout.pp;
  shape.microbatches = microbatches;
  shape.chunks = layout.chunks;
  shape.paired = layout.overlap && layout.schedule == PipelineKind::Interleaved;
  shape.extraWarmup = shape.paired ? 1 : 0;
  return shape;
}

std::vector<int64_t> planner::layersOfStages(const ModelSpec &spec, const ParallelLayout &layout) {
  return layout.layers.empty()
             ? stageLayers(spec.layerCount(), stageCount(shapeOf(layout, 1)), StagePartition::Balanced)
             : layout.layers;
}

StageTime &StageTime::operator+=(const StageTime &other) {
  for (size_t module = 0; module < trainModuleCount; ++module) {
    modules[module].forward += other.modules[module].forward;
    modules[module].inputGrad += other.modules[module].inputGrad;
    modules[module].weightGrad += other.modules[module].weightGrad;
  }
  forward += other.forward, inputGrad += other.inputGrad, weightGrad += other.weightGrad;
  dispatch += other.dispatch, tensor += other.tensor, pipeline += other.pipeline;
  for (size_t pass = 0; pass < ring.size(); ++pass) {
    ring[pass] += other.ring[pass];
    ringSeconds[pass] += other.ringSeconds[pass], ringHidden[pass] += other.ringHidden[pass];
  }
  coreSeconds += other.coreSeconds;
  linkSeconds += other.linkSeconds, hostBytes += other.hostBytes, hostSeconds += other.hostSeconds;
  hostExposed += other.hostExposed;
  return *this;
}

StageTime StageTime::operator*(double factor) const {
  StageTime t = *this;
  for (ModuleTime &module : t.modules)
    for (PassTime *pass : {&module.forward, &module.inputGrad, &module.weightGrad})
      *pass = *pass * factor;
  for (PassTime *pass : {&t.forward, &t.inputGrad, &t.weightGrad})
    *pass = *pass * factor;
  t.dispatch = dispatch * factor, t.tensor = tensor * factor, t.pipeline = pipeline * factor;
  for (size_t pass = 0; pass < ring.size(); ++pass) {
    t.ring[pass] = ring[pass] * factor;
    t.ringSeconds[pass] *= factor, t.ringHidden[pass] *= factor;
  }
  for (double *each : {&t.coreSeconds, &t.linkSeconds, &t.hostBytes, &t.hostSeconds, &t.hostExposed})
    *each *= factor;
  return t;
}

TrainStages::TrainStages(const RequestModel &context, const ParallelLayout &layout) : context(context), layout(layout) {
  stages = context.model.ofStages(layersOfStages(context.request.spec, layout), layout);
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
  const PipelineShape shape = shapeOf(layout, 1);
  std::vector<size_t> own;
  for (int32_t lane = 0, lanes = PipelineRoute(shape).lanes(); lane < lanes; ++lane)
    own.push_back(size_t(stageOf(shape, {int32_t(rank), lane})));
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
static double coreFlops(const AttentionSizes &sizes, double tokens, double sequence) {
  const double keys = sizes.seenKeys(sequence / 2);
  return 2 * tokens * keys * double(sizes.heads * (sizes.key + sizes.value)) +
         sizes.indexingFlops(tokens, sequence / 2);
}

namespace {

/// FLOP of the linears and of attention's products.
struct Work {
  double linear = 0, core = 0;
  double flops() const { return linear + core; }
};

/// What a module holds and does of one micro-batch on a stage.
struct ModuleWork {
  Work forward, again; ///< again: recomputed
  double parameters = 0, tensors = 0;
};

PassTime passOf(const Work &work, double bytes, const DeviceRates &rates) {
  const double computing = work.linear / rates.experts + work.core / rates.attention, moving = bytes / rates.memory;
  return {work.flops(), bytes, std::max(computing, moving), moving > computing ? Bound::Memory : Bound::Compute};
}

/// Memory traffic counts each tensor that a module computes as written once and read once, its gradient likewise; the
/// backward reads what was kept, gradients of weights are added to sums of their own width.
ModuleTime timeOf(const ModuleWork &work, const StateBytes &state, const DeviceRates &rates) {
  const double weights = work.parameters * state.weight, reading = weights + 2 * work.tensors;
  const Work &forward = work.forward, &again = work.again;
  const double readingAgain = forward.flops() > 0 ? reading * again.flops() / forward.flops() : 0;
  ModuleTime time;
  time.forward = passOf(forward, reading, rates);
  // The gradient of attention costs two and a half times its forward (scores are computed again).
  time.inputGrad = passOf({forward.linear + again.linear, 2.5 * forward.core + again.core},
                          weights + 3 * work.tensors + readingAgain, rates);
  time.weightGrad = passOf({forward.linear, 0}, 2 * work.tensors + 2 * work.parameters * state.gradient, rates);
  return time;
}

} // namespace

const char *planner::nameOf(TrainModule module) {
  static const char *const names[] = {"attention", "experts", "dense layers, head"};
  return names[size_t(module)];
}

void TrainStages::timePasses(StageTime &time, const RankShare &share, bool isLast) const {
  const ModelSpec &spec = context.request.spec;
  const WeightModule head = spec.tiedEmbeddings ? WeightModule::Embedding : WeightModule::Head;
  const double rows = tokens(), tp = double(layout.tp), layers = double(share.layerCount());
  auto held = [&](WeightModule module) { return at(share.parameters, module); };
  const std::array<double, trainModuleCount> tensors = tensorBytes(share, RecomputeSet::None);
  ModuleWork attention, experts, dense;

  attention.parameters = held(WeightModule::Attention) + held(WeightModule::Norms);
  attention.forward.linear = 2 * rows * held(WeightModule::Attention);
  attention.forward.core = context.model.overLayers(share.attentionLayers, [&](const AttentionSizes &sizes) {
    return coreFlops(sizes, rows, double(context.request.workload.train.sequence));
  }) / tp;
  attention.tensors = tensors[size_t(TrainModule::Attention)];
  time.coreSeconds = attention.forward.core / context.rates.attention;
  // All ranks of an expert group bring rows / tp tokens; each computes its share of what they chose.
  const double routed =
      spec.moe ? 2 * rows / tp * double(spec.moe->topK) * context.model.expert * double(share.moeLayers) : 0;
  experts.parameters = held(WeightModule::Experts) + held(WeightModule::Router) + held(WeightModule::Shared);
  experts.forward.linear = routed + 2 * rows * (held(WeightModule::Router) + held(WeightModule::Shared));
  experts.tensors = tensors[size_t(TrainModule::Experts)];
  // Of an embedding only the rows of the tokens move.
  dense.parameters = held(WeightModule::Mlp) + (isLast ? held(head) : 0);
  dense.forward.linear = 2 * rows * dense.parameters;
  dense.tensors = tensors[size_t(TrainModule::Dense)] + (isLast ? rows * double(spec.vocab) * 4 / tp : 0);

  const RecomputeSet set = layout.recompute;
  if (set == RecomputeSet::Layer)
    for (ModuleWork *module : {&attention, &experts, &dense})
      module->again = module->forward;
  else if (set != RecomputeSet::None) {
    const LatentMatrices w = latentMatrices(*spec.latentAttention(), spec.hidden);
    attention.again.linear = 2 * rows * layers * (w.uq + w.qr + w.uk + w.uv).real() / tp;
    experts.again.linear = set == RecomputeSet::DeepSeekV3 ? 0 : routed / 3; // the down projections
  }
  const ModuleWork *const all[] = {&attention, &experts, &dense};
  for (size_t module = 0; module < trainModuleCount; ++module) {
    const ModuleTime of = timeOf(*all[module], context.request.workload.train.bytes, context.rates);
    time.modules[module] = of;
    time.forward += of.forward, time.inputGrad += of.inputGrad, time.weightGrad += of.weightGrad;
  }
}

/// Bytes of a token's keys and values of one layer on a rank, expanded where attention is latent (as Megatron-LM sends
/// them).
static double keyBytes(const AttentionSizes &sizes, const ParallelLayout &layout, double width) {
  return (double(sizes.keyHeads * (sizes.key + sizes.value)) / double(std::min(layout.tp, sizes.keyHeads)) +
          double(sizes.indexer ? sizes.indexer->dim : 0)) *
         width;
}

double TrainStages::ringBuffers() const {
  if (layout.cp == 1)
    return 0;
  return 4 * tokens() * context.model.maxOfLayers([&](const AttentionSizes &sizes) {
    return keyBytes(sizes, layout, context.rates.activationBytes);
  });
}

/// Ring attention (Liu et al., 2023; Megatron-LM's cp_comm_type p2p): keys and values of a layer go around the cp ranks
/// while each computes with those it has, in the backward with their gradients beside them. What is sent while the last
/// block computes does not exist, so (cp - 1) / cp of attention's products hide the ring.
void TrainStages::addRing(StageTime &t, const RankShare &share) const {
  const double cp = double(layout.cp), all = tokens() * (cp - 1); // tokens of the other ranks
  const double bytes = context.model.overLayers(share.attentionLayers, [&](const AttentionSizes &sizes) {
    // Both halves of a rank's tokens, from the two ends of the sequence, see a window before them.
    const double window = 2 * double(sizes.window) * double(layout.microbatchSize);
    return (sizes.window > 0 ? std::min(all, window) : all) * keyBytes(sizes, layout, context.rates.activationBytes);
  });
  LinkUse once = context.links.send((cp - 1) * double(layout.tp), bytes);
  once.latency *= double(share.layerCount()) * (cp - 1);
  const bool again = layout.recompute == RecomputeSet::Layer;
  const double times[] = {1, again ? 3.0 : 2.0}, core[] = {1, again ? 3.5 : 2.5};
  for (size_t pass = 0; pass < t.ring.size(); ++pass) {
    t.ring[pass] = once * times[pass];
    t.ringSeconds[pass] = context.links.seconds(t.ring[pass]);
    t.ringHidden[pass] = std::min(t.ringSeconds[pass], (cp - 1) / cp * core[pass] * t.coreSeconds);
  }
}

/// Activations stream out beside the backward that follows and in beside the forward before, both ways at once: what a
/// micro-batch's passes do not cover is waited for.
static double hostExposed(const StageTime &t, bool overlap) {
  const double apart = t.passes() - t.hostExposed, together = t.together() - t.hostExposed;
  return std::max(0.0, t.hostSeconds - (overlap ? together : apart));
}

StageTime TrainStages::time(const RankShare &share, bool isLast) const {
  const ModelSpec &spec = context.request.spec;
  const DeviceRates &rates = context.rates;
  const double rows = tokens(), tp = double(layout.tp), layers = double(share.layerCount()),
               hidden = double(spec.hidden);
  StageTime t;
  timePasses(t, share, isLast);
  const Links &links = context.links;
  if (spec.moe && share.moeLayers > 0) {
    const double row = hidden * (rates.dispatchBytes + rates.combineBytes);
    t.dispatch = links.dispatch({double(layout.ep), double(layout.etp)}, *spec.moe, rows / tp, row);
    t.dispatch += links.withinExperts(double(layout.ep), double(layout.etp), *spec.moe, rows / tp, row);
    t.dispatch = t.dispatch * double(share.moeLayers);
  }
  if (layout.tp > 1)
    t.tensor = links.allReduce({tp, 1}, rows * hidden * rates.activationBytes) * (2 * layers);
  if (layout.pp > 1)
    t.pipeline = links.send(double(layout.tp * layout.cp * layout.dp),
                            rows * hidden * rates.activationBytes / (layout.sp ? tp : 1));
  if (layout.cp > 1)
    addRing(t, share);
  t.linkSeconds = links.seconds(t.dispatch) + links.seconds(t.tensor) + links.seconds(t.pipeline);
  if (offloads(layout.offload, Offload::Activations)) {
    t.hostBytes = activations(share);
    t.hostSeconds = t.hostBytes / context.request.topology.host->effective().value;
    t.hostExposed = hostExposed(t, layout.overlap);
  }
  return t;
}

StageTime TrainStages::timeOfLayer(bool isMoe) const {
  const ModelSpec &spec = context.request.spec;
  const std::vector<int64_t> moe = spec.moeLayers();
  int64_t layer = spec.layerCount() - 1;
  while (layer > 0 && std::binary_search(moe.begin(), moe.end(), layer) != isMoe)
    --layer;
  RankShare one = context.model.ofStages({layer, 1, spec.layerCount() - 1 - layer}, layout)[1];
  one.attentionLayers = context.model.layersWith({0, spec.layerCount()});
  for (double &layers : one.attentionLayers)
    layers /= double(spec.layerCount());
  return time(one, /*isLast=*/false);
}

StageTime TrainStages::timeOfHead() const {
  return time(context.model.ofStages({context.request.spec.layerCount(), 0}, layout)[1], /*isLast=*/true);
}

/// Bytes of one dense layer: input, gate, up, product, output, and the residual and norm before it.
static double denseActivations(const ModelSpec &spec, const Microbatch &batch) {
  const double rows = double(batch.sequences) * double(batch.tokens) / double(batch.cp), h = double(spec.hidden);
  return rows * (6 * h / double(batch.sp) + 8 * double(spec.mlp ? spec.mlp->inter : 0) / double(batch.tp));
}

std::array<double, trainModuleCount> TrainStages::tensorBytes(const RankShare &of, RecomputeSet set) const {
  const ModelSpec &spec = context.request.spec;
  Microbatch batch;
  batch.sequences = layout.microbatchSize;
  batch.tokens = context.request.workload.train.sequence;
  batch.tp = layout.tp;
  batch.sp = layout.sp ? layout.tp : 1;
  batch.cp = layout.cp;
  batch.ep = layout.ep;
  batch.etp = layout.etp;
  const bool isFull = set == RecomputeSet::Layer;
  const Recompute full = isFull ? Recompute::Full : Recompute::None;
  const double share = set == RecomputeSet::None ? 1 : kept;
  const double attention = context.model.overLayers(of.attentionLayers, [&](const AttentionSizes &sizes) {
    return attentionActivations(spec, sizes, batch, full, /*flash=*/true, /*dropout=*/false) * share;
  });
  const double moe = moeActivations(spec, batch, full, /*paperTokens=*/false) * share;
  const double dense = isFull ? 0 : denseActivations(spec, batch);
  return {attention, double(of.moeLayers) * moe, double(of.denseLayers()) * dense};
}

double TrainStages::activations(const RankShare &of) const {
  const std::array<double, trainModuleCount> bytes = tensorBytes(of, layout.recompute);
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}

double TrainStages::activationsOfRows(size_t stage, double rows) const {
  if (layout.recompute == RecomputeSet::Layer || !context.request.spec.moe)
    return 0;
  // As moeActivations counts a row: input, gate, up, product, output.
  const double row =
      3 * double(context.request.spec.hidden) + 8 * double(context.request.spec.moe->inter) / double(layout.etp);
  return rows * row * kept * double(stages[stage].moeLayers);
}
