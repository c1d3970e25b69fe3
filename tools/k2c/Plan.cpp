//===- Plan.cpp - k2c plan ------------------------------------------------===//
#include "../k2c-plan/PlanCommand.h"
#include "Commands.h"

void k2c::addPlan(CLI::App &app, std::function<int()> &run) {
  CLI::App *c = app.add_subcommand("plan", "Memory, communication and time of a model on a cluster (also: k2c-plan)");
  std::function<int()> plan = declarePlan(*c, "k2c plan");
  c->callback([plan, &run] { run = plan; });
}
