//===- k2c.cpp - The compiler's command line ------------------------------===//
#include "Commands.h"
#include "k2rt/numerics.h"
#include <csignal>
#include <unistd.h>

namespace {
constexpr const char *description = R"(k2c compiles a published mixture-of-experts checkpoint into one native program.

  k2c compile models/bundled -o out && out/run generate --prompt "In the beginning"
  k2c compile CHECKPOINT -o - --emit scheduled      the program in one of its six forms
  k2c verify out                                    every hash of a bundle)";

/// Set before the work starts, read by the handler.
std::string interruptText = "k2c: interrupted\n";

void interrupted(int signal) {
  k2c::eraseBar();
  (void)!write(2, interruptText.data(), interruptText.size());
  _exit(128 + signal);
}
} // namespace

void k2c::setInterruptNote(const std::string &note) { interruptText = "k2c: interrupted; " + note + "\n"; }

int main(int argc, char **argv) {
  for (int signal : {SIGINT, SIGTERM})
    std::signal(signal, interrupted);
  CLI::App app(description, "k2c");
  app.set_version_flag("--version",
                       "k2c " K2C_VERSION ", " K2RT_NUMERICS_TEXT ", targets: x86-64 with AVX2 and FMA, AVX-512");
  app.require_subcommand(1);
  std::function<int()> run;
  for (k2c::Command add :
       {k2c::addCompile, k2c::addRun, k2c::addPlan, k2c::addPack, k2c::addExport, k2c::addPlace, k2c::addVerify,
        k2c::addInspect, k2c::addExplain, k2c::addDiff, k2c::addKnown, k2c::addDoctor, k2c::addCalibrate,
        k2c::addPredict, k2c::addCache, k2c::addCompletion, k2c::addManual})
    add(app, run);
  return k2c::runCommandLine(app, argc, argv, [&run] { return run(); });
}
