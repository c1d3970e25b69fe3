//===- ServeStep.cpp - Time of one step of a serving layout -------------------===//
//
// Time of one step, as a sum of parts that each are bound by arithmetic, memory or links (paper 004, section 3.5): of
// a part that computes, its kernels one after another (DeviceRates.h).
//
// A step waits for its fullest rank, so experts and dispatch take the mean times an imbalance: measured loads where
// the workload has them, else what experts that were placed by load give the largest of ep ranks; likewise for experts
// whose weights are read. Context parallelism sends whichever is less, keys or queries with their outputs. With
// two-batch overlap one half computes while the other's rows move, and weights are read twice, so that it may lose.
// With stages, each has a batch under way, so that a decode step lasts pp times its slowest stage at least. Of a
// program that k2c compiles steps go in halves where these are faster.
//
//===----------------------------------------------------------------------===//

#include "ServeStep.h"

#include "LargestLoad.h"
#include "StageSplit.h"
#include "k2c/Planner/Experts.h"
#include "k2c/Planner/MlaForms.h"
#include <algorithm>
#include <cmath>

using namespace k2c;
using namespace k2c::planner;

//===----------------------------------------------------------------------===//
// Parts that compute
//===----------------------------------------------------------------------===//

namespace {

PartTime partOf(const KernelWork &work, const DeviceRates &rates, double multiprocessors) {
  PartTime part;
  part.flops = work.linear + work.core, part.memory = work.streamed + work.passed;
  part.seconds = rates.seconds(work, multiprocessors);
  part.waiting = rates.waiting(work, multiprocessors);
  part.bound = rates.computing(work) / multiprocessors > part.memory / rates.memory ? Bound::Compute : Bound::Memory;
  return part;
}

void addUp(PartTime &to, const PartTime &from) {
  if (from.seconds > to.seconds)
    to.bound = from.bound;
  to.flops += from.flops;
  to.memory += from.memory;
  to.seconds += from.seconds;
  to.waiting += from.waiting;
  to.links += from.links;
}

} // namespace

ServeStep::ServeStep(const PlanRequest &request, const ModelShare &model, const DeviceRates &rates, const Links &links,
                     const ParallelLayout &layout)
    : request(request), model(model), rates(rates), links(links), layout(layout),
      compiles(whyNotCompiled(request, layout).empty()) {
  const ModelSpec &spec = model.spec;
  stages = model.ofStages(layersOfStages(spec, layout), layout);
  decoding = stages;
  if (spec.encoderLayers > 0) {
    stages = {model.of({0, spec.encoderLayers}, layout)};
    decoding = {model.of({spec.encoderLayers, spec.layerCount()}, layout)};
  }
  if (request.workload.serve.draftTokens > 0 && spec.mtpLayers > 0)
    draft = model.ofDraft(layout, /*hasTables=*/true);
  expanded = expandedFrom(model.attentions.front().sizes, MlaForms::Phased);
  if (spec.moe && !request.workload.expertLoad.empty() && layout.ep > 1)
    measuredImbalance = 1 / balancednessOf(request.workload.expertLoad, layout);
}

double ServeStep::imbalance(double rows) const {
  if (layout.ep == 1)
    return 1;
  if (measuredImbalance > 0)
    return measuredImbalance;
  return largestShare(rows * double(model.spec.moe->topK) / double(layout.ep), layout.ep,
                      skewOfPlaced(slotsPerRank(model.spec, layout)));
}

/// FLOP of scores and sums over values of one layer, without what is linear in the weights: `queries` tokens of each
/// sequence see `keys` of its `all` tokens on average.
double ServeStep::coreFlops(const AttentionSizes &sizes, double sequences, double queries, double keys,
                            double all) const {
  const double indexing = sizes.indexingFlops(queries, keys), seen = sizes.seenKeys(keys);
  if (expanded >= 0 && queries >= double(expanded))
    return sequences *
           (expandedFlops(sizes, queries, seen).value + expandedFlops(sizes, 0, all - seen).value + indexing);
  return sequences * (absorbedFlops(sizes, queries, seen).value + indexing);
}

/// Of one layer on one device. Where keys are passed, each device expands all of them for its own queries; else it
/// answers all queries on its share of the keys.
double ServeStep::attentionCore(const AttentionSizes &sizes, const StepLoad &load) const {
  const double q = load.tokens, keys = load.context + (q + 1) / 2, all = load.context + q, cp = double(layout.cp);
  if (layout.cp > 1 && passed(sizes, load).passesKeys())
    return coreFlops(sizes, load.sequences, q / cp, keys, all);
  return coreFlops(sizes, load.sequences, q, keys, all) / cp;
}

ServeStep::Passed ServeStep::passed(const AttentionSizes &sizes, const StepLoad &load) const {
  const double act = rates.activationBytes, tp = double(layout.tp);
  const int64_t tokens = int64_t(std::ceil(load.context + load.tokens));
  Passed p;
  const Checked row = cacheBytesOfLayer(sizes, request.cache);
  p.keys = load.sequences * (row * sizes.within(tokens)).real() / double(std::min(layout.tp, sizes.cachedHeads()));
  // A query of each head that meets the cached rows, and its output with the log-sum-exp.
  const double query = double(sizes.heads * sizes.absorbedKey),
               output = double(sizes.heads * (sizes.absorbedValue + 1));
  double indexing = 0;
  if (const std::optional<IndexerSpec> &indexer = sizes.indexer) // its queries, the best scores of each device
    indexing = double(indexer->heads * indexer->dim) * act + double(indexer->topK) * 8 * double(layout.cp);
  p.queries = load.rows() * (query * act / tp + indexing);
  p.outputs = load.rows() * output * 4 / tp;
  return p;
}

/// Bytes of the cache that one layer reads and writes.
double ServeStep::cacheTraffic(const AttentionSizes &sizes, const StepLoad &load) const {
  const Checked row = cacheBytesOfLayer(sizes, request.cache);
  double read = load.encodes ? 0 : (row * sizes.within(int64_t(load.context))).real();
  if (layout.cp > 1 && !passed(sizes, load).passesKeys())
    read /= double(layout.cp);
  return (load.sequences * read + rowsOf(load) * row.real()) / double(std::min(layout.tp, sizes.cachedHeads()));
}

void ServeStep::addRows(KernelWork &work, const KernelTraffic &traffic, double rows, int64_t ranks,
                        double fusedBytes) const {
  work.passed = rates.isCpu ? fusedBytes
                            : rows * ((traffic.read.on(ranks) + traffic.written.on(ranks)) * rates.activationBytes +
                                      traffic.multiplied.on(ranks) * rates.castBytes);
  work.filling = 2 * rows * rates.fillDepth * traffic.results.on(ranks);
  work.kernels = traffic.kernels;
}

KernelWork ServeStep::attention(const RankShare &share, const StepLoad &load) const {
  const double tp = double(layout.tp), rows = rowsOf(load);
  auto overLayers = [&](auto ofLayer) { return model.overLayers(share.attentionLayers, ofLayer); };
  // What expands keys and values is counted with the keys.
  const double expansion = overLayers([](const auto &sizes) { return double(sizes.heads) * sizes.expansion; });
  KernelWork work;
  work.linear = 2 * rows * (at(share.parameters, WeightModule::Attention) - expansion / tp);
  work.core = overLayers([&](const auto &sizes) { return attentionCore(sizes, load); }) / tp;
  if (!decodes(load))
    work.coreFilling = work.core * rates.attentionFill / (load.context + (load.tokens + 1) / 2);
  work.streamed = at(share.bytes, WeightModule::Attention) + at(share.bytes, WeightModule::Norms) +
                  overLayers([&](const auto &sizes) { return cacheTraffic(sizes, load); });
  addRows(work, share.traffic.attention, rows, layout.tp,
          2 * rows * double(model.spec.hidden) * rates.activationBytes * double(share.layerCount()));
  return work;
}

/// Routed experts of the fullest rank: it computes more rows and reads more experts than the mean one.
KernelWork ServeStep::experts(const RankShare &share, const StepLoad &load) const {
  const ModelSpec &spec = model.spec;
  if (!spec.moe || share.moeLayers == 0)
    return {};
  const MoeSpec &moe = *spec.moe;
  const double group = double(layout.ep * layout.etp), rows = rowsOf(load) / double(layout.tp) * group;
  const double layers = double(share.moeLayers), slots = double(slotsPerRank(spec, layout));
  const double mean = rows * double(moe.topK) / double(layout.ep);
  const double fullest = std::min(mean * imbalance(rows), rows * std::min(slots, double(moe.topK)));
  const double hit = expertHitMean({moe.experts, moe.topK, rows}) / double(moe.experts);
  const double loaded = hit > 0.999 || layout.ep == 1 ? slots * hit : binomialMaxMean(int64_t(slots), hit, layout.ep);
  const double rowValues = fullest * double(spec.hidden) * layers;
  KernelWork work;
  work.linear = 2 * (fullest + loaded * unusedRows(load)) * model.expert / double(layout.etp) * layers;
  work.streamed =
      at(share.bytes, WeightModule::Experts) * std::min(1.0, loaded / slots) + rowValues * rates.dispatchBytes;
  addRows(work, share.traffic.experts, fullest, layout.etp, rowValues * rates.combineBytes);
  if (layout.etp > 1) // parts of sums are written in f32, and read where they are added up
    work.passed += 2 * double(byteWidth(DType::F32)) * rowValues;
  return work;
}

/// Rows that the last tile of an expert multiplies in vain, half a tile on average: prompts are padded to the
/// workload's alignment (DeepGEMM's contiguous layout), generated tokens to the device's smallest tile.
double ServeStep::unusedRows(const StepLoad &load) const {
  if (rates.isCpu)
    return 0;
  return std::max(0.0, (decodes(load) ? rates.tileRows : double(request.workload.alignment)) - 1) / 2;
}

/// What every row passes beside attention: routers, shared experts, dense layers.
KernelWork ServeStep::dense(const RankShare &share, const StepLoad &load) const {
  KernelWork work;
  for (WeightModule module : {WeightModule::Router, WeightModule::Shared, WeightModule::Mlp}) {
    work.linear += 2 * rowsOf(load) * at(share.parameters, module);
    work.streamed += at(share.bytes, module);
  }
  addRows(work, share.traffic.dense, rowsOf(load), layout.tp, /*fusedBytes=*/0);
  return work;
}

/// The rows of the first stage's embedding, and the last stage's logits: of all ranks where these divide the head.
KernelWork ServeStep::head(const RankShare &share, const StepLoad &load) const {
  KernelWork work;
  if (share.layers.end == model.spec.layerCount() && !load.encodes) {
    const WeightModule table = model.spec.tiedEmbeddings ? WeightModule::Embedding : WeightModule::Head;
    const double groups = layout.vocab > 1 ? double(layout.vocab) / double(layout.tp) : 1;
    work.linear = 2 * outputRowsOf(load) * groups * at(share.parameters, table);
    work.streamed = at(share.bytes, table);
  }
  if (share.layers.begin == 0)
    work.passed = rowsOf(load) * double(model.spec.hidden) * rates.activationBytes;
  return work;
}

bool ServeStep::decodes(const StepLoad &load) const {
  return load.tokens <= 1 + double(request.workload.serve.draftTokens);
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

/// Layers without experts exchange nothing where others do; models without experts exchange sums in every layer.
void ServeStep::addTurns(LayerTurns &turns, const std::array<PartTime, servePartCount> &parts,
                         const RankShare &share) const {
  auto turn = [&](ServePart part) { return Turn{parts[size_t(part)].seconds, parts[size_t(part)].waiting}; };
  const Turn attention = turn(ServePart::Attention), dense = turn(ServePart::Dense);
  const double layers = double(share.layerCount()), exchanging = double(share.moeLayers);
  turns.alone += turn(ServePart::Head).seconds;
  if (layers == 0) // tables alone
    return;
  if (!model.spec.moe) {
    turns.attention += attention, turns.experts += dense;
    return;
  }
  const double beside = at(share.parameters, WeightModule::Router) + at(share.parameters, WeightModule::Shared),
               ofDense = beside / (beside + at(share.parameters, WeightModule::Mlp));
  turns.attention += attention * (exchanging / layers);
  turns.shared += dense * ofDense;
  turns.experts += turn(ServePart::Experts);
  turns.alone += attention.seconds * (1 - exchanging / layers) + dense.seconds * (1 - ofDense);
}

void ServeStep::addStage(StepTime &time, const RankShare &share, const StepLoad &load, Together together) const {
  std::array<PartTime, servePartCount> parts;
  const double multiprocessors = together.multiprocessors;
  of(parts, ServePart::Attention) = partOf(attention(share, load), rates, multiprocessors);
  of(parts, ServePart::Experts) = partOf(experts(share, load), rates, multiprocessors);
  of(parts, ServePart::Dense) = partOf(dense(share, load), rates, multiprocessors);
  of(parts, ServePart::Head) = partOf(head(share, load), rates, multiprocessors);
  addLinks(parts, time.turns, share, load, together.links);
  addTurns(time.turns, parts, share);
  double local = 0, linked = 0;
  for (size_t i = 0; i < servePartCount; ++i) {
    (i < size_t(ServePart::Dispatch) ? local : linked) += parts[i].seconds;
    addUp(time.parts[i], parts[i]);
  }
  time.local += local;
  time.links += linked;
  time.slowestStage = std::max(time.slowestStage, local + linked);
}

StepTime ServeStep::time(const StepLoad &load, bool overlap) const {
  StepLoad batch = load;
  // Half of the rows at every position: a prompt may be split between both halves, such that they have as much
  // attention to compute (deepseek-ai/profile-data, README: prefilling).
  batch.sequences /= overlap ? 2 : 1;
  StepTime time;
  const bool isBesideTransfers = overlap && layout.dividesExperts() && copiesOf(load) == Copies::ForEachUnit;
  const Together together = isBesideTransfers ? Together{rates.besideTransfers, rates.transferRate} : Together{};
  for (const RankShare &share : decodes(load) ? decoding : stages)
    addStage(time, share, batch, together);
  if (draft && decodes(load)) {
    StepTime extra;
    addStage(extra, *draft, {batch.sequences, 1, batch.context, false}, together);
    PartTime &part = of(time.parts, ServePart::Draft);
    for (const PartTime &each : extra.parts)
      addUp(part, each);
    part.links = LinkUse();
    part.seconds *= double(request.workload.serve.draftTokens);
    time.local += part.seconds;
    time.turns.alone += part.seconds;
    time.slowestStage += part.seconds;
  }
  time.overlaps = overlap;
  if (overlap) {
    const bool byRoute = model.spec.moe && copiesOf(load) == Copies::ForEachRoute;
    time.seconds = byRoute ? secondsOfTokenHalves(time.turns) : secondsOfPromptHalves(time.turns);
    time.slowestStage = std::max(time.seconds / double(layout.pp), time.slowestStage);
    for (PartTime &part : time.parts) {
      part.flops *= 2, part.memory *= 2, part.seconds *= 2;
      part.links = part.links * 2;
    }
    time.local *= 2, time.links *= 2;
  } else {
    time.seconds = time.local + time.links;
  }
  return time;
}

StepTime ServeStep::time(const StepLoad &load) const {
  StepTime asked = time(load, layout.overlap);
  if (!layout.overlap || !compiles)
    return asked;
  StepTime whole = time(load, false);
  return asked.seconds < whole.seconds ? asked : whole;
}

StepLoad ServeStep::decodeLoad(double sequences, double context) const {
  const double tokens = 1 + (draft ? double(request.workload.serve.draftTokens) : 0);
  return {sequences / double(layout.pp), tokens, context, false};
}

double ServeStep::decodeSeconds(const StepTime &step) const {
  return std::max(step.seconds, double(layout.pp) * step.slowestStage);
}
