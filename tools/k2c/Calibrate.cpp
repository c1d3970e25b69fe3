//===- Calibrate.cpp - k2c calibrate --------------------------------------===//
//
// The processors of this machine, or a GPU, are measured by lib/Calibrate; the topology goes to a file, with what
// people ask first on stderr, or to standard output. Whether the file can be written is asked before anything is
// measured, and it is written in the end, so that an interrupted command leaves none.
//
//===----------------------------------------------------------------------===//
#include "k2c/Calibrate/Calibrate.h"
#include "Commands.h"
#include "base/Driver.h"
#include "k2c/Cluster/SplitHost.h"
#include "k2c/Support/WriteFile.h"
#include "k2c/Target/Launch.h"
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace k2c;

namespace {

struct Flags {
  CalibrateOptions options;
  std::string output, topology = "host", driver = "libcuda.so.1";
  int64_t threads = 0, device = 0;
  bool isQuiet = false;
};

void line(const std::string &what, const std::string &value) {
  std::cerr << what << std::string(34 - std::min<size_t>(33, what.size()), ' ') << value << "\n";
}

/// What people ask first: the peaks of the largest team.
void summarize(const Calibration &calibration) {
  const TeamRates &team = calibration.teams.back();
  line("workers", std::to_string(team.workers));
  line("a launch", format(team.launch));
  line("read, " + format(team.read.front().bytes), format(team.read.front().rate));
  line("read, " + format(team.read.back().bytes), format(team.read.back().rate));
  for (const LinkRates &link : calibration.links)
    line("between units of a " + link.name, format(link.latency) + ", " + format(link.read.back().rate));
  for (const KernelRates &kernel : team.kernels)
    if (kernel.kind == "linear") {
      double best = *std::max_element(kernel.near.begin(), kernel.near.end());
      line("linear " + std::string(name(kernel.x)) + " x " + std::string(name(kernel.w)) + ", depth " +
               std::to_string(kernel.depth),
           std::to_string(int64_t(best * 1e-9)) + " GFLOP/s a worker");
    }
}

/// Whether a file of this name can be written: asked before minutes are spent on what shall be in it.
bool isWritable(const std::string &path) {
  std::error_code error;
  if (fs::exists(path, error))
    return !fs::is_directory(path, error) && ::access(path.c_str(), W_OK) == 0;
  const std::string folder = fs::path(path).parent_path().string();
  return ::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0;
}

void summarize(const GpuCalibration &measured) {
  const Device &device = measured.topology.device;
  line("read from memory", format(device.memoryRead.value));
  if (device.l2Read)
    line("read from L2", format(device.l2Read->value));
  line("f32", formatNumber(device.f32.value.value * 1e-12, 4) + " TFLOP/s");
  line("a launch", format(device.kernels.launch.value));
  line("copied from the host", format(measured.fromHost));
  line("runs", std::to_string(measured.runs) + ", of which the least count; medians are up to " +
                   std::to_string(std::lround(100 * measured.spread)) + " % above");
}

bool isToStdout(const Flags &flags) { return flags.output.empty() || flags.output == "-"; }

/// `summary`: what of it people are told where a file is written.
template <class Measured> int write(const Topology &topology, const Measured &summary, const Flags &flags) {
  std::string text = printTopology(topology);
  if (isToStdout(flags)) {
    std::cout << text;
    return 0;
  }
  if (Status status = writeFile(flags.output, text, "name a file in an existing folder"); !status)
    return fail(status.error());
  if (!flags.isQuiet)
    summarize(summary);
  return 0;
}

int measureHost(const Flags &flags) {
  Expected<Topology> topology = calibrate(flags.options);
  eraseBar();
  if (!topology)
    return fail(topology.error());
  Calibration measured = *topology->device.measured;
  if (flags.options.ranks > 1)
    topology = splitHost(*topology, flags.options.ranks);
  if (!topology)
    return fail(topology.error());
  return write(*topology, measured, flags);
}

/// As runs of a bundle open it, but for the emulated one, which is that of this build.
Expected<std::unique_ptr<Driver>> openDriver(const std::string &driver) {
  if (driver != "emulated")
    return Driver::open(driver);
  const std::string file = libraryOfBuild(emulatedDriverFile);
  if (file.empty())
    return Error{"--driver emulated", std::string("this build has no ") + emulatedDriverFile + " in ../lib",
                 "build it, or install all of it"};
  return Driver::open(file);
}

int measureGpu(const Flags &flags) {
  Expected<std::unique_ptr<Driver>> driver = openDriver(flags.driver);
  if (!driver)
    return fail(driver.error());
  Expected<GpuCalibration> measured = calibrateGpu(**driver, static_cast<int32_t>(flags.device), flags.options);
  eraseBar();
  if (!measured)
    return fail(measured.error());
  return write(measured->topology, *measured, flags);
}

/// Refuses options of the other kind of device.
Status checkOptions(const CLI::App &command, bool isGpu) {
  for (const char *option : {"--threads", "--ranks", "--quick"})
    if (isGpu && command.count(option) > 0)
      return Error{option, "is of processors", "leave it out, or measure them: --topology host"};
  for (const char *option : {"--driver", "--device"})
    if (!isGpu && command.count(option) > 0)
      return Error{option, "is of a GPU", "add --topology gpu"};
  return {};
}

int measure(const CLI::App &command, const Flags &flags) {
  const bool isGpu = flags.topology == "gpu";
  if (Status right = checkOptions(command, isGpu); !right)
    return fail(right.error());
  if (!isToStdout(flags) && !isWritable(flags.output))
    return fail(flags.output + ": cannot be written; name a file in an existing folder");
  return isGpu ? measureGpu(flags) : measureHost(flags);
}

} // namespace

void k2c::addCalibrate(CLI::App &app, std::function<int()> &run) {
  auto flags = std::make_shared<Flags>();
  CLI::App *c = app.add_subcommand("calibrate", "Measure this machine with the compiler's own kernels");
  c->footer("examples:\n  k2c calibrate -o this.yaml && k2c compile CHECKPOINT -o out --topology this.yaml\n"
            "  k2c calibrate --topology gpu -o gpu.yaml && k2c plan CHECKPOINT --topology gpu.yaml");
  c->add_option("-o,--output", flags->output, "topology file to write (default: standard output)");
  c->add_option("--topology", flags->topology, "what is measured: the processors, or an NVIDIA GPU")
      ->check(CLI::IsMember({"host", "gpu"}))
      ->capture_default_str();
  c->add_option("--threads", flags->threads,
                "measure a team of so many workers only (default: one, and one for each core)")
      ->transform(whole(1, 4096));
  c->add_option("--ranks", flags->options.ranks,
                "describe the machine as so many equal ranks, their links as tiers (default: 1)")
      ->transform(whole(1, 4096));
  c->add_flag("--quick", flags->options.quick, "bf16 weights only, shorter measurements");
  c->add_option("--driver", flags->driver,
                "of a GPU: the driver's library (default: libcuda.so.1); emulated: an interpreter, which measures "
                "nothing of a GPU, for tests");
  c->add_option("--device", flags->device, "of a GPU: its number in the driver (default: 0)")
      ->transform(whole(0, 1023));
  c->add_option("--cache-dir", flags->options.cacheFolder, "folder of compiled kernels (default: $XDG_CACHE_HOME/k2c)");
  std::shared_ptr<Console> console = addConsole(*c);
  c->callback([=, &run] {
    run = [=] {
      if (flags->threads > 0)
        flags->options.workers = {flags->threads};
      flags->options.tool = "k2c " K2C_VERSION;
      flags->options.progress = console->bar();
      flags->options.note = console->note();
      flags->isQuiet = console->quiet;
      return measure(*c, *flags);
    };
  });
}
