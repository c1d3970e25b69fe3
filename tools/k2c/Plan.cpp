//===- Plan.cpp - k2c plan ------------------------------------------------===//
#include "../k2c-plan/PlanCommand.h"
#include "Commands.h"
#include "k2c/Pipelines/Compile.h"

using namespace k2c;

/// The plan that `k2c compile` with these flags would carry out.
static Expected<Plan> askCompiler(const CompileFlags &flags) {
  CompileOptions options;
  options.source = flags.source;
  options.topology = flags.topology;
  options.compute = flags.compute;
  options.cache = flags.cache;
  if (!flags.mla.empty())
    options.mla = flags.mla;
  options.stepTokens = flags.stepTokens;
  options.maxSequences = flags.maxSequences.value_or(options.maxSequences);
  options.maxContext = flags.maxContext;
  options.outputRows = flags.outputRows;
  return planCompile(options);
}

void k2c::addPlan(CLI::App &app, std::function<int()> &run) {
  CLI::App *c = app.add_subcommand("plan", "Memory, communication and time of a model on a cluster (also: k2c-plan)");
  std::function<int()> plan = declarePlan(*c, "k2c plan", askCompiler);
  c->callback([plan, &run] { run = plan; });
}
