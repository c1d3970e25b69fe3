//===- ServeStep.cpp - Time of one step of a serving layout -------------------===//
//
// Time of one step, as a sum of parts that each are bound by arithmetic, memory or links (paper 004, section 3.5): of
// a part that computes, the larger of FLOP over a rate and bytes over the bandwidth, with inefficiencies over the
// roofline.
//
// A step waits for its fullest rank, so experts and dispatch take the mean times an imbalance: measured loads where
// the workload has them, else what a uniform router gives the largest of ep ranks; likewise for experts whose weights
// are read. Context parallelism sends whichever is less, keys or queries with their outputs. With two-batch overlap
// (equation 49) a step is twice the longer of computing and communicating half a batch, and weights are read twice, so
// that it may lose: fastest() takes what is shorter. With stages, a decode step lasts pp times its slowest stage at
// least.
//
//===----------------------------------------------------------------------===//

#include "ServeStep.h"

#include "LargestLoad.h"
#include "k2c/Planner/Experts.h"
#include "k2c/Planner/MlaForms.h"
#include <algorithm>
#include <cmath>

using namespace k2c;
using namespace k2c::planner;

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

DeviceRates::DeviceRates(const PlanRequest &request) {
  const Device &device = request.topology.device;
  const bool isGpu = device.kind != DeviceKind::Cpu, f32 = request.compute == DType::F32;
  if (request.workload.inefficiency)
    inefficiency = *request.workload.inefficiency;
  else if (isGpu)
    inefficiency = {2.0, 1.5 * 1.1, 1.3 * 1.1};
  const Sourced<FlopRate> &plain = f32 ? device.f32 : device.bf16;
  const bool fp8 = !f32 && request.phase == PlanPhase::Serve && request.weights == WeightFormat::Published &&
                   request.spec.quantization && device.fp8;
  const Sourced<FlopRate> &fast = fp8 ? *device.fp8 : plain;
  memory = device.memoryRead.value.value / inefficiency.memory;
  attention = device.whole(plain.value).value / inefficiency.attention;
  experts = device.whole(fast.value).value / inefficiency.experts;
  activationBytes = combineBytes = f32 ? 4 : 2;
  dispatchBytes = fp8 ? 1 + 4.0 / 128 : activationBytes;

  notes.push_back("memory " + format(device.memoryRead.value) + " (" + device.memoryRead.source + ")");
  notes.push_back(std::string(f32 ? "f32 " : "bf16 ") + format(Flops(device.whole(plain.value).value)) + "/s (" +
                  plain.source + ")");
  if (fp8)
    notes.push_back("linears in fp8, " + format(Flops(fast.value.value)) + "/s (" + fast.source + ")");
  if (request.workload.inefficiency || isGpu) {
    char text[160];
    std::snprintf(text, sizeof text, "time over roofline: memory %.3g, attention %.3g, linears %.3g (%s)",
                  inefficiency.memory, inefficiency.attention, inefficiency.experts,
                  request.workload.inefficiency ? "workload" : "paper 004, section 3.5");
    notes.push_back(text);
  }
}

//===----------------------------------------------------------------------===//
// Parts that compute
//===----------------------------------------------------------------------===//

namespace {

/// Takes the time of what a part reads and computes.
void bound(PartTime &part, double rate, double memory) {
  double computing = part.flops / rate, reading = part.memory / memory;
  part.seconds = std::max(computing, reading);
  part.bound = computing > reading ? Bound::Compute : Bound::Memory;
}

PartTime &of(std::array<PartTime, servePartCount> &parts, ServePart part) { return parts[size_t(part)]; }

void addUp(PartTime &to, const PartTime &from) {
  if (from.seconds > to.seconds)
    to.bound = from.bound;
  to.flops += from.flops;
  to.memory += from.memory;
  to.seconds += from.seconds;
  to.links += from.links;
}

} // namespace

ServeStep::ServeStep(const PlanRequest &request, const ModelShare &model, const DeviceRates &rates, const Links &links,
                     const ParallelLayout &layout)
    : request(request), model(model), rates(rates), links(links), layout(layout) {
  const ModelSpec &spec = model.spec;
  stages = model.ofStages(stageLayers(spec.layerCount(), layout.pp, StagePartition::Balanced), layout);
  decoding = stages;
  if (spec.encoderLayers > 0) {
    stages = {model.of({0, spec.encoderLayers}, layout)};
    decoding = {model.of({spec.encoderLayers, spec.layerCount()}, layout)};
  }
  if (request.workload.serve.draftTokens > 0 && spec.mtpLayers > 0)
    draft = model.ofDraft(layout);
  expanded = expandedFrom(model.attentions.front().sizes, MlaForms::Phased);
  if (spec.moe && !request.workload.expertLoad.empty() && layout.ep > 1)
    measuredImbalance = 1 / balancednessOf(request.workload.expertLoad, layout);
}

double ServeStep::imbalance(double rows) const {
  if (layout.ep == 1)
    return 1;
  if (measuredImbalance > 0)
    return measuredImbalance;
  return largestShare(rows * double(model.spec.moe->topK) / double(layout.ep), layout.ep);
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
  const Checked row = cacheBytesOfLayer(sizes, CacheFormat::Plain, byteWidth(request.cache));
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
  const Checked row = cacheBytesOfLayer(sizes, CacheFormat::Plain, byteWidth(request.cache));
  double read = load.encodes ? 0 : (row * sizes.within(int64_t(load.context))).real();
  if (layout.cp > 1 && !passed(sizes, load).passesKeys())
    read /= double(layout.cp);
  return (load.sequences * read + rowsOf(load) * row.real()) / double(std::min(layout.tp, sizes.cachedHeads()));
}

void ServeStep::addAttention(PartTime &part, const RankShare &share, const StepLoad &load) const {
  const double tp = double(layout.tp), rows = rowsOf(load);
  auto overLayers = [&](auto ofLayer) { return model.overLayers(share.attentionLayers, ofLayer); };
  // What expands keys and values is counted with the keys.
  const double expansion = overLayers([](const auto &sizes) { return double(sizes.heads) * sizes.expansion; });
  const double core = overLayers([&](const auto &sizes) { return attentionCore(sizes, load); });
  part.flops = 2 * rows * (at(share.parameters, WeightModule::Attention) - expansion / tp) + core / tp;
  part.memory = at(share.bytes, WeightModule::Attention) + at(share.bytes, WeightModule::Norms) +
                overLayers([&](const auto &sizes) { return cacheTraffic(sizes, load); }) +
                2 * rows * double(model.spec.hidden) * rates.activationBytes * double(share.layerCount());
  bound(part, rates.attention, rates.memory);
}

/// Routed experts of the fullest rank: it computes more rows and reads more experts than the mean one.
void ServeStep::addExperts(PartTime &part, const RankShare &share, const StepLoad &load) const {
  const ModelSpec &spec = model.spec;
  if (!spec.moe || share.moeLayers == 0)
    return;
  const MoeSpec &moe = *spec.moe;
  const double group = double(layout.ep * layout.etp), rows = rowsOf(load) / double(layout.tp) * group;
  const double layers = double(share.moeLayers), slots = double(slotsPerRank(spec, layout));
  const double mean = rows * double(moe.topK) / double(layout.ep);
  const double fullest = std::min(mean * imbalance(rows), rows * std::min(slots, double(moe.topK)));
  const double hit = expertHitMean({moe.experts, moe.topK, rows}) / double(moe.experts);
  const double loaded = hit > 0.999 || layout.ep == 1 ? slots * hit : binomialMaxMean(int64_t(slots), hit, layout.ep);
  part.flops = 2 * fullest * model.expert / double(layout.etp) * layers;
  part.memory = at(share.bytes, WeightModule::Experts) * std::min(1.0, loaded / slots) +
                fullest * double(spec.hidden) * (rates.dispatchBytes + rates.combineBytes) * layers;
  bound(part, rates.experts, rates.memory);
}

/// What every row passes beside attention: routers, shared experts, dense layers.
void ServeStep::addDense(PartTime &part, const RankShare &share, const StepLoad &load) const {
  for (WeightModule module : {WeightModule::Router, WeightModule::Shared, WeightModule::Mlp}) {
    part.flops += 2 * rowsOf(load) * at(share.parameters, module);
    part.memory += at(share.bytes, module);
  }
  bound(part, rates.experts, rates.memory);
}

//===----------------------------------------------------------------------===//
// Parts that communicate, and the whole
//===----------------------------------------------------------------------===//

void ServeStep::addLinks(std::array<PartTime, servePartCount> &parts, const RankShare &share,
                         const StepLoad &load) const {
  const ModelSpec &spec = model.spec;
  const double hidden = double(spec.hidden), own = rowsOf(load);
  auto finish = [&](PartTime &part) {
    part.seconds = links.seconds(part.links);
    part.bound = part.links.latency > links.transfer(part.links) ? Bound::Latency : Bound::Link;
  };
  PartTime &dispatch = of(parts, ServePart::Dispatch), &tensor = of(parts, ServePart::Tensor);
  if (spec.moe && share.moeLayers > 0 && layout.ep * layout.etp > 1) {
    const double rows = own / double(layout.tp);
    const RankGroup group{double(layout.ep), double(layout.etp)};
    const double fullest = imbalance(rows * double(layout.ep * layout.etp));
    LinkUse use = links.dispatch(group, *spec.moe, rows * fullest, hidden * rates.dispatchBytes);
    use += links.dispatch(group, *spec.moe, rows * fullest, hidden * rates.combineBytes);
    use += links.withinExperts(double(layout.ep), double(layout.etp), *spec.moe, rows * fullest,
                               hidden * (rates.dispatchBytes + rates.combineBytes));
    dispatch.links = use * double(share.moeLayers);
    finish(dispatch);
  }
  if (layout.tp > 1) {
    const double each = own * hidden * rates.activationBytes;
    tensor.links = links.allReduce({double(layout.tp), 1}, each) * (2 * double(share.layerCount()));
    finish(tensor);
  }
  if (layout.cp > 1) {
    PartTime &context = of(parts, ServePart::Context);
    const RankGroup group{double(layout.cp), double(layout.tp)};
    for (size_t i = 0; i < model.attentions.size(); ++i) {
      const Passed bytes = passed(model.attentions[i].sizes, load);
      LinkUse use = links.gather(group, bytes.passesKeys() ? bytes.keys : bytes.queries);
      if (!bytes.passesKeys())
        use += links.gather(group, bytes.outputs);
      context.links += use * share.attentionLayers[i];
    }
    finish(context);
  }
  if (layout.pp > 1) {
    PartTime &pipeline = of(parts, ServePart::Pipeline);
    pipeline.links =
        links.send(double(layout.tp * layout.cp * layout.dp), own * hidden * rates.activationBytes / double(layout.tp));
    finish(pipeline);
  }
}

void ServeStep::addStage(StepTime &time, const RankShare &share, const StepLoad &load) const {
  std::array<PartTime, servePartCount> parts;
  addAttention(of(parts, ServePart::Attention), share, load);
  addExperts(of(parts, ServePart::Experts), share, load);
  addDense(of(parts, ServePart::Dense), share, load);
  PartTime &head = of(parts, ServePart::Head);
  if (share.layers.end == model.spec.layerCount() && !load.encodes) {
    const WeightModule table = model.spec.tiedEmbeddings ? WeightModule::Embedding : WeightModule::Head;
    head.flops = 2 * load.sequences / double(layout.cp) *
                 std::min(load.tokens, 1 + double(request.workload.serve.draftTokens)) * at(share.parameters, table);
    head.memory = at(share.bytes, table);
  }
  if (share.layers.begin == 0)
    head.memory += rowsOf(load) * double(model.spec.hidden) * rates.activationBytes;
  bound(head, rates.experts, rates.memory);
  addLinks(parts, share, load);
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
  // Half of the rows at every position: a prompt may be split between both halves, such that they have as much attention
  // to compute (deepseek-ai/profile-data, README: prefilling).
  batch.sequences /= overlap ? 2 : 1;
  StepTime time;
  const bool decodes = load.tokens <= 1 + double(request.workload.serve.draftTokens);
  for (const RankShare &share : decodes ? decoding : stages)
    addStage(time, share, batch);
  if (draft && decodes) {
    StepTime extra;
    addStage(extra, *draft, {batch.sequences, 1, batch.context, false});
    PartTime &part = of(time.parts, ServePart::Draft);
    for (const PartTime &each : extra.parts)
      addUp(part, each);
    part.links = LinkUse();
    part.seconds *= double(request.workload.serve.draftTokens);
    time.local += part.seconds;
    time.slowestStage += part.seconds;
  }
  time.overlaps = overlap;
  if (overlap) {
    // Paper 004, equation 49: while one half computes, the other communicates; both read all weights.
    time.seconds = 2 * std::max(time.local, time.links);
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

StepTime ServeStep::fastest(const StepLoad &load) const {
  StepTime plain = time(load, false);
  if (!layout.overlap)
    return plain;
  StepTime halves = time(load, true);
  return decodeSeconds(halves) < decodeSeconds(plain) ? halves : plain;
}

StepLoad ServeStep::decodeLoad(double sequences, double context) const {
  const double tokens = 1 + (draft ? double(request.workload.serve.draftTokens) : 0);
  return {sequences / double(layout.pp), tokens, context, false};
}

double ServeStep::decodeSeconds(const StepTime &step) const {
  return std::max(step.seconds, double(layout.pp) * step.slowestStage);
}
