//===- LinearProbes.cpp - Matrices: in the nearest caches, and from memory -===//
//
// Near: each worker goes again and again through panels that fill a quarter of its second cache. From memory: one
// matrix after the other of a set that no cache holds, as the layers of a model follow one another.
//
//===----------------------------------------------------------------------===//
#include "Probe.h"

#include <algorithm>

namespace k2c::calibration {

namespace {

/// Elements of a probe's matrix: large against a launch, small against the memory.
constexpr int64_t matrixElements = int64_t(1) << 18;

Trial prepareLinear(const Probe &probe, const Bench &bench, k2rt_ir_kernel_fn function, int64_t workers, int64_t rows,
                    bool fromMemory) {
  const auto &d = std::get<LinearDesc>(probe.desc.body);
  int64_t share = std::max<int64_t>(1, bench.target.l2Bytes / 4 / PanelLayout{d.w}.panelBytes());
  int64_t near = std::min(panelCount(d.w) / workers, share) * workers;
  int64_t panels = fromMemory ? panelCount(d.w) : near;
  Trial trial;
  trial.step = std::make_unique<ProbeStep>(1, 0, rows, K2RT_FORM_EXPANDED);
  void *x = bench.buffers.take(rows * d.x.stride * byteWidth(d.x.type));
  void *y = bench.buffers.take(rows * d.y.stride * byteWidth(d.y.type));
  int64_t matrices = fromMemory ? bench.large.size() / weightBytes(d.w, probe.tile.weights) : 1;
  for (int64_t m = 0; m < matrices && x && y; ++m)
    trial.launches.push_back({function, panels, {x, bench.large.data() + m * weightBytes(d.w, probe.tile.weights), y}});
  int64_t busiest = (panels + workers - 1) / workers;
  trial.work = 2 * double(panelColumns * d.w.k * rows * busiest);
  return trial;
}

Probe linearProbe(DType x, DType w, int64_t k, const TargetInfo &target, int64_t maxWorkers) {
  LinearDesc d;
  int64_t n = std::max(matrixElements / k, 2 * maxWorkers * panelColumns);
  d.x = denseRows(k, x);
  d.y = denseRows(n, x);
  d.w.type = w;
  d.w.n = n;
  d.w.k = k;
  if (w == DType::F8E4M3)
    d.w.blockColumns = d.w.blockRows = 128;
  d.order = {k, leafCount(k)};
  Probe probe;
  probe.desc = {"linear", d};
  probe.tile = chooseTile(probe.desc, target);
  probe.rates.kind = "linear";
  probe.rates.x = x;
  probe.rates.w = w;
  probe.rates.depth = k;
  probe.memory = true;
  probe.prepare = prepareLinear;
  for (int64_t rows : {1, 2, 4, 6, 8, 11})
    if (rows < probe.tile.mr)
      probe.rows.push_back(rows);
  // A full tile, and as many as reuse a panel from the cache.
  probe.rows.insert(probe.rows.end(), {probe.tile.mr, 4 * probe.tile.mr});
  return probe;
}

} // namespace

std::vector<Probe> linearProbes(const TargetInfo &target, bool quick, int64_t maxWorkers) {
  std::vector<Probe> probes;
  for (DType x : {DType::F32, DType::BF16})
    for (DType w : {DType::BF16, DType::F32, DType::F8E4M3})
      if (!quick || w == DType::BF16)
        for (int64_t k : {32, 128, 512, 2048})
          probes.push_back(linearProbe(x, w, k, target, maxWorkers));
  return probes;
}

} // namespace k2c::calibration
