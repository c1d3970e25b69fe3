//===- AttentionProbes.cpp - Attentions over cached keys ------------------===//
//
// Each worker has a head (or a sequence) of its own whose keys stay in its caches. The work of an attention is its
// pairs of a query and a key; the expansion of latents has a rate of its own.
//
//===----------------------------------------------------------------------===//
#include "Probe.h"

namespace k2c::calibration {

namespace {

constexpr int64_t cachedKeys = 256;
constexpr int64_t manyHeads = 4; ///< of keys, for each worker

double pairFlops(const Probe &probe, double queries, double keys) {
  return 2 * queries * keys * double(probe.rates.depth);
}

Probe probeOf(const char *kind, DType type, int64_t depth, KernelBody body, const TargetInfo &target) {
  Probe probe;
  probe.desc = {kind, std::move(body)};
  probe.tile = chooseTile(probe.desc, target);
  probe.rates.kind = kind;
  probe.rates.x = probe.rates.w = type;
  probe.rates.depth = depth;
  return probe;
}

/// One launch after the other, each on keys of its own; near: one.
Trial prepareGqa(const Probe &probe, const Bench &bench, k2rt_ir_kernel_fn function, int64_t workers, int64_t rows,
                 bool fromMemory) {
  const auto &d = std::get<GqaAttentionDesc>(probe.desc.body);
  Trial trial;
  trial.step = std::make_unique<ProbeStep>(1, cachedKeys, rows, K2RT_FORM_EXPANDED);
  int64_t slots = trial.step->step.block_stride * K2RT_PAGE_TOKENS, width = byteWidth(d.shape.cache);
  int64_t keyBytes = slots * d.kvHeads * d.keyDim * width, valueBytes = slots * d.kvHeads * d.valueDim * width;
  void *q = bench.buffers.take(rows * d.q.stride * byteWidth(d.q.type));
  void *o = bench.buffers.take(rows * d.o.stride * byteWidth(d.o.type));
  int64_t heads = fromMemory ? d.kvHeads : workers;
  int64_t items = itemCount(gridOf(probe.desc, probe.tile), rows) / d.kvHeads * heads;
  int64_t sets = fromMemory ? bench.large.size() / (keyBytes + valueBytes) : 1;
  char *keys = fromMemory ? bench.large.data() : static_cast<char *>(bench.buffers.take(keyBytes + valueBytes));
  for (int64_t set = 0; set < sets && q && o && keys; ++set, keys += keyBytes + valueBytes)
    trial.launches.push_back({function, items, {q, keys, keys + keyBytes, &trial.step->step, o}});
  trial.work = double((heads + workers - 1) / workers) *
               pairFlops(probe, double(rows), double(cachedKeys) + double(rows + 1) / 2);
  return trial;
}

/// `heads`: of keys. A head a worker stays near; of more, each reads a part of every row, as in a model.
Probe gqaProbe(DType type, int64_t size, int64_t heads, const TargetInfo &target) {
  GqaAttentionDesc d;
  d.shape.heads = d.kvHeads = heads;
  d.shape.scale = 0.1;
  d.shape.cache = type;
  d.keyDim = d.valueDim = size;
  d.q = d.o = denseRows(d.shape.heads * size, type);
  Probe probe = probeOf("gqa", type, 2 * size, d, target);
  probe.rows = {1, 4, 16, 64};
  probe.prepare = prepareGqa;
  return probe;
}

/// A sequence a worker: heads are the queries that share keys.
Trial prepareAbsorbed(const Probe &probe, const Bench &bench, k2rt_ir_kernel_fn function, int64_t workers, int64_t rows,
                      bool) {
  const auto &d = std::get<AbsorbedAttentionDesc>(probe.desc.body);
  Trial trial;
  trial.step = std::make_unique<ProbeStep>(workers, cachedKeys, 1, K2RT_FORM_ABSORBED);
  int64_t slots = workers * trial.step->step.block_stride * K2RT_PAGE_TOKENS, width = byteWidth(d.shape.cache);
  void *latentQuery = bench.buffers.take(workers * d.qLatent.stride * byteWidth(d.qLatent.type));
  void *ropeQuery = bench.buffers.take(workers * d.qRope.stride * byteWidth(d.qRope.type));
  void *latent = bench.buffers.take(slots * d.latent * width), *rope = bench.buffers.take(slots * d.rope * width);
  void *o = bench.buffers.take(workers * d.o.stride * byteWidth(d.o.type));
  int64_t items = itemCount(gridOf(probe.desc, probe.tile), workers);
  if (latentQuery && ropeQuery && latent && rope && o)
    trial.launches.push_back({function, items, {latentQuery, ropeQuery, latent, rope, &trial.step->step, o}});
  trial.work = pairFlops(probe, double(rows), double(cachedKeys) + 1);
  return trial;
}

Probe absorbedProbe(DType type, int64_t heads, int64_t latent, int64_t rope, const TargetInfo &target) {
  AbsorbedAttentionDesc d;
  d.shape.heads = heads;
  d.shape.scale = 0.1;
  d.shape.cache = type;
  d.latent = latent;
  d.rope = rope;
  d.qLatent = d.o = denseRows(d.shape.heads * latent, type);
  d.qRope = denseRows(d.shape.heads * rope, type);
  d.qRopeHeadStride = rope;
  Probe probe = probeOf("absorbed", type, 2 * latent + rope, d, target);
  probe.rows = {d.shape.heads};
  probe.prepare = prepareAbsorbed;
  return probe;
}

/// One launch of `tokens` queries after `cached` keys; a head a worker.
Trial expandedTrial(const Probe &probe, const Bench &bench, k2rt_ir_kernel_fn function, int64_t workers, int64_t cached,
                    int64_t tokens) {
  const auto &d = std::get<ExpandedAttentionDesc>(probe.desc.body);
  Trial trial;
  trial.step = std::make_unique<ProbeStep>(1, cached, tokens, K2RT_FORM_EXPANDED);
  int64_t slots = trial.step->step.block_stride * K2RT_PAGE_TOKENS, width = byteWidth(d.shape.cache);
  void *q = bench.buffers.take(tokens * d.q.stride * byteWidth(d.q.type));
  void *latent = bench.buffers.take(slots * d.latent * width), *rope = bench.buffers.take(slots * d.rope * width);
  void *uk = bench.buffers.take(weightBytes(d.uk, probe.tile.weights));
  void *uv = bench.buffers.take(weightBytes(d.uv, probe.tile.weights));
  void *o = bench.buffers.take(tokens * d.o.stride * byteWidth(d.o.type));
  int64_t blocks = itemCount(gridOf(probe.desc, probe.tile), tokens) / d.shape.heads;
  if (q && latent && rope && uk && uv && o)
    trial.launches.push_back({function, blocks * workers, {q, latent, rope, uk, uv, &trial.step->step, o}});
  return trial;
}

/// What `rows` queries take beyond 64, for which the same keys are expanded.
Trial prepareExpanded(const Probe &probe, const Bench &bench, k2rt_ir_kernel_fn function, int64_t workers, int64_t rows,
                      bool) {
  constexpr int64_t others = 64;
  Trial trial = expandedTrial(probe, bench, function, workers, cachedKeys, others + rows);
  trial.less = std::make_unique<Trial>(expandedTrial(probe, bench, function, workers, cachedKeys + rows, others));
  auto triangle = [](int64_t queries) { return double(queries) * double(queries + 1) / 2; };
  double more = double(cachedKeys) * double(others + rows) + triangle(others + rows);
  double fewer = double(cachedKeys + rows) * double(others) + triangle(others);
  trial.work = pairFlops(probe, 1, more - fewer);
  return trial;
}

/// A single query: nearly all of its time expands keys.
Trial prepareExpansion(const Probe &probe, const Bench &bench, k2rt_ir_kernel_fn function, int64_t workers,
                       int64_t rows, bool) {
  const auto &d = std::get<ExpandedAttentionDesc>(probe.desc.body);
  Trial trial = expandedTrial(probe, bench, function, workers, rows - 1, 1);
  trial.work = 2 * double(rows) * double(d.latent * (d.nope + d.value));
  return trial;
}

Probe expandedProbe(DType type, int64_t latent, int64_t size, const TargetInfo &target, int64_t maxWorkers) {
  ExpandedAttentionDesc d;
  d.shape.heads = maxWorkers;
  d.shape.scale = 0.1;
  d.shape.cache = type;
  d.latent = latent;
  d.nope = d.value = size;
  d.rope = size / 2;
  d.q = denseRows(d.shape.heads * (d.nope + d.rope), type);
  d.o = denseRows(d.shape.heads * d.value, type);
  for (auto [matrix, n] : {std::pair{&d.uk, d.nope}, std::pair{&d.uv, d.value}}) {
    matrix->type = DType::BF16;
    matrix->count = d.shape.heads;
    matrix->n = n;
    matrix->k = latent;
  }
  Probe probe = probeOf("expanded", type, d.nope + d.rope + d.value, d, target);
  probe.rows = {16, 64, 256};
  probe.prepare = prepareExpanded;
  return probe;
}

/// The expansion of the keys of `probe`.
Probe expansionProbe(Probe probe) {
  const auto &d = std::get<ExpandedAttentionDesc>(probe.desc.body);
  probe.rates.kind = "expansion";
  probe.rates.w = d.uk.type;
  probe.rates.depth = d.latent;
  probe.rows = {cachedKeys};
  probe.prepare = prepareExpansion;
  return probe;
}

} // namespace

std::vector<Probe> attentionProbes(const TargetInfo &target, int64_t maxWorkers) {
  std::vector<Probe> probes;
  for (DType type : {DType::F32, DType::BF16}) {
    for (int64_t size : {32, 128}) {
      probes.push_back(gqaProbe(type, size, maxWorkers, target));
      probes.push_back(gqaProbe(type, size, maxWorkers * manyHeads, target));
      probes.back().near = false;
      probes.back().memory = true;
    }
    for (auto [latent, rope] : {std::pair{64, 32}, std::pair{512, 64}})
      for (int64_t heads : {4, 8, 16})
        probes.push_back(absorbedProbe(type, heads, latent, rope, target));
    for (auto [latent, size] : {std::pair{64, 32}, std::pair{512, 128}}) {
      probes.push_back(expandedProbe(type, latent, size, target, maxWorkers));
      probes.push_back(expansionProbe(probes.back()));
    }
  }
  return probes;
}

} // namespace k2c::calibration
