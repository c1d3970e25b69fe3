//===- Calibrate.cpp - k2c calibrate --------------------------------------===//
#include "k2c/Calibrate/Calibrate.h"
#include "Commands.h"
#include "k2c/Cluster/SplitHost.h"
#include "k2c/Support/WriteFile.h"
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace k2c;

namespace {

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

int measure(const CalibrateOptions &options, const std::string &output, bool isQuiet) {
  const bool isToStdout = output.empty() || output == "-";
  if (!isToStdout && !isWritable(output))
    return fail(output + ": cannot be written; name a file in an existing folder");
  Expected<Topology> topology = calibrate(options);
  eraseBar();
  if (!topology)
    return fail(topology.error());
  Calibration measured = *topology->device.measured;
  if (options.ranks > 1)
    topology = splitHost(*topology, options.ranks);
  if (!topology)
    return fail(topology.error());
  std::string text = printTopology(*topology);
  if (isToStdout) {
    std::cout << text;
    return 0;
  }
  if (Status status = writeFile(output, text, "name a file in an existing folder"); !status)
    return fail(status.error());
  if (!isQuiet)
    summarize(measured);
  return 0;
}

} // namespace

void k2c::addCalibrate(CLI::App &app, std::function<int()> &run) {
  auto options = std::make_shared<CalibrateOptions>();
  auto output = std::make_shared<std::string>();
  auto threads = std::make_shared<int64_t>(0);
  CLI::App *c = app.add_subcommand("calibrate", "Measure this machine with the compiler's own kernels");
  c->footer("example:\n  k2c calibrate -o this.yaml && k2c compile CHECKPOINT -o out --topology this.yaml");
  c->add_option("-o,--output", *output, "topology file to write (default: standard output)");
  c->add_option("--threads", *threads, "measure a team of so many workers only (default: one, and one for each core)")
      ->transform(whole(1, 4096));
  c->add_option("--ranks", options->ranks,
                "describe the machine as so many equal ranks, their links as tiers (default: 1)")
      ->transform(whole(1, 4096));
  c->add_flag("--quick", options->quick, "bf16 weights only, shorter measurements");
  c->add_option("--cache-dir", options->cacheFolder, "folder of compiled kernels (default: $XDG_CACHE_HOME/k2c)");
  std::shared_ptr<Console> console = addConsole(*c);
  c->callback([=, &run] {
    run = [=] {
      if (*threads > 0)
        options->workers = {*threads};
      options->tool = "k2c " K2C_VERSION;
      options->progress = console->bar();
      options->note = console->note();
      return measure(*options, *output, console->quiet);
    };
  });
}
