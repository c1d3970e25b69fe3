//===- Known.cpp - k2c models, k2c topologies -----------------------------===//
#include "Commands.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Model/ModelSpec.h"
#include <iomanip>
#include <iostream>
#include <memory>

namespace k2c {

static int listModels() {
  for (const std::string &name : knownModelTypes())
    std::cout << name << "\n";
  return 0;
}

static int listTopologies() {
  for (const TopologyName &topology : knownTopologies())
    std::cout << std::left << std::setw(16) << topology.name << topology.description << "\n";
  return 0;
}

static int print(const Expected<Topology> &topology) {
  if (!topology)
    return fail(topology.error().text());
  std::cout << printTopology(*topology);
  return 0;
}

void addKnown(CLI::App &app, std::function<int()> &run) {
  CLI::App *models = app.add_subcommand("models", "The model types this build compiles");
  models->footer("example:\n  k2c models");
  models->callback([&run] { run = listModels; });

  CLI::App *topologies = app.add_subcommand("topologies", "The topologies this build knows, or one as a file");
  topologies->footer("example:\n  k2c topologies h100x8 > mine.yaml");
  auto name = std::make_shared<std::string>();
  topologies->add_option("topology", *name, "print this one: a built-in or a file, which is checked");
  topologies->callback(
      [&run, name] { run = [name] { return name->empty() ? listTopologies() : print(loadTopology(*name)); }; });
}

} // namespace k2c
