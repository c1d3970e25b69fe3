//===- PlanCommand.cpp - The planner's command line ---------------------------===//
#include "PlanCommand.h"
#include "k2c/Planner/Count.h"
#include "k2c/Planner/Query.h"
#include <filesystem>
#include <iostream>

using namespace k2c;

namespace {

struct PlanFlags {
  std::string source, query, inputs = "{}", quantity, compat = "paper";
  bool parts = false, functions = false, models = false;
};

int refuse(const std::string &text) {
  std::cerr << "k2c: error: " << text << "\n";
  return 1;
}

Expected<JsonDocument> readInputs(const std::string &inputs) {
  if (!inputs.empty() && inputs[0] == '@')
    return readJsonFile(inputs.substr(1));
  return parseJson(inputs, "--inputs");
}

int ask(const PlanFlags &flags) {
  Expected<JsonDocument> inputs = readInputs(flags.inputs);
  if (!inputs)
    return refuse(inputs.error().text());
  QueryOptions options;
  options.quantity = flags.quantity;
  options.compat = flags.compat == "exact" ? Compat::Exact : Compat::Paper;
  options.withParts = flags.parts;
  Expected<nlohmann::ordered_json> answer = answerQuery(flags.query, *inputs, options);
  if (!answer)
    return refuse(answer.error().text());
  std::cout << answer->dump() << "\n";
  return 0;
}

void line(const std::string &what, const std::string &value) {
  std::cout << what << std::string(34 - std::min<size_t>(33, what.size()), ' ') << value << "\n";
}

/// What a model is in numbers, whatever runs it: a name of --models, a folder or a config.json.
int count(const std::string &source) {
  LoadOptions options;
  options.purpose = LoadPurpose::Plan;
  bool isPath = std::filesystem::exists(source) || source.find('/') != std::string::npos;
  Expected<ModelSpec> spec = isPath ? loadModelSpec(source, options) : loadPublishedModel(source);
  if (!spec)
    return refuse(spec.error().text());
  Checked total = totalParameters(*spec), active = activeParameters(*spec, false);
  Checked read = activeParameters(*spec, true), cache = cacheBytesPerToken(*spec, CacheFormat::Plain, 2);
  CheckpointSize published = checkpointSize(*spec, CheckpointFormat::Published, spec->mtpLayers > 0);
  CheckpointSize bf16 = checkpointSize(*spec, CheckpointFormat::Bf16, false);
  for (const Checked &number : {total, active, read, cache, published.bytes, bf16.bytes})
    if (!number.isValid())
      return refuse(source + ": has more parameters or bytes than 2^63");
  line("model", spec->name + " (" + spec->family + ")");
  line("layers",
       std::to_string(spec->layerCount()) + ", " + std::to_string(spec->moeLayers().size()) + " with experts");
  line("parameters", formatCount(total.value()));
  line("active, without input embedding", formatCount(active.value()));
  line("active, with input embedding", formatCount(read.value()));
  line("checkpoint as published", format(Bytes(published.bytes.value())));
  line("checkpoint in bf16", format(Bytes(bf16.bytes.value())));
  line("cache of a token in bf16", format(Bytes(cache.value())));
  return 0;
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

std::function<int()> k2c::declarePlan(CLI::App &command, const std::string &program) {
  auto flags = std::make_shared<PlanFlags>();
  command.footer("examples:\n  " + program + " kimi-k2\n  " + program +
                 " --query expert_hit_mean --inputs '{\"experts\":256,\"topk\":8,\"tokens\":32}'\n  " + program +
                 " --query total_params --inputs '{\"model\":\"kimi_k2\"}'\n  " + program +
                 " --query zero_memory --inputs @layout.json --quantity optimizer_bytes");
  command.add_option("SOURCE", flags->source, "a model of --models, a checkpoint folder or a config.json: its counts");
  CLI::Option *query = command.add_option("--query", flags->query, "answer one function of the planner");
  command.add_option("--inputs", flags->inputs, "its inputs: JSON, or @FILE")->needs(query)->capture_default_str();
  command.add_option("--quantity", flags->quantity, "a part of the answer")->needs(query);
  command.add_option("--compat", flags->compat, "conventions that the inputs leave open")
      ->check(CLI::IsMember({"paper", "seed", "exact"}))
      ->capture_default_str();
  command.add_flag("--parts", flags->parts, "every part of the answer")->needs(query);
  command.add_flag("--functions", flags->functions, "list the functions of --query");
  command.add_flag("--models", flags->models, "list the published models known by name");
  return [flags] {
    if (!flags->query.empty())
      return ask(*flags);
    if (flags->functions)
      return listFunctions();
    if (flags->models)
      return listModels();
    if (!flags->source.empty())
      return count(flags->source);
    return refuse("name a SOURCE, or ask with --query; --help shows examples");
  };
}
