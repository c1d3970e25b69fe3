//===- RowProbes.cpp - Kernels that work row by row -----------------------===//
//
// Narrow and wide rows, one and many a worker: what a row costs, and what its bytes do. Bytes are those of Kernels/
// Cost.h: activations read and written, and cache.
//
//===----------------------------------------------------------------------===//
#include "Probe.h"
#include "k2c/Kernels/Cost.h"
#include "k2rt/Sampler.h"

namespace k2c::calibration {

namespace {

constexpr int64_t rowTopK = 4, rowExperts = 32;

/// Routing operands: experts i32 [rows][topK], and a permutation.
struct Routing {
  int64_t experts = rowExperts, topK = rowTopK;
};

Routing routingOf(const KernelDesc &desc) {
  if (const auto *d = std::get_if<PermutationDesc>(&desc.body))
    return {d->experts, d->topK};
  return {};
}

int64_t rowsOfSpace(RowSpace space, int64_t tokens) { return space == RowSpace::Slot ? tokens * rowTopK : tokens; }

/// Arguments by role, in the order of operands(); routing operands hold a routing.
bool fillArguments(const Probe &probe, const Bench &bench, int64_t tokens, Trial &trial, std::vector<void *> &args) {
  Routing routing = routingOf(probe.desc);
  int32_t *chosen = nullptr, *permutation = nullptr;
  for (const Operand &operand : operands(probe.desc)) {
    int64_t size = rowsOfSpace(operand.rows.space, tokens) * operand.rows.stride * byteWidth(operand.type);
    switch (operand.role) {
    case Operand::Role::Step:
      args.push_back(&trial.step->step);
      continue;
    case Operand::Role::Layer:
      args.push_back(nullptr);
      continue;
    case Operand::Role::Weight:
    case Operand::Role::Table:
      size = weightBytes(operand, WeightLayout::Panels);
      break;
    case Operand::Role::Plane:
      size = (trial.step->step.block_stride + 1) * K2RT_PAGE_TOKENS * operand.rows.stride * byteWidth(operand.type);
      break;
    default:
      size += operand.elements * byteWidth(operand.type);
    }
    args.push_back(bench.buffers.take(size));
    if (!args.back())
      return false;
    bool isPermutation = operand.rows.type == DType::I32 && operand.elements > 0;
    if (operand.role != Operand::Role::Result && operand.rows.type == DType::I32 && !isPermutation)
      chosen = static_cast<int32_t *>(args.back());
    if (isPermutation)
      permutation = static_cast<int32_t *>(args.back());
  }
  if (!chosen && !permutation)
    return true;
  std::vector<int32_t> unused(size_t(tokens * routing.topK + 2 * tokens * routing.topK + routing.experts + 1));
  fillRouting(tokens, routing.experts, routing.topK, chosen ? chosen : unused.data(),
              permutation ? permutation : unused.data());
  return true;
}

Trial prepareRows(const Probe &probe, const Bench &bench, k2rt_ir_kernel_fn function, int64_t workers, int64_t rows,
                  bool) {
  Grid grid = gridOf(probe.desc, probe.tile);
  int64_t tokens = grid.rowsPerItem == 0 ? rows : rows * workers;
  Trial trial;
  trial.step = std::make_unique<ProbeStep>(1, 0, tokens, K2RT_FORM_EXPANDED);
  Launch launch{function, itemCount(grid, rowsOfSpace(grid.space, tokens)), {}};
  if (fillArguments(probe, bench, tokens, trial, launch.args))
    trial.launches.push_back(std::move(launch));
  trial.work = double(probe.rates.depth * rows);
  return trial;
}

Probe rowProbe(const char *kind, DType type, KernelBody body, const TargetInfo &target) {
  Probe probe;
  probe.desc = {kind, std::move(body)};
  probe.tile = chooseTile(probe.desc, target);
  probe.rates.kind = kind;
  probe.rates.x = probe.rates.w = type;
  probe.rates.depth = bytesOfRow(probe.desc).value;
  probe.rows = {1, 64};
  probe.prepare = prepareRows;
  return probe;
}

void addOfType(DType type, int64_t width, const TargetInfo &target, std::vector<Probe> &probes) {
  Rows token = denseRows(width, type), slot = denseRows(width, type, RowSpace::Slot);
  auto add = [&](const char *kind, KernelBody body) { probes.push_back(rowProbe(kind, type, body, target)); };
  RmsNormDesc norm;
  norm.x = norm.y = token;
  add("rms_norm", norm);
  RotaryDesc rotary;
  rotary.x = rotary.y = token;
  rotary.heads = width / 128;
  rotary.headDim = rotary.count = 128;
  rotary.positions = 4096;
  add("rotary", rotary);
  add("append", AppendDesc{{token}, {type}, 0});
  Elementwise sum, gated;
  sum.append(ElementOp::Add, type, ElementTerm::input(0), ElementTerm::input(1));
  ElementTerm gate = gated.append(ElementOp::Silu, DType::F32, ElementTerm::input(0));
  gated.append(ElementOp::Mul, type, gate, ElementTerm::input(1));
  add("add", RowwiseDesc{{token, token}, sum, token});
  add("gated", RowwiseDesc{{token, token}, gated, token});
  add("gather", PermuteDesc{token, slot, rowExperts, rowTopK});
  add("unpermute", UnpermuteDesc{slot, token, rowExperts, rowTopK, combineLeaves(rowExperts)});
}

/// Routers work in f32 whatever the activations are.
void addRouting(int64_t experts, int64_t topK, const TargetInfo &target, std::vector<Probe> &probes) {
  RoutingDesc router;
  router.logits = denseRows(experts, DType::F32);
  router.experts = experts;
  router.topK = topK;
  probes.push_back(rowProbe("routing", DType::F32, router, target));
  probes.push_back(rowProbe("permutation", DType::F32, PermutationDesc{experts, topK}, target));
}

/// The runtime's greedy choice, as a kernel of one row an item.
int32_t sampleKernel(k2rt_ir_worker *worker, void *const *args) {
  int64_t vocab = int64_t(reinterpret_cast<intptr_t>(args[1]));
  for (int64_t row = worker->begin; row < worker->end; ++row)
    if (runtime::greedy(static_cast<const float *>(args[0]) + row * vocab, vocab) < 0)
      return 1;
  return 0;
}

Trial prepareSample(const Probe &, const Bench &bench, k2rt_ir_kernel_fn, int64_t workers, int64_t rows, bool) {
  constexpr int64_t vocab = 1 << 15;
  Trial trial;
  trial.step = std::make_unique<ProbeStep>(1, 0, rows, K2RT_FORM_EXPANDED);
  void *logits = bench.buffers.take(workers * rows * vocab * byteWidth(DType::F32));
  if (logits)
    trial.launches.push_back({sampleKernel, workers * rows, {logits, reinterpret_cast<void *>(intptr_t(vocab))}});
  trial.work = double(rows * vocab * byteWidth(DType::F32));
  return trial;
}

} // namespace

std::vector<Probe> rowProbes(const TargetInfo &target) {
  std::vector<Probe> probes;
  for (DType type : {DType::F32, DType::BF16})
    for (int64_t width : {128, 2048})
      addOfType(type, width, target, probes);
  addRouting(16, 4, target, probes);
  addRouting(256, 8, target, probes);
  Probe sample;
  sample.rates.kind = "sample";
  sample.rates.depth = (1 << 15) * byteWidth(DType::F32);
  sample.rows = {1};
  sample.prepare = prepareSample;
  probes.push_back(std::move(sample));
  return probes;
}

} // namespace k2c::calibration
