//===- Known.cpp - k2c models, k2c topologies -----------------------------===//
#include "Commands.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Model/ModelSpec.h"
#include <iostream>

void k2c::addKnown(CLI::App &app, std::function<int()> &run) {
  CLI::App *models = app.add_subcommand("models", "The model types this build compiles");
  models->footer("example:\n  k2c models");
  models->callback([&run] {
    run = [] {
      for (const std::string &name : knownModelTypes())
        std::cout << name << "\n";
      return 0;
    };
  });
  CLI::App *topologies = app.add_subcommand("topologies", "The topologies this build knows");
  topologies->footer("example:\n  k2c topologies");
  topologies->callback([&run] {
    run = [] {
      for (const TopologyName &topology : knownTopologies())
        std::cout << topology.name << std::string(12 - std::min<size_t>(11, topology.name.size()), ' ')
                  << topology.description << "\n";
      return 0;
    };
  });
}
