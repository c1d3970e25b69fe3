//===- Predict.cpp - The step time of a bundle ----------------------------===//
#include "k2c/Pipelines/Predict.h"

#include "Stages.h"
#include "base/Utf8.h"
#include "k2c/Kernels/Cpu.h"

using nlohmann::json;

namespace k2c {

namespace {

/// The options that a bundle was compiled with.
Expected<CompileOptions> optionsOf(const std::string &path, const json &manifest, const std::string &bundle) {
  CompileOptions options;
  auto text = [&](const char *pointer, std::string &value) {
    json::json_pointer at(pointer);
    if (!manifest.contains(at) || !manifest[at].is_string())
      return Status(damaged(path, std::string("'") + pointer + "' must be a text"));
    value = manifest[at].get<std::string>();
    return Status();
  };
  auto number = [&](const char *pointer, int64_t &value) {
    json::json_pointer at(pointer);
    if (!manifest.contains(at) || !manifest[at].is_number_integer())
      return Status(damaged(path, std::string("'") + pointer + "' must be a whole number"));
    value = manifest[at].get<int64_t>();
    return Status();
  };
  int64_t context = 0, cacheWidth = 0;
  for (Status status : {text("/numerics/compute", options.compute), text("/numerics/mla", options.mla),
                        text("/target/cpu", options.target), number("/limits/step_tokens", options.stepTokens),
                        number("/limits/max_sequences", options.maxSequences), number("/limits/max_context", context),
                        number("/cache/0/bytes_per_element", cacheWidth)})
    if (!status)
      return status.takeError();
  options.source = bundle + "/config.json";
  options.maxContext = context;
  options.cache = cacheWidth == byteWidth(DType::F32) ? "f32" : "bf16";
  options.ignoreKeys = ignoredKeys(manifest);
  return options;
}

/// The kernels of `program` are those of the manifest.
Status checkSameKernels(const std::string &path, const json &manifest, const std::vector<ProgramKernel> &program) {
  const json kernels = manifest.value("kernels", json::array());
  bool same = kernels.is_array() && kernels.size() == program.size();
  for (size_t i = 0; same && i < program.size(); ++i)
    same = kernels[i].is_object() && kernels[i].value("hash", json()) == "k2c_" + kernelHash(program[i].desc);
  if (!same)
    return Error{path, "its kernels are not those that this k2c compiles from its config.json", "compile it again"};
  return {};
}

Expected<const TeamRates *> teamOf(const Topology &topology, const PredictOptions &options) {
  const std::optional<Calibration> &measured = topology.device.measured;
  if (!measured)
    return Error{"topology '" + shortened(options.topology) + "'", "has no measured rates",
                 "name a file that k2c calibrate wrote"};
  int64_t workers = options.workers;
  for (const TeamRates &team : measured->teams)
    if (options.workers == 0)
      workers = std::max(workers, team.workers);
  if (const TeamRates *team = measured->team(workers))
    return team;
  return Error{"--threads", std::to_string(workers) + " workers were not measured in " + options.topology,
               "run k2c calibrate --threads " + std::to_string(workers)};
}

Status checkShape(const StepShape &shape, const Limits &limits) {
  struct {
    const char *option;
    int64_t value, least, most;
  } bounds[] = {{"--batch", shape.sequences, 1, limits.maxSequences},
                {"--tokens", shape.tokens, 1, limits.stepTokens / shape.sequences},
                {"--context", shape.context, 0, limits.maxContext - shape.tokens}};
  for (const auto &bound : bounds)
    if (bound.value < bound.least || bound.value > bound.most)
      return Error{bound.option,
                   "is " + std::to_string(bound.value) + ", the bundle's limits allow " + std::to_string(bound.least) +
                       " to " + std::to_string(bound.most),
                   ""};
  return {};
}

Status checkExperts(double hit, const std::optional<MoeSpec> &moe) {
  if (hit == 0)
    return {};
  if (!moe)
    return Error{"--experts-hit", "the model has no experts", "leave it out"};
  if (hit < double(moe->topK) || hit > double(moe->experts))
    return Error{"--experts-hit",
                 "is " + json(hit).dump() + "; a token goes to " + std::to_string(moe->topK) + " of " +
                     std::to_string(moe->experts) + " experts",
                 "take the mean over layers of the experts that `run routes` shows"};
  return {};
}

} // namespace

Expected<StepTime> predictStep(const PredictOptions &options) {
  Expected<JsonDocument> manifest = readManifest(options.bundle);
  if (!manifest)
    return manifest.takeError();
  Expected<Topology> topology = loadTopology(options.topology);
  if (!topology)
    return topology.takeError();
  Expected<const TeamRates *> team = teamOf(*topology, options);
  if (!team)
    return team.takeError();
  std::string path = options.bundle + "/manifest.json";
  Expected<CompileOptions> compile = optionsOf(path, manifest->root(), options.bundle);
  if (!compile)
    return compile.takeError();
  Expected<Inputs> inputs = readInputs(*compile);
  if (!inputs)
    return inputs.takeError();
  if (Status status = checkShape(options.shape, inputs->limits); !status)
    return status.takeError();
  if (Status status = checkExperts(options.expertsHit, inputs->spec.moe); !status)
    return status.takeError();
  CompilePipeline pipeline(*inputs, *compile);
  if (Status status = pipeline.runTo(Form::Scheduled); !status)
    return status.takeError();
  if (Status status = checkSameKernels(path, manifest->root(), pipeline.launches()); !status)
    return status.takeError();
  StepOptions step = stepOptions(inputs->spec, pipeline.plan(), options.shape);
  step.expertsHit = options.expertsHit;
  return timeStep(pipeline.launches(), **team, topology->device.measured->links, step);
}

} // namespace k2c
