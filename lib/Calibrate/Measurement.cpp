//===- Measurement.cpp - All probes with one team -------------------------===//
//
// A rate is work over the fastest time, less that of an empty launch. Both are the fastest of all rounds, so they are
// subtracted at the end.
//
// A program's launch costs more than an empty one that follows its like: its code, arguments and weights were last used
// a step ago. A chain launches many different kernels with an item for each worker; what they take beyond their rates
// is what a launch costs.
//
//===----------------------------------------------------------------------===//
#include "Measurement.h"
#include "k2c/Support/Units.h"

#include <algorithm>
#include <cstdlib>

namespace k2c::calibration {

double rounded(double value) { return std::strtod(formatNumber(value, 4).c_str(), nullptr); }

Status Measurement::time(const Trial &trial, Timing &timing) {
  if (trial.launches.empty() || (trial.less && trial.less->launches.empty()))
    return Error{"calibration", "the buffers are too small for a kernel", "report it with the CPU's name"};
  Expected<Seconds> whole = team.time(trial.launches, trial.step->step, budget);
  if (!whole)
    return whole.takeError();
  bool first = timing.work == 0;
  timing.work = trial.work;
  timing.whole = std::min(timing.whole, whole->value);
  if (!trial.less)
    return {};
  Expected<Seconds> less = team.time(trial.less->launches, trial.less->step->step, budget);
  if (!less)
    return less.takeError();
  timing.less = first ? less->value : std::min(timing.less, less->value);
  return {};
}

Status Measurement::measure(const Probe &probe, ProbeTimings &found) {
  for (bool fromMemory : {false, true}) {
    if (!(fromMemory ? probe.memory : probe.near))
      continue;
    std::vector<Timing> &timing = fromMemory ? found.memory : found.near;
    timing.resize(probe.rows.size());
    for (size_t i = 0; i < probe.rows.size(); ++i) {
      bench.buffers.clear();
      Trial trial = probe.prepare(probe, bench, kernels.of(probe), team.workers(), probe.rows[i], fromMemory);
      if (Status status = time(trial, timing[i]); !status)
        return status;
    }
  }
  return {};
}

Status Measurement::measureEmpty(Seconds least) {
  ProbeStep nothing(1, 0, 1, K2RT_FORM_EXPANDED);
  Expected<Seconds> time = team.time(std::vector<Launch>(1), nothing.step, least);
  if (!time)
    return time.takeError();
  empty = std::min(empty, time->value);
  return {};
}

/// Kernels of one item for each worker, small against what is measured.
Status Measurement::measureChain() {
  constexpr int64_t maxDepth = 128; ///< of a linear; bytes of a row of the others: 16 times that
  bench.buffers.clear();
  chained.clear();
  std::vector<Trial> trials;
  std::vector<Launch> launches;
  for (size_t i = 0; i < probes.size(); ++i) {
    const KernelRates &of = probes[i].rates;
    const KernelKind *kind = findKernelKind(of.kind);
    bool isLinear = of.kind == "linear", isRows = kind->unit == RateUnit::Bytes && !probes[i].desc.name.empty();
    if (!(isLinear && of.depth <= maxDepth) && !(isRows && of.depth <= 16 * maxDepth))
      continue;
    Trial trial = probes[i].prepare(probes[i], bench, kernels.of(probes[i]), team.workers(), probes[i].rows[0], false);
    if (trial.launches.size() != 1)
      continue;
    Launch launch = trial.launches[0];
    launch.items = std::min(launch.items, team.workers());
    launch.step = &trial.step->step;
    launches.push_back(std::move(launch));
    trials.push_back(std::move(trial));
    chained.push_back(i);
  }
  if (launches.empty())
    return Error{"calibration", "the buffers are too small for a kernel", "report it with the CPU's name"};
  Expected<Seconds> mean = team.timeTogether(launches, budget * 4);
  if (!mean)
    return mean.takeError();
  chain = std::min(chain, mean->value);
  return {};
}

/// A launch beyond the work of its kernel; at least an empty one.
Seconds Measurement::launch() const {
  double works = 0;
  for (size_t i : chained) {
    const Timing &timing = timings[i].near[0];
    const auto *linear = std::get_if<LinearDesc>(&probes[i].desc.body);
    double item = linear ? 2 * double(panelColumns * linear->w.k * probes[i].rows[0]) : timing.work;
    works += item / rate(timing);
  }
  return Seconds(rounded(std::max(empty, chain - works / double(chained.size()))));
}

/// One row through panels of bf16, as a decoding step reads its weights, over sets of rising size.
Status Measurement::measureReading(Bytes l2) {
  const auto probe = std::find_if(probes.begin(), probes.end(), [](const Probe &p) {
    return p.rates.kind == "linear" && p.rates.w == DType::BF16 && p.rates.depth == 512;
  });
  const auto &d = std::get<LinearDesc>(probe->desc.body);
  size_t size = 0;
  for (int64_t bytes = team.workers() * l2.value / 4; bytes <= bench.large.size(); bytes *= 2, ++size) {
    bench.buffers.clear();
    Trial trial = probe->prepare(*probe, bench, kernels.of(*probe), team.workers(), 1, true);
    size_t matrices = size_t(std::max<int64_t>(1, bytes / weightBytes(d.w, probe->tile.weights)));
    if (trial.launches.size() < matrices)
      break;
    trial.launches.resize(matrices);
    trial.work = double(weightBytes(d.w, probe->tile.weights));
    if (size == reading.size())
      reading.push_back({Bytes(bytes), Timing()});
    if (Status status = time(trial, reading[size].second); !status)
      return status;
  }
  return {};
}

Status Measurement::round(Bytes l2, const std::function<void()> &step) {
  timings.resize(probes.size());
  if (Status status = measureReading(l2); !status)
    return status;
  if (Status status = measureChain(); !status)
    return status;
  for (size_t i = 0; i < probes.size(); ++i) {
    // Short and often: it is part of every number.
    if (Status status = measureEmpty(budget * 0.1); !status)
      return status;
    if (Status status = measure(probes[i], timings[i]); !status)
      return status;
    step();
  }
  return {};
}

/// A launch takes at least a nanosecond beyond an empty one.
double Measurement::rate(const Timing &timing) const {
  double own = timing.whole - (timing.less > 0 ? timing.less : empty);
  return rounded(timing.work / std::max(own, 1e-9));
}

TeamRates Measurement::rates() const {
  TeamRates result;
  result.workers = team.workers();
  result.launch = launch();
  for (const auto &[bytes, timing] : reading)
    result.read.push_back({bytes, Bandwidth(rate(timing))});
  for (size_t i = 0; i < probes.size(); ++i) {
    const KernelRates &of = probes[i].rates;
    // Probes of one class at one depth are one entry: more rows.
    auto known = std::find_if(result.kernels.begin(), result.kernels.end(), [&](const KernelRates &k) {
      return k.kind == of.kind && k.x == of.x && k.w == of.w && k.depth == of.depth;
    });
    if (known == result.kernels.end())
      known = result.kernels.insert(known, of);
    if (probes[i].near)
      known->rows.insert(known->rows.end(), probes[i].rows.begin(), probes[i].rows.end());
    for (const Timing &timing : timings[i].near)
      known->near.push_back(rate(timing));
    for (const Timing &timing : timings[i].memory)
      known->memory.push_back(rate(timing));
  }
  return result;
}

} // namespace k2c::calibration
