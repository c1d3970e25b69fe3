//===- EvaluateTrain.cpp - One training layout --------------------------------===//
//
// A step is: the pipeline's micro-batches (simulated with the durations of every stage), the exchange of
// gradients and parameters between data-parallel ranks, the optimizer.
//
//===----------------------------------------------------------------------===//

#include "TrainingModel.h"
#include "base/Utf8.h"

#include <algorithm>

using namespace k2c;
using namespace k2c::planner;

double TrainingModel::stepSeconds() const { return makespan + exchanges().exposed() + update().longest(); }

void TrainingModel::addUpdate(ClusterPlan &plan) const {
  const Update of = update();
  if (!offloads(layout.offload, Offload::Optimizer)) {
    plan.steps.push_back({"optimizer", "update", Seconds(of.seconds), Flops(0), of.bytes, 0, "", Bound::Memory});
    return;
  }
  bool shown = false; // the longest is, the others are beside it
  auto add = [&](const char *name, double seconds, double memory, double link, Bound bound) {
    const bool isLongest = !shown && seconds == of.longest();
    shown |= isLongest;
    if (seconds > 0)
      plan.steps.push_back({"optimizer", name, Seconds(seconds), Flops(0), memory, link, "host", bound,
                            Seconds(isLongest ? 0 : seconds)});
  };
  add("gradients to host", of.gradientSeconds, 0, of.gradients, Bound::Link);
  add("update on host", of.seconds, of.bytes, 0, Bound::Memory);
  add("parameters back", of.parameterSeconds, 0, of.parameters, Bound::Link);
  if (!context.request.topology.host->memoryBandwidth)
    plan.notes.push_back("topology '" + shortened(context.request.topology.name) +
                         "' does not say how fast its hosts' memory is (host: memory_bandwidth); their update is taken "
                         "to be no slower than the link");
}

void TrainingModel::addSteps(ClusterPlan &plan) const {
  const Topology &topology = context.request.topology;
  const StageTime &t = work;
  const double m = double(layout.microbatches);
  LinkUse all;
  auto pass = [&](const char *phase, const std::string &name, const PassTime &of) {
    if (of.flops > 0)
      plan.steps.push_back({phase, name, Seconds(m * of.seconds), Flops(m * of.flops), m * of.bytes, 0, "", of.bound});
  };
  auto link = [&](const char *phase, const char *name, const LinkUse &use, double hidden) {
    const double seconds = context.links.seconds(use);
    if (seconds <= 0)
      return;
    plan.steps.push_back(linkPart(context.links, phase, name, use, seconds, hidden));
    all += use;
  };
  for (size_t i = 0; i < trainModuleCount; ++i)
    pass("forward", nameOf(TrainModule(i)), t.modules[i].forward);
  for (size_t i = 0; i < trainModuleCount; ++i) {
    pass("backward", nameOf(TrainModule(i)) + std::string(": inputs"), t.modules[i].inputGrad);
    pass("backward", nameOf(TrainModule(i)) + std::string(": weights"), t.modules[i].weightGrad);
  }
  for (const char *phase : {"forward", "backward"}) {
    const size_t pass = std::string(phase) == "backward";
    link(phase, "dispatch, combine", t.dispatch * m, 0);
    link(phase, "tensor parallel", t.tensor * m, 0);
    link(phase, "context parallel", t.ring[pass] * m, m * t.ringHidden[pass]);
    link(phase, "pipeline", t.pipeline * m, 0);
  }
  if (t.hostSeconds > 0) {
    const Seconds seconds(m * t.hostSeconds), hidden(m * (t.hostSeconds - t.hostExposed / 2));
    for (auto [phase, name] : {std::pair{"forward", "activations to host"}, std::pair{"backward", "activations back"}})
      plan.steps.push_back({phase, name, seconds, Flops(0), 0, m * t.hostBytes, "host", Bound::Link, hidden});
  }
  if (idle > 0)
    plan.steps.push_back({"pipeline", "idle", Seconds(idle), Flops(0), 0, 0, "", Bound::Latency});
  const Exchanges exchanged = exchanges();
  link("exchange", "gradients", exchanged.gradients.use, exchanged.gradients.hidden);
  link("exchange", "parameters", exchanged.parameters.use, exchanged.parameters.hidden);
  addUpdate(plan);
  if (layout.offload != Offload::None) {
    const Host &host = *topology.host;
    const double bytes = m * t.hostBytes + update().parameters;
    plan.traffic.push_back(
        {"step", "host", host.link, bytes, host.effective(), Seconds(bytes / host.effective().value)});
  }
  addTraffic(plan, "step", all, topology);
}

void TrainingModel::addFigures(ClusterPlan &plan) const {
  const double devices = double(layout.devices()), step = stepSeconds();
  const double tokens = tokensOfStep();
  double forward = 0;
  for (size_t stage = 0; stage < stages.count(); ++stage)
    forward += timeOf(stage).forward.flops * double(layout.tp * layout.cp * layout.dp) * double(layout.microbatches);
  const double peak = context.request.topology.device.whole(context.request.topology.device.bf16.value).value;
  auto add = figuresOf(plan);
  add("tokens_per_s", "tokens/s", tokens / step, "tokens/s");
  add("tokens_per_s_per_device", "tokens/s per " + wordOf(context.request.topology.device.kind),
      tokens / step / devices, "tokens/s");
  add("step_s", "step time", step, "s");
  add("tokens_per_step", "tokens per step", tokens, "tokens");
  add("mfu", "MFU", 3 * forward / (step * devices * peak), "");
  add("model_flop", "model FLOP per step", 3 * forward, "FLOP");
  add("pipeline_s", "pipeline", makespan, "s");
  add("bubble", "bubble, mean of the ranks", makespan > 0 ? meanIdle / makespan : 0, "");
  add("live_microbatches", "stage passes alive at once", maxPasses(), "passes");
  if (context.request.spec.moe && layout.ep > 1)
    add("worst_routing_bytes", "memory if all tokens choose one rank's experts", maxBytes(Routing::Worst), "B");
  const std::optional<double> price = context.request.workload.dollarsPerDeviceHour;
  if (price) {
    const double hour = *price * devices;
    add("dollars_per_hour", "$ per hour", hour, "$");
    add("dollars_per_million_tokens", "$ per million tokens", hour / (tokens / step * 3600) * 1e6, "$");
  }
  if (train.totalTokens) {
    const double hours = *train.totalTokens / tokens * step / 3600;
    add("total_days", "days for all tokens of the training", hours / 24, "days");
    add("total_device_hours", "device-hours for them", hours * devices, "hours");
    if (price)
      add("total_dollars", "dollars for them", *price * hours * devices, "$");
  }
}

ClusterPlan TrainingModel::plan() const {
  ClusterPlan plan = describePlan(context, layout);
  plan.memory = memory();
  if (layout.offload != Offload::None)
    plan.host = HostMemory{wholeBytes(hostBytes()), context.request.topology.host->memory.value};
  if (layout.overlap)
    plan.overlapped = {"forward", "backward"};
  addSteps(plan);
  addFigures(plan);
  if (layout.zero >= Zero::OsG && layout.microbatches > 1)
    plan.notes.push_back("zero=" + std::string(nameOf(layout.zero)) + " sums gradients with each of " +
                         std::to_string(layout.microbatches) +
                         " micro-batches, as DeepSpeed does (which refuses it with pp > 1); zero=os sums them once");
  if (!context.request.withTimeline || !timeline)
    return plan;
  for (size_t rank = 0; rank < timeline->tasks.size(); ++rank)
    for (const PipelineTaskTime &task : timeline->tasks[rank]) {
      PipelineSpan span{int32_t(rank), task.action.task, std::nullopt, Seconds(task.begin), Seconds(task.end)};
      if (task.action.kind == PipelineAction::Kind::Pair)
        span.partner = task.action.partner;
      plan.timeline.push_back(span);
    }
  return plan;
}

Expected<ParallelLayout> planner::withMicrobatches(const TrainWorkload &train, ParallelLayout layout) {
  if (layout.microbatches > 0)
    return layout;
  const int64_t each = layout.dp * layout.microbatchSize, sequences = train.batchTokens / train.sequence;
  if (sequences < each || sequences % each)
    return Error{"dp",
                 "a batch of " + std::to_string(sequences) + " sequences of " + std::to_string(train.sequence) +
                     " tokens does not divide into dp " + std::to_string(layout.dp) + " x microbatch " +
                     std::to_string(layout.microbatchSize),
                 "choose divisors of " + std::to_string(sequences) + ", or another batch_tokens"};
  layout.microbatches = sequences / each;
  return layout;
}

namespace {

Error tooLarge(const RankMemory &full) {
  return {"memory", "ranks " + full.ranks + " need " + format(full.total()) + ", a device has " + format(full.capacity),
          "use more devices, recompute=full, offload=activations or optimizer, zero=os+g, or a smaller microbatch"};
}

Error hostTooSmall(Bytes needed, Bytes capacity) {
  return {"offload", "the fullest node's host holds " + format(needed) + " and has " + format(capacity),
          "recompute more activations, use a smaller microbatch, zero=os or more data-parallel ranks"};
}

} // namespace

Expected<ClusterPlan> planner::evaluateTrain(const RequestModel &context, const ParallelLayout &asked) {
  if (Status status = checkLayout(context.request, asked); !status)
    return status.takeError();
  Expected<ParallelLayout> layout = withMicrobatches(context.request.workload.train, asked);
  if (!layout)
    return layout.takeError();
  PipelineCache cache;
  TrainingModel trainer(context, *layout, cache);
  if (Status status = trainer.makePrograms(); !status)
    return status.takeError();
  if (Status status = trainer.runPipeline(/*quick=*/false); !status)
    return status.takeError();
  ClusterPlan plan = trainer.plan();
  if (const RankMemory &full = plan.fullest(); !full.fits() && context.request.mustFit)
    return tooLarge(full);
  if (plan.host && !plan.host->fits() && context.request.mustFit)
    return hostTooSmall(plan.host->bytes, plan.host->capacity);
  return plan;
}

Expected<TrainScore> planner::scoreTrain(const RequestModel &context, const ParallelLayout &asked, PipelineCache &cache,
                                         bool simulates) {
  if (Status status = checkLayout(context.request, asked); !status)
    return status.takeError();
  Expected<ParallelLayout> layout = withMicrobatches(context.request.workload.train, asked);
  if (!layout)
    return layout.takeError();
  TrainingModel trainer(context, *layout, cache);
  if (Status status = trainer.makePrograms(); !status)
    return status.takeError();
  TrainScore score{*layout, 0, 0, trainer.maxBytes()};
  const Bytes capacity = context.request.topology.device.memory.value;
  if (score.maxBytes > double(capacity.value))
    return Error{"memory",
                 "the fullest rank needs " + format(wholeBytes(score.maxBytes)) + ", a device has " + format(capacity),
                 ""};
  if (layout->offload != Offload::None)
    if (const Bytes held = wholeBytes(trainer.hostBytes()), has = context.request.topology.host->memory.value;
        has < held)
      return hostTooSmall(held, has);
  if (simulates)
    if (Status status = trainer.runPipeline(/*quick=*/true); !status)
      return status.takeError();
  score.stepSeconds = simulates ? trainer.stepSeconds() : trainer.minStepSeconds();
  score.tokensPerSecond = trainer.tokensOfStep() / score.stepSeconds;
  return score;
}

std::optional<double> planner::trainingBytes(const RequestModel &context, const ParallelLayout &asked,
                                             PipelineCache &cache) {
  if (!checkLayout(context.request, asked))
    return std::nullopt;
  Expected<ParallelLayout> layout = withMicrobatches(context.request.workload.train, asked);
  if (!layout)
    return std::nullopt;
  TrainingModel trainer(context, *layout, cache);
  return trainer.makePrograms() ? std::optional(trainer.maxBytes()) : std::nullopt;
}
