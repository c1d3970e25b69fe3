//===- Predict.cpp - The step time of a bundle ----------------------------===//
#include "k2c/Pipelines/Predict.h"

#include "Recompile.h"
#include "base/Utf8.h"

using nlohmann::json;

namespace k2c {

namespace {

Expected<const TeamRates *> teamOf(const Topology &topology, const PredictOptions &options) {
  if (topology.device.kind != DeviceKind::Cpu)
    return Error{"topology '" + shortened(options.topology) + "'",
                 "has a GPU, and rates by kernel are of processors alone in this build",
                 "k2c explain of the bundle says what bounds each kernel of a step"};
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
  Expected<RecordedCompile> recorded = readRecord(options.bundle, options.checkpoint);
  if (!recorded)
    return recorded.takeError();
  Expected<Topology> topology = loadTopology(options.topology);
  if (!topology)
    return topology.takeError();
  Expected<const TeamRates *> team = teamOf(*topology, options);
  if (!team)
    return team.takeError();
  const Inputs &inputs = recorded->inputs;
  if (Status status = checkShape(options.shape, inputs.limits); !status)
    return status.takeError();
  if (Status status = checkExperts(options.expertsHit, inputs.spec.moe); !status)
    return status.takeError();
  CompilePipeline pipeline(inputs, recorded->options);
  if (Status status = compileAgain(pipeline, *recorded); !status)
    return status.takeError();
  StepOptions step = stepOptions(inputs.spec, pipeline.plan(), options.shape);
  step.expertsHit = options.expertsHit;
  return timeStep(pipeline.launches(), **team, topology->device.measured->links, step);
}

} // namespace k2c
