//===- k2c-plan.cpp - The planner's program -----------------------------------===//
#include "PlanCommand.h"

int main(int argc, char **argv) {
  CLI::App app("What a model costs on a cluster: memory, communication, time", "k2c-plan");
  app.set_version_flag("--version", "k2c-plan " K2C_VERSION);
  std::function<int()> run = k2c::declarePlan(app, "k2c-plan");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return run();
}
