//===- Known.cpp - k2c models, k2c topologies -----------------------------===//
#include "Commands.h"
#include "base/JsonText.h"
#include "k2c/Cluster/Import.h"
#include "k2c/Model/ModelSpec.h"
#include <iomanip>
#include <iostream>
#include <memory>

namespace k2c {

static int listModels(bool asJson) {
  if (asJson)
    std::cout << jsonText(nlohmann::json(knownModelTypes()), 2) << "\n";
  else
    for (const std::string &name : knownModelTypes())
      std::cout << name << "\n";
  return 0;
}

static int listTopologies(bool asJson) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const TopologyName &topology : knownTopologies())
    if (asJson)
      json.push_back({{"name", topology.name}, {"description", topology.description}});
    else
      std::cout << std::left << std::setw(16) << topology.name << topology.description << "\n";
  if (asJson)
    std::cout << jsonText(json, 2) << "\n";
  return 0;
}

static int print(const Expected<Topology> &topology) {
  if (!topology)
    return fail(topology.error());
  std::cout << printTopology(*topology);
  return 0;
}

void addKnown(CLI::App &app, std::function<int()> &run) {
  CLI::App *models = app.add_subcommand("models", "The model types this build compiles");
  models->footer("example:\n  k2c models");
  auto modelsAsJson = std::make_shared<bool>(false);
  models->add_flag("--json", *modelsAsJson, "print JSON");
  models->callback([modelsAsJson, &run] { run = [modelsAsJson] { return listModels(*modelsAsJson); }; });

  struct Options {
    std::string name, import, like;
    bool json = false;
  };
  CLI::App *topologies = app.add_subcommand("topologies", "The topologies this build knows, or one as a file");
  topologies->footer("example:\n  k2c topologies h100x8 > mine.yaml\n"
                     "  k2c topologies --import topology.conf --like 4x8-h100 > mine.yaml");
  auto options = std::make_shared<Options>();
  CLI::Option *name = topologies->add_option("topology", options->name, "print this one: a built-in or a file");
  CLI::Option *import = topologies->add_option("--import", options->import,
                                               "print the topology that NCCL's XML, Slurm's topology.conf or "
                                               "topology.yaml, or nvidia-smi topo -m describes");
  import->excludes(name);
  topologies->add_flag("--json", options->json, "print the list as JSON")->excludes(name)->excludes(import);
  topologies
      ->add_option("--like", options->like, "a topology with the same devices and links, for what FILE leaves open")
      ->needs(import);
  topologies->callback([&run, options] {
    run = [options] {
      if (!options->import.empty())
        return print(importTopologyFile(options->import, options->like));
      return options->name.empty() ? listTopologies(options->json) : print(loadTopology(options->name));
    };
  });
}

} // namespace k2c
