//===- PlanCommand.cpp - The planner's command line ---------------------------===//
#include "PlanCommand.h"
#include "../CommandLine.h"
#include "base/JsonText.h"
#include "k2c/Formulas/Query.h"
#include <iostream>
#include <set>

using namespace k2c;

namespace {

struct PlanFlags {
  std::string source, query, inputs = "{}", quantity, compat = "paper";
  bool parts = false, functions = false, models = false;
};

Expected<JsonDocument> readInputs(const std::string &inputs) {
  if (inputs == "@")
    return Error{"--inputs", "'@' names no file", "give @FILE, or the inputs as JSON"};
  if (!inputs.empty() && inputs[0] == '@')
    return readJsonFile(inputs.substr(1));
  return parseJson(inputs, "--inputs");
}

int ask(const PlanFlags &flags) {
  Expected<JsonDocument> inputs = readInputs(flags.inputs);
  if (!inputs)
    return fail(inputs.error());
  QueryOptions options;
  options.quantity = flags.quantity;
  options.compat = flags.compat == "exact" ? Compat::Exact : Compat::Paper;
  options.withParts = flags.parts;
  Expected<nlohmann::ordered_json> answer = answerQuery(flags.query, *inputs, options);
  if (!answer)
    return fail(answer.error());
  std::cout << jsonText(*answer) << "\n";
  return 0;
}

/// The first option given that is not one of `read`; "": none.
std::string strayOption(const CLI::App &command, const std::set<std::string> &read) {
  for (const CLI::Option *option : command.get_options())
    if (option->count() > 0 && !read.count(option->get_name()))
      return option->get_name();
  return "";
}

/// A list takes no other option.
int listAlone(const CLI::App &command, const std::string &flag, int (*list)()) {
  const std::string stray = strayOption(command, {flag});
  return stray.empty() ? list() : fail(stray + ": has no meaning beside " + flag + "; leave one of them out");
}

int listFunctions() {
  for (const QueryFunction &function : queryFunctions())
    std::cout << function.name << "  (" << function.unit << "; " << function.source << ")\n    " << function.keys
              << "\n";
  return 0;
}

int listModels() {
  for (const std::string &name : publishedModels())
    std::cout << name << "\n";
  return 0;
}

} // namespace

std::function<int()> k2c::declarePlan(CLI::App &command, const std::string &program, AskCompiler compiler) {
  auto flags = std::make_shared<PlanFlags>();
  auto cluster = std::make_shared<ClusterFlags>();
  command.footer("examples:\n  " + program + " CHECKPOINT\n  " + program + " kimi-k2 --topology 4x8-h100\n  " +
                 program + " kimi-k2 --topology 4x8-h100 --layout ep=32,overlap=1 --workload chat.yaml\n  " + program +
                 " kimi-k2 --topology 256-h800 --search --objective devices\n  " + program +
                 " kimi-k2 --topology 256-h800 --train --layout "
                 "ep=16,dp=16,pp=16,schedule=interleaved,chunks=2,recompute=full,zero=os+g --html plan.html\n  " +
                 program + " --query expert_hit_mean --inputs '{\"experts\":256,\"topk\":8,\"tokens\":32}'\n  " +
                 program + " --query total_params --inputs '{\"model\":\"kimi_k2\"}'\n  " + program +
                 " --query zero_memory --inputs @layout.json --quantity optimizer_bytes");
  command.add_option(
      "SOURCE", flags->source,
      "a model of --models, a checkpoint folder, a config.json, a .onnx file or its folder, or org/name in $HF_HOME");
  declareCluster(command, cluster);
  CLI::Option *query = command.add_option("--query", flags->query, "answer one function of the planner");
  command.add_option("--inputs", flags->inputs, "its inputs: JSON, or @FILE")->needs(query)->capture_default_str();
  command.add_option("--quantity", flags->quantity, "a part of the answer")->needs(query);
  command.add_option("--compat", flags->compat, "conventions that the inputs leave open")
      ->check(CLI::IsMember({"paper", "seed", "exact"}))
      ->needs(query)
      ->capture_default_str();
  command.add_flag("--parts", flags->parts, "every part of the answer")->needs(query);
  command.add_flag("--functions", flags->functions, "list the functions of --query");
  command.add_flag("--models", flags->models, "list the published models known by name");
  return [flags, cluster, compiler, program, &command] {
    if (!flags->query.empty()) {
      const std::set<std::string> read = {"--query", "--inputs", "--quantity", "--compat", "--parts"};
      if (const std::string stray = strayOption(command, read); !stray.empty())
        return fail(stray + ": has no meaning beside --query, whose inputs are in --inputs; leave one of them out");
      return ask(*flags);
    }
    if (flags->functions)
      return listAlone(command, "--functions", listFunctions);
    if (flags->models)
      return listAlone(command, "--models", listModels);
    if (!flags->source.empty()) {
      cluster->compile.source = flags->source;
      return planCluster(*cluster, compiler);
    }
    return failUsage("name a SOURCE, or ask with --query; see " + program + " --help");
  };
}
