//===- Memory.cpp - The certificate, and what would fit ------------------------===//
//
// The runtime allocates exactly these parts, once, at start. The reserve is the runtime's own formula (k2rt/reserve.h),
// so that both sides count alike. Of a GPU all parts are the device's but the process of its host. The arena belongs to
// the compiled step-tokens: it does not change with the limits that the remedy varies.
//
//===----------------------------------------------------------------------===//
#include "Memory.h"

#include "Operands.h"
#include "base/Utf8.h"
#include "k2c/Model/Layers.h"
#include "k2c/Support/Largest.h"
#include "k2rt/reserve.h"

namespace k2c::planner {

std::vector<CachePlane> cachePlanes(const ModelSpec &spec, const Limits &limits, DType type, int64_t tp,
                                    LayerRange range) {
  std::vector<CachePlane> planes;
  for (const CachePool &pool : cachePools(spec))
    for (const CachedRow &row : pool.rows)
      planes.push_back({row.plane, countWithin(pool.layers, range), row.width() / (row.heads > 0 ? tp : 1), type,
                        limits.pages(), pool.group});
  return planes;
}

std::vector<CachePlane> cachePlanes(const ModelSpec &spec, const Limits &limits, DType type, int64_t tp) {
  return cachePlanes(spec, limits, type, tp, {0, spec.layerCount()});
}

/// Routed experts of all weight slots of a rank, of which there is one for each part of a weight.
static int64_t expertsOf(const ModelSpec &spec, const RankParts &rank) {
  int64_t experts = 0;
  for (const WeightFamily &family : spec.weights)
    if (family.shape.size() > 1 && family.experts > 0)
      experts += family.layerCount() * rank.etp * rank.expertSlots;
  return experts;
}

/// Of an operand, what stage `stage` of `bounds` has.
static Bytes bytesIn(const PlannedOperand &operand, const std::vector<int64_t> &bounds, size_t stage) {
  if (!operand.layers.empty())
    return Bytes(operand.packed.bytes.value / operand.packed.blobs *
                 countWithin(operand.layers, {bounds[stage], bounds[stage + 1]}));
  const bool has = operand.end == StageEnd::All || (operand.end == StageEnd::First && stage == 0) ||
                   (operand.end == StageEnd::Last && stage + 2 == bounds.size());
  return has ? operand.packed.bytes : Bytes();
}

/// Weights and cache of the stage that has most of both.
static void certifyFullest(const MemoryModel &model, const Limits &limits, MemoryCertificate &memory) {
  const std::vector<PlannedOperand> operands = operandsOf(model.spec, model.expandedFrom, limits, model.rank);
  for (size_t stage = 0; stage + 1 < model.stages.size(); ++stage) {
    Bytes weights, cached;
    for (const PlannedOperand &operand : operands)
      weights += bytesIn(operand, model.stages, stage);
    for (const CachePlane &plane :
         cachePlanes(model.spec, limits, model.cache, model.rank.tp, {model.stages[stage], model.stages[stage + 1]}))
      cached += plane.bytes();
    if (weights + cached > memory.weights + memory.cache)
      memory.weights = weights, memory.cache = cached;
  }
}

MemoryCertificate MemoryModel::certify(const Limits &limits) const {
  MemoryCertificate memory;
  certifyFullest(*this, limits, memory);
  memory.arena = measured.arena;
  memory.scratch = measured.scratchPerWorker * (measured.workers > 0 ? measured.workers : device.cores);
  memory.logits = Bytes(limits.maxOutputRows() * spec.vocab * 4);
  const int64_t groups = int64_t(cachePools(spec).size());
  k2rt_limits runtime{limits.stepTokens, limits.maxSequences,          limits.maxContext,    groups,
                      spec.vocab,        measured.tokenizerFile.value, expertsOf(spec, rank)};
  memory.collectives = Bytes(ranks > 1 ? k2rt_exchange_bytes(&runtime, ranks, K2RT_MPI_BYTES) : 0);
  memory.reserve = Bytes(k2rt_reserve_bytes(&runtime) + k2rt_worker_bytes(&runtime, device.cores));
  if (device.kind != DeviceKind::Cpu) {
    memory.host = Bytes(k2rt_reserve_bytes(&runtime));
    memory.reserve = Bytes(k2rt_gpu_reserve_bytes(&runtime));
  }
  return memory;
}

/// Bytes that grow with the limits as a floating-point number: hostile sizes must be refused before they overflow.
static double approximateBytes(const ModelSpec &spec, const Limits &limits) {
  double bytes = 0;
  for (const auto &[name, rope] : spec.ropes)
    bytes += double(limits.maxContext) * double(rope.dims) * 4;
  for (const CachePlane &plane : cachePlanes(spec, limits, DType::F32, /*tp=*/1))
    bytes += double(plane.layers) * double(plane.pages) * double(Limits::page) * double(plane.width) * 4;
  return bytes;
}

Status checkCountable(const ModelSpec &spec, const Limits &limits) {
  if (double bytes = approximateBytes(spec, limits); bytes > 1e18)
    return Error{"model '" + shortened(spec.name) + "'",
                 "cache and rotary table need " + formatNumber(bytes, 3) + " bytes",
                 "lower --max-context or --max-sequences"};
  return Status::success();
}

Status MemoryModel::check(const Limits &limits) const {
  Bytes available = device.memory.value, needed = certify(limits).total();
  if (needed <= available)
    return Status::success();
  // The largest value of one limit that fits while the others stay; 0: it alone does not help.
  auto largestOf = [&](int64_t most, auto set) {
    return largest(most, [&](int64_t n) {
      Limits smaller = limits;
      set(smaller, n);
      return certify(smaller).total() <= available;
    });
  };
  const int64_t outputRows = std::min(limits.maxOutputRows(), limits.stepTokens);
  std::string remedy;
  for (auto [option, most] :
       {std::pair{"--max-context", largestOf(limits.maxContext, [](Limits &l, int64_t n) { l.maxContext = n; })},
        std::pair{"--max-sequences", largestOf(limits.maxSequences, [](Limits &l, int64_t n) { l.maxSequences = n; })},
        std::pair{"--output-rows", largestOf(outputRows, [](Limits &l, int64_t n) { l.outputRows = n; })}})
    if (most > 0)
      remedy += (remedy.empty() ? "lower " : " or ") + std::string(option) + " to at most " + std::to_string(most);
  if (remedy.empty()) {
    const std::string more = "choose a topology with more memory" + std::string(spec.moe ? " or more ranks" : "");
    Limits least = limits;
    least.maxContext = least.maxSequences = 1;
    least.outputRows = 1;
    const MemoryCertificate smallest = certify(least);
    if (smallest.weights > available)
      remedy = "the weights alone take " + format(smallest.weights) + ": " + more;
    else if (smallest.total() > available)
      remedy = "one sequence of one token takes " + format(smallest.total()) + ": lower --step-tokens, or " + more;
    else
      remedy =
          "none of the limits is enough alone: lower --max-context, --max-sequences and --output-rows together; one "
          "sequence of one token takes " +
          format(smallest.total());
  }
  return Error{"model '" + shortened(spec.name) + "'",
               (ranks > 1 ? "on the fullest of " + std::to_string(ranks) + " ranks needs " : "needs ") +
                   format(needed) + " = " + formatCount(needed.value) + " bytes of " + format(available) + " = " +
                   formatCount(available.value) + " bytes available (" + device.memory.source + ")",
               remedy};
}

} // namespace k2c::planner
