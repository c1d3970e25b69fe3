//===- Calibrate.cpp - Measures this machine with the compiler's own kernels -===//
//
// Kernels go the way of a program's: description, tile, emitted module, object (of the same cache), shared object. They
// run on the runtime's workers and barrier; a rate is work over the fastest time, less that of an empty launch.
//
//===----------------------------------------------------------------------===//
#include "k2c/Calibrate/Calibrate.h"

#include "Probe.h"
#include "k2c/Kernels/Emit.h"
#include "k2c/Target/Host.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>

namespace k2c {

using namespace calibration;

namespace {

/// Four digits: what repeats.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return std::strtod(text, nullptr);
}

std::string today() {
  std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

TargetInfo infoOf(const HostTarget &host) {
  TargetInfo info;
  info.lanes = host.lanes;
  info.vectorRegisters = host.vectorRegisters;
  info.hasAvx512 = host.hasAvx512;
  info.hasAvx512Bf16 = host.hasAvx512Bf16;
  if (host.l1Bytes > 0)
    info.l1Bytes = host.l1Bytes;
  if (host.l2Bytes > 0)
    info.l2Bytes = host.l2Bytes;
  return info;
}

/// The probes' kernels, loaded. The library stays in the process.
class Kernels {
public:
  static Expected<Kernels> compile(const std::vector<Probe> &probes, const HostTarget &host,
                                   const CalibrateOptions &options);
  k2rt_ir_kernel_fn of(const Probe &probe) const { return functions.lookup(kernelSymbol(probe.desc)); }
  int64_t scratch = 0;

private:
  llvm::StringMap<k2rt_ir_kernel_fn> functions;
};

std::string textOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

Expected<Kernels> Kernels::compile(const std::vector<Probe> &probes, const HostTarget &host,
                                   const CalibrateOptions &options) {
  Kernels kernels;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  loadKernelDialects(context);
  std::vector<ObjectJob> jobs;
  std::vector<std::string> symbols;
  for (const Probe &probe : probes) {
    if (probe.desc.name.empty() || llvm::is_contained(symbols, kernelSymbol(probe.desc)))
      continue; // a probe of the runtime itself, or of a kernel that is there
    symbols.push_back(kernelSymbol(probe.desc));
    kernels.scratch = std::max(kernels.scratch, scratchBytes(probe.desc, probe.tile));
    auto emit = [&probe, symbol = symbols.back()](mlir::MLIRContext *in) {
      return emitKernel(in, probe.desc, probe.tile, symbol);
    };
    mlir::OwningOpRef<mlir::ModuleOp> module = emit(&context);
    if (!module)
      return Error{probe.desc.name, "no code could be emitted", ""};
    jobs.push_back({probe.desc.name, textOf(*module), emit});
  }
  ObjectOptions objects;
  objects.cacheDir = options.cacheFolder;
  if (options.progress)
    objects.progress = [&](int64_t done, int64_t total) { options.progress("kernels", done, total); };
  Expected<std::vector<std::string>> paths = compileObjects(jobs, host, objects);
  if (!paths)
    return paths.takeError();
  llvm::SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("k2c-calibrate", folder))
    return Error{"calibration", "cannot make a temporary folder: " + error.message(), "set TMPDIR"};
  std::string path = (folder + "/kernels.so").str();
  Status linked = linkShared(*paths, symbols, path);
  void *library = linked ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  std::string problem = library || !linked ? "" : dlerror();
  llvm::sys::fs::remove_directories(folder);
  if (!linked)
    return linked.takeError();
  if (!library)
    return Error{"calibration", problem, "set TMPDIR to a folder whose files may be executed"};
  for (const std::string &symbol : symbols)
    kernels.functions[symbol] = reinterpret_cast<k2rt_ir_kernel_fn>(dlsym(library, symbol.c_str()));
  return kernels;
}

/// Measures all probes with one team.
class Measurement {
public:
  Measurement(const std::vector<Probe> &probes, const Kernels &kernels, const Bench &bench, Team &team, Seconds budget)
      : probes(probes), kernels(kernels), bench(bench), team(team), budget(budget) {}

  /// `step`: called after each probe.
  Expected<TeamRates> run(const Device &device, const std::function<void()> &step);

private:
  Status measure(const Probe &probe, KernelRates &rates);
  Expected<double> rate(const Probe &probe, int64_t rows, bool fromMemory);
  Expected<Seconds> seconds(const Trial &trial);
  Status measureReading(const Device &device);
  void add(KernelRates rates);

  const std::vector<Probe> &probes;
  const Kernels &kernels;
  const Bench &bench;
  Team &team;
  Seconds budget;
  TeamRates result;
};

/// Time beyond an empty launch; at least a nanosecond.
Expected<Seconds> Measurement::seconds(const Trial &trial) {
  if (trial.launches.empty())
    return Error{"calibration", "the buffers are too small for a kernel", "report it with the CPU's name"};
  Expected<Seconds> whole = team.time(trial.launches, trial.step->step, budget);
  if (!whole)
    return whole.takeError();
  Seconds own = *whole - result.launch;
  if (trial.less) {
    Expected<Seconds> other = seconds(*trial.less);
    if (!other)
      return other.takeError();
    own -= *other;
  }
  return std::max(own, Seconds(1e-9), [](Seconds a, Seconds b) { return a < b; });
}

Expected<double> Measurement::rate(const Probe &probe, int64_t rows, bool fromMemory) {
  bench.buffers.clear();
  Trial trial = probe.prepare(probe, bench, kernels.of(probe), team.workers(), rows, fromMemory);
  Expected<Seconds> time = seconds(trial);
  if (!time)
    return time.takeError();
  return rounded(trial.work / time->value);
}

Status Measurement::measure(const Probe &probe, KernelRates &rates) {
  rates.rows = probe.rows;
  for (bool fromMemory : {false, true})
    for (int64_t rows : probe.rows) {
      if (fromMemory && !probe.streams)
        continue;
      Expected<double> found = rate(probe, rows, fromMemory);
      if (!found)
        return found.takeError();
      (fromMemory ? rates.memory : rates.near).push_back(*found);
    }
  return {};
}

/// Probes of one class at one depth are one entry: more rows.
void Measurement::add(KernelRates rates) {
  for (KernelRates &known : result.kernels)
    if (known.kind == rates.kind && known.x == rates.x && known.w == rates.w && known.depth == rates.depth) {
      known.rows.insert(known.rows.end(), rates.rows.begin(), rates.rows.end());
      known.near.insert(known.near.end(), rates.near.begin(), rates.near.end());
      return;
    }
  result.kernels.push_back(std::move(rates));
}

/// One row through panels of bf16, as a decoding step reads its weights, over sets of rising size.
Status Measurement::measureReading(const Device &device) {
  const auto probe = std::find_if(probes.begin(), probes.end(), [](const Probe &p) {
    return p.rates.kind == "linear" && p.rates.w == DType::BF16 && p.rates.depth == 512;
  });
  const auto &d = std::get<LinearDesc>(probe->desc.body);
  for (int64_t bytes = team.workers() * device.l2.value.value / 4; bytes <= bench.large.size(); bytes *= 2) {
    bench.buffers.clear();
    Trial trial = probe->prepare(*probe, bench, kernels.of(*probe), team.workers(), 1, true);
    size_t matrices = size_t(std::max<int64_t>(1, bytes / d.w.bytes()));
    if (trial.launches.size() < matrices)
      break;
    trial.launches.resize(matrices);
    Expected<Seconds> time = seconds(trial);
    if (!time)
      return time.takeError();
    result.read.push_back({Bytes(bytes), Bandwidth(rounded(double(d.w.bytes()) / time->value))});
  }
  return {};
}

Expected<TeamRates> Measurement::run(const Device &device, const std::function<void()> &step) {
  result.workers = team.workers();
  ProbeStep nothing(1, 0, 1, K2RT_FORM_EXPANDED);
  Expected<Seconds> empty = team.time(std::vector<Launch>(1), nothing.step, budget);
  if (!empty)
    return empty.takeError();
  result.launch = Seconds(rounded(empty->value));
  if (Status status = measureReading(device); !status)
    return status.takeError();
  for (const Probe &probe : probes) {
    KernelRates rates = probe.rates;
    if (Status status = measure(probe, rates); !status)
      return status.takeError();
    add(std::move(rates));
    step();
  }
  return result;
}

/// The rates that a topology has without `measured`: the best that kernels reached.
void summarize(Device &device, const Calibration &calibration) {
  std::string source = "measured by k2c calibrate, " + calibration.date;
  const TeamRates &all = calibration.teams.back();
  device.memoryRead = {all.read.back().rate, source};
  for (auto [type, rate] : {std::pair{DType::F32, &device.f32}, std::pair{DType::BF16, &device.bf16}})
    for (const KernelRates &kernel : all.kernels)
      if (kernel.kind == "linear" && kernel.x == type) {
        double best = *std::max_element(kernel.near.begin(), kernel.near.end());
        bool first = rate->source != source;
        *rate = {FlopRate(first ? best : std::max(best, rate->value.value)), source};
      }
}

std::vector<Probe> allProbes(const TargetInfo &info, bool quick, int64_t mostWorkers) {
  std::vector<Probe> probes = linearProbes(info, quick, mostWorkers);
  for (std::vector<Probe> more : {attentionProbes(info, mostWorkers), rowProbes(info)})
    std::move(more.begin(), more.end(), std::back_inserter(probes));
  return probes;
}

/// Room for what one trial reads and writes besides weights.
constexpr Bytes bufferBytes = mebibytes(48);

} // namespace

Expected<Topology> calibrate(const CalibrateOptions &options) {
  Expected<HostTarget> host = HostTarget::detect();
  if (!host)
    return host.takeError();
  Topology topology = hostTopology();
  Device &device = topology.device;
  std::vector<int64_t> workers = options.workers;
  if (workers.empty())
    workers = device.cores > 1 ? std::vector<int64_t>{1, device.cores} : std::vector<int64_t>{1};
  int64_t mostWorkers = *std::max_element(workers.begin(), workers.end());
  if (Status status = checkWorkers(mostWorkers); !status)
    return status.takeError();
  TargetInfo info = infoOf(*host);
  std::vector<Probe> probes = allProbes(info, options.quick, mostWorkers);
  Expected<Kernels> kernels = Kernels::compile(probes, *host, options);
  if (!kernels)
    return kernels.takeError();
  Bytes caches(device.l3.value.value + mostWorkers * device.l2.value.value);
  Expected<Memory> buffers = Memory::map(bufferBytes), large = Memory::map(caches * 3);
  for (Expected<Memory> *memory : {&buffers, &large})
    if (!*memory)
      return memory->takeError();
  Buffers parts(*buffers);
  Bench bench{info, parts, *large};
  Calibration calibration{options.tool, today(), host->cpu, {}};
  int64_t done = 0, total = int64_t(probes.size() * workers.size());
  for (int64_t count : workers) {
    Expected<Team> team = Team::start(count, kernels->scratch);
    if (!team)
      return team.takeError();
    Measurement measurement(probes, *kernels, bench, *team, Seconds(options.quick ? 3e-3 : 15e-3));
    Expected<TeamRates> rates = measurement.run(device, [&] {
      if (options.progress)
        options.progress("rates", ++done, total);
    });
    if (!rates)
      return rates.takeError();
    calibration.teams.push_back(std::move(*rates));
  }
  summarize(device, calibration);
  topology.description += ", measured " + calibration.date;
  device.measured = std::move(calibration);
  return topology;
}

} // namespace k2c
