//===- k2c.cpp - The compiler's command line ------------------------------===//
#include "Commands.h"
#include <csignal>
#include <iostream>

namespace {
constexpr const char *description = R"(k2c compiles a published mixture-of-experts checkpoint into one native program.

  k2c compile models/bundled -o out && out/run generate --prompt "In the beginning"
  k2c compile CHECKPOINT -o - --emit scheduled      the program in one of its six forms
  k2c verify out                                    every hash of a bundle)";

/// One line on what was wrong with the command line; exit code 2.
int usageError(const std::string &first, CLI::App &app, const std::string &what) {
  bool isCommand = false;
  for (const CLI::App *command : app.get_subcommands([](CLI::App *) { return true; }))
    isCommand |= command->get_name() == first;
  bool isUnknown = !first.empty() && first[0] != '-' && !isCommand;
  std::string help = isCommand ? "k2c " + first + " --help" : "k2c --help";
  k2c::fail((isUnknown ? "there is no command '" + first + "'" : what) + "; see " + help);
  return 2;
}

/// Set before the work starts, read by the handler.
std::string interruptText = "k2c: interrupted\n";

void interrupted(int) {
  (void)!write(2, interruptText.data(), interruptText.size());
  _exit(130);
}
} // namespace

void k2c::setInterruptNote(const std::string &note) { interruptText = "k2c: interrupted; " + note + "\n"; }

int main(int argc, char **argv) {
  std::signal(SIGINT, interrupted);
  CLI::App app(description, "k2c");
  app.set_version_flag("--version", "k2c " K2C_VERSION ", numerics 1, targets: x86-64 with AVX2 and FMA, AVX-512");
  app.require_subcommand(1);
  std::function<int()> run;
  for (k2c::Command add : {k2c::addCompile, k2c::addRun, k2c::addPlan, k2c::addPack, k2c::addVerify, k2c::addInspect,
                           k2c::addExplain, k2c::addKnown, k2c::addDoctor, k2c::addCalibrate, k2c::addPredict})
    add(app, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error);
    return usageError(argc > 1 ? argv[1] : "", app, error.what());
  }
  int code = run();
  if (!std::cout.flush())
    return k2c::fail("standard output: cannot be written; free space on its disk");
  return code;
}
