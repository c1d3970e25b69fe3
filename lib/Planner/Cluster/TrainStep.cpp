//===- TrainStep.cpp - One micro-batch on one pipeline stage ------------------===//
//
// Time of one micro-batch on one stage, as the three passes that a pipeline schedule places: forward, gradient of the
// inputs, gradient of the weights. A pass is its kernels, one after another (DeviceRates.h).
//
//   linears      each of the three passes does the same FLOP once
//   attention    its inner products take 2.5 times as many in the backward, where scores are computed again: all in the
//                gradient of the inputs, as they have no weights
//   recomputed   products that are recomputed are added to the gradient of the inputs
//
// Keys go around the ranks of a sequence (ring attention) and are hidden by the products of the blocks that are there,
// all but the last. Activations that go to the host are hidden by a micro-batch's passes. Times add up: those of the
// stages of a rank, or of single layers where a planner of stages asks for them.
//
//===----------------------------------------------------------------------===//

#include "TrainStep.h"

#include "LargestLoad.h"
#include "StageSplit.h"
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

TrainStages::TrainStages(const RequestModel &context, const ParallelLayout &layout)
    : context(context), layout(layout), fullest(imbalance()), kept(context.kept[size_t(layout.recompute)]) {
  const std::vector<int64_t> layers = layersOfStages(context.request.spec, layout);
  LayerRange before, range;
  for (size_t stage = 0; stage < layers.size(); ++stage, before = range) {
    range = {range.end, range.end + layers[stage]};
    const bool isLast = stage + 1 == layers.size();
    if (stage < 2 || isLast || !context.model.areAlike(before, range))
      kinds.push_back(context.model.of(range, stage == 0, isLast, layout));
    kindOfStage.push_back(kinds.size() - 1);
  }
  if (context.request.spec.mtpLayers > 0)
    kinds.back() += context.model.ofDraft(layout, /*hasTables=*/false);
  for (const RankShare &kind : kinds)
    activationsOfKind.push_back(activations(kind));
  const PipelineShape shape = shapeOf(layout, 1);
  const int32_t lanes = PipelineRoute(shape).lanes();
  for (int64_t rank = 0; rank < layout.pp; ++rank) {
    std::vector<size_t> own(static_cast<size_t>(lanes));
    for (int32_t lane = 0; lane < lanes; ++lane)
      own[size_t(lane)] = size_t(stageOf(shape, {int32_t(rank), lane}));
    const bool isAlike = rank > 0 && std::equal(own.begin(), own.end(), stagesOfRank.back().begin(),
                                                [&](size_t a, size_t b) { return kindOf(a) == kindOf(b); });
    if (!isAlike)
      first.push_back(rank);
    kindsOfRanks.push_back(first.size() - 1);
    stagesOfRank.push_back(std::move(own));
  }
}

RankShare TrainStages::shareOf(int64_t rank) const {
  RankShare share;
  for (size_t stage : ofRank(rank))
    share += kinds[kindOf(stage)];
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

/// What a module holds and does of one micro-batch on a stage.
struct ModuleWork {
  KernelWork forward;
  KernelWork again;    ///< what the backward computes again
  double backward = 0; ///< what the gradient of the inputs passes more than the forward
  double parameters = 0;
};

/// Rows of a module on a rank, and what divides them: sequence parallelism what tensor parallelism leaves whole.
struct ModuleRows {
  double count = 0, whole = 1, split = 1;
  double weight = 2; ///< bytes
};

/// What kernels beside the products move, and what the products stream.
void addTraffic(ModuleWork &module, const KernelTraffic &traffic, const ModuleRows &rows, const DeviceRates &rates) {
  auto elements = [&](const RowElements &of) { return rows.count * (of.whole / rows.whole + of.split / rows.split); };
  const double read = elements(traffic.read) * rates.activationBytes, multiplied = elements(traffic.multiplied);
  KernelWork &forward = module.forward;
  forward.passed += read + elements(traffic.written) * rates.activationBytes + multiplied * rates.castBytes;
  forward.filling += 2 * rates.fillDepth * elements(traffic.results);
  forward.kernels += traffic.kernels;
  forward.streamed += module.parameters * rows.weight;
  module.backward +=
      read + elements(traffic.results) * rates.castBackward + multiplied * (rates.transposeBytes - rates.castBytes);
}

PassTime passOf(const KernelWork &work, const DeviceRates &rates, double multiprocessors) {
  const double moved = work.streamed + work.passed;
  return {work.linear + work.core, moved, rates.seconds(work, multiprocessors),
          moved / rates.memory > rates.computing(work) / multiprocessors ? Bound::Memory : Bound::Compute};
}

/// The gradient of a kernel's inputs reads what the kernel read and the gradient of its results, and writes those of
/// its inputs; gradients of weights are added to sums of their own width.
ModuleTime timeOf(const ModuleWork &work, const StateBytes &state, const DeviceRates &rates, double multiprocessors) {
  const KernelWork &forward = work.forward, &again = work.again;
  KernelWork inputs = forward, weights;
  inputs.linear += again.linear, inputs.filling += again.filling, inputs.streamed += again.streamed;
  // The gradient of attention costs two and a half times its forward (scores are computed again), at a rate of its own.
  const double backward = 2.5 * rates.attention / rates.attentionBackward;
  inputs.core = backward * forward.core + again.core;
  inputs.coreFilling = backward * forward.coreFilling + again.coreFilling;
  inputs.passed += work.backward + again.passed;
  inputs.kernels += again.kernels;
  weights.linear = forward.linear, weights.filling = forward.filling;
  weights.passed = 2 * work.parameters * state.gradient;
  ModuleTime time;
  time.forward = passOf(forward, rates, multiprocessors);
  time.inputGrad = passOf(inputs, rates, multiprocessors);
  time.inputGrad.flops = forward.linear + again.linear + 2.5 * forward.core + again.core;
  time.weightGrad = passOf(weights, rates, multiprocessors);
  return time;
}

} // namespace

const char *planner::nameOf(TrainModule module) {
  static const char *const names[] = {"attention", "experts", "dense, shared, router, head"};
  return names[size_t(module)];
}

void TrainStages::timePasses(StageTime &time, const RankShare &share, bool isLast) const {
  const ModelSpec &spec = context.request.spec;
  const DeviceRates &rates = context.rates;
  const StateBytes &state = context.request.workload.train.bytes;
  const WeightModule head = spec.tiedEmbeddings ? WeightModule::Embedding : WeightModule::Head;
  const double rows = tokens(), tp = double(layout.tp), layers = double(share.layerCount());
  const double sp = layout.sp ? tp : 1;
  auto held = [&](WeightModule module) { return at(share.parameters, module); };
  ModuleWork attention, experts, dense;
  auto passes = [&](ModuleWork &module, const KernelTraffic &traffic, double count, double whole, int64_t ranks) {
    addTraffic(module, traffic, {count, whole, double(ranks), state.weight}, rates);
  };

  attention.parameters = held(WeightModule::Attention) + held(WeightModule::Norms);
  attention.forward.linear = 2 * rows * held(WeightModule::Attention);
  attention.forward.core = context.model.overLayers(share.attentionLayers, [&](const AttentionSizes &sizes) {
    return coreFlops(sizes, rows, double(context.request.workload.train.sequence));
  }) / tp;
  attention.forward.coreFilling =
      attention.forward.core * rates.attentionFill / (double(context.request.workload.train.sequence) / 2);
  passes(attention, share.traffic.attention, rows, sp, layout.tp);
  time.coreSeconds = attention.forward.core / rates.attention;
  // All ranks of an expert group bring rows / tp tokens; each computes its share of what they chose.
  const double routed =
      spec.moe ? 2 * rows / tp * double(spec.moe->topK) * context.model.expert * double(share.moeLayers) : 0;
  experts.parameters = held(WeightModule::Experts);
  experts.forward.linear = routed;
  experts.forward.filling = routed * (fullest - 1);
  passes(experts, share.traffic.experts, rowsOfExperts() * fullest, 1, layout.etp);
  dense.parameters = held(WeightModule::Mlp) + held(WeightModule::Router) + held(WeightModule::Shared);
  dense.forward.linear = 2 * rows * dense.parameters;
  passes(dense, share.traffic.dense, rows, sp, layout.tp);
  if (isLast) { // in bf16, with logits in f32, also of the tokens that modules of multi-token prediction predict
    const double predicted = rows * double(1 + std::min<int64_t>(spec.mtpLayers, 1));
    dense.parameters += held(head);
    dense.forward.linear += 2 * predicted * held(head);
    dense.forward.filling += 2 * predicted * held(head) * (rates.linears / rates.plain - 1);
    dense.forward.streamed += held(head) * state.weight;
    dense.forward.passed += predicted * double(spec.vocab) * 4 / tp;
  }

  const RecomputeSet set = layout.recompute;
  if (set == RecomputeSet::Layer)
    for (ModuleWork *module : {&attention, &experts, &dense})
      module->again = module->forward;
  else if (spec.latentAttention() && recomputes(set, RecomputeSet::UpProjections)) {
    const LatentMatrices w = latentMatrices(*spec.latentAttention(), spec.hidden);
    attention.again.linear = 2 * rows * layers * (w.uq + w.qr + w.uk + w.uv).real() / tp;
  }
  if (set == RecomputeSet::KimiK2 || set == RecomputeSet::KimiK2Fp8)
    experts.again.linear = routed / 3; // the down projections
  const ModuleWork *const all[] = {&attention, &experts, &dense};
  const double multiprocessors = layout.overlap && layout.ep > 1 ? rates.besideTransfers : 1;
  for (size_t module = 0; module < trainModuleCount; ++module) {
    const ModuleTime of = timeOf(*all[module], state, rates, multiprocessors);
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
    t.dispatch =
        links.dispatch({double(layout.ep), double(layout.etp)}, *spec.moe, Copies::ForEachUnit, rows / tp, row);
    t.dispatch += links.withinExperts(double(layout.ep), double(layout.etp), *spec.moe, rows / tp, row);
    t.dispatch = t.dispatch * (double(share.moeLayers) * fullest);
  }
  if (layout.tp > 1)
    t.tensor = links.allReduce({tp, 1}, rows * hidden * rates.activationBytes) * (2 * layers);
  if (layout.pp > 1)
    t.pipeline = links.send(double(layout.tp * layout.cp * layout.dp),
                            rows * hidden * rates.activationBytes / (layout.sp ? tp : 1));
  if (layout.cp > 1)
    addRing(t, share);
  const double linkShare = layout.overlap && layout.ep > 1 ? rates.transferRate : 1;
  t.linkSeconds =
      links.transfer(t.dispatch) / linkShare + t.dispatch.latency + links.seconds(t.tensor) + links.seconds(t.pipeline);
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
  RankShare one = context.model.of({layer, layer + 1}, /*isFirst=*/false, /*isLast=*/false, layout);
  one.attentionLayers = context.model.layersWith({0, spec.layerCount()});
  for (double &layers : one.attentionLayers)
    layers /= double(spec.layerCount());
  return time(one, /*isLast=*/false);
}

StageTime TrainStages::timeOfHead() const {
  const int64_t all = context.request.spec.layerCount();
  RankShare head = context.model.of({all, all}, /*isFirst=*/false, /*isLast=*/true, layout);
  if (context.request.spec.mtpLayers > 0)
    head += context.model.ofDraft(layout, /*hasTables=*/false);
  return time(head, /*isLast=*/true);
}

double TrainStages::activations(const RankShare &of) const {
  const double rows = tokens(), sp = layout.sp ? double(layout.tp) : 1;
  double bytes = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    const KeptBytes &layer = kept[i];
    bytes += of.layersOfKinds[i] * rows * (layer.stream / sp + layer.latents + layer.split / double(layout.tp));
    bytes += of.layersOfKinds[i] * rowsOfExperts() * rowBytes(layer);
  }
  return bytes;
}

/// Rows of routed experts on a rank: all ranks of an expert group bring their tokens.
double TrainStages::rowsOfExperts() const {
  const ModelSpec &spec = context.request.spec;
  return spec.moe ? tokens() / (layout.sp ? double(layout.tp) : 1) * double(layout.etp) * double(spec.moe->topK) : 0;
}

double TrainStages::imbalance() const {
  const ModelSpec &spec = context.request.spec;
  if (!spec.moe || layout.ep == 1)
    return 1;
  if (const ExpertLoad &load = context.request.workload.expertLoad; !load.empty())
    return 1 / balancednessOf(load, layout);
  const double sequences = double(layout.microbatchSize * layout.ep * layout.etp) / double(layout.tp * layout.cp);
  return largestShare(rowsOfExperts(), layout.ep, skewOfSequences(slotsPerRank(spec, layout), sequences));
}

double TrainStages::rowBytes(const KeptBytes &layer) const { return layer.row + layer.rowSplit / double(layout.etp); }

double TrainStages::activationsOfRows(size_t stage, double rows) const {
  double bytes = 0;
  for (size_t i = 0; i < kept.size(); ++i)
    bytes += kinds[kindOf(stage)].layersOfKinds[i] * rows * rowBytes(kept[i]);
  return bytes;
}
