//===- k2c-plan.cpp - The planner's program -----------------------------------===//
#include "../CommandLine.h"
#include "PlanCommand.h"
#include "k2rt/numerics.h"

int main(int argc, char **argv) {
  CLI::App app("What a model costs on a cluster: memory, communication, time", "k2c-plan");
  app.set_version_flag("--version",
                       "k2c-plan " K2C_VERSION ", " K2RT_NUMERICS_TEXT ", targets: the machines of k2c topologies");
  return k2c::runCommandLine(app, argc, argv, k2c::declarePlan(app, "k2c-plan"));
}
