//===- EvaluateTrain.cpp - One training layout --------------------------------===//
//
// A step is: the pipeline's micro-batches (simulated with the durations of its slowest stage), the exchange of
// gradients and parameters between data-parallel ranks, the optimizer. Memory is (states + live micro-batches +
// buffers) times (1 + fragmentation), paper 002.
//
//===----------------------------------------------------------------------===//

#include "LargestLoad.h"
#include "TrainStep.h"

#include <algorithm>
#include <cmath>

using namespace k2c;
using namespace k2c::planner;

namespace {

class Trainer {
public:
  Trainer(const RequestModel &context, const ParallelLayout &layout)
      : context(context), train(context.request.workload.train), layout(layout), stages(context, layout) {
    edp = layout.tp * layout.cp * layout.dp / (layout.ep * layout.etp);
    for (size_t stage = 0; stage < stages.count(); ++stage) {
      times.push_back(stages.time(stage));
      const StageTime &t = times[stage];
      if (t.forward + t.linkSeconds > times[slowest].forward + times[slowest].linkSeconds)
        slowest = stage;
    }
  }

  Status runPipeline();
  std::vector<RankMemory> memory() const;
  ClusterPlan plan() const;

private:
  PipelineShape shape() const;
  PipelineDurations durations() const;
  StateMemory states(int64_t rank, const RankShare &share) const;
  RoutedBytes routed() const;
  double optimizerSeconds() const;
  LinkUse exchange() const;
  double stepSeconds() const { return makespan + optimizerSeconds() + context.links.seconds(exchange()); }
  void addSteps(ClusterPlan &plan) const;
  void addFigures(ClusterPlan &plan) const;

  const RequestModel &context;
  const TrainWorkload &train;
  const ParallelLayout layout;
  TrainStages stages;
  std::vector<StageTime> times;
  size_t slowest = 0;
  int64_t edp = 1;
  double makespan = 0, idle = 0;
  std::vector<double> live; ///< of each rank: micro-batches of one of its stages alive at once
  std::optional<PipelineTimeline> timeline;
};

PipelineShape Trainer::shape() const {
  PipelineShape shape;
  shape.kind = layout.schedule;
  shape.pp = layout.pp;
  shape.microbatches = layout.microbatches;
  shape.chunks = layout.chunks;
  shape.paired = layout.overlap && layout.schedule == PipelineKind::Interleaved;
  shape.extraWarmup = shape.paired ? 1 : 0;
  return shape;
}

/// Of the slowest stage, as the schedule counts: all chunks of a rank together. Without overlap transfers block.
PipelineDurations Trainer::durations() const {
  const StageTime &t = times[slowest];
  const double chunks = double(layout.chunks);
  PipelineDurations d;
  d.forward = chunks * (t.forward + t.linkSeconds);
  d.inputGrad = chunks * (t.inputGrad + t.linkSeconds);
  d.weightGrad = chunks * t.weightGrad;
  d.overlapped = d.forward + d.inputGrad + d.weightGrad;
  if (layout.overlap)
    d.overlapped = chunks * std::max(t.forward + t.inputGrad + t.weightGrad, 2 * t.linkSeconds);
  return d;
}

Status Trainer::runPipeline() {
  const PipelineDurations d = durations();
  const double each = d.forward + d.inputGrad + d.weightGrad;
  if (layout.pp == 1 && layout.schedule != PipelineKind::Interleaved) {
    makespan = double(layout.microbatches) * each;
    live = {1};
    return Status::success();
  }
  Expected<PipelineSchedule> schedule = makePipelineSchedule(shape());
  if (!schedule) {
    Error error = schedule.takeError();
    error.where = "schedule " + std::string(nameOf(layout.schedule)) + ": " + error.where;
    return error;
  }
  Expected<PipelineTimeline> run = simulate(*schedule, d);
  if (!run)
    return run.takeError();
  makespan = run->makespan;
  idle = *std::max_element(run->idle.begin(), run->idle.end());
  for (int64_t stash : run->peakStash)
    live.push_back(double(stash));
  timeline = std::move(*run);
  return Status::success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

StateMemory Trainer::states(int64_t rank, const RankShare &share) const {
  auto of = [&](const RankShare &s, Zero zero) {
    DeviceParameters device;
    device.routed = int64_t(std::llround(at(s.parameters, Piece::Experts)));
    device.norms = int64_t(std::llround(sum(s.parameters))) - device.routed.value();
    return stateMemory(device, zero, train.bytes, layout.dp * layout.cp, edp, /*paperGroups=*/false);
  };
  StateMemory memory = of(share, layout.zero);
  // Two ranks run each stage of DualPipe; sharded optimizer states are held once by both.
  if (layout.schedule == PipelineKind::DualPipe && layout.zero != Zero::None)
    memory.optimizer /= 2;
  (void)rank;
  return memory;
}

/// Buffers of one layer's dispatch and combine, and under worst-case or measured routing the rows that the mean does
/// not count.
RoutedBytes Trainer::routed() const {
  const ModelSpec &spec = context.request.spec;
  if (!spec.moe)
    return {};
  RoutedBatch batch;
  batch.experts = spec.moe->experts;
  batch.topK = spec.moe->topK;
  batch.ranks = layout.ep;
  batch.slots = slotsPerRank(spec, layout) * layout.ep;
  batch.tokensPerRank = int64_t(std::ceil(stages.tokens() / double(layout.tp) * double(layout.etp)));
  batch.alignment = context.request.workload.alignment;
  RowBytes bytes;
  bytes.dispatch = layout.ep > 1 ? double(spec.hidden) * context.rates.dispatchBytes : 0;
  bytes.combine = layout.ep > 1 ? double(spec.hidden) * context.rates.combineBytes : 0;
  bytes.compute =
      (3 * double(spec.moe->inter) / double(layout.etp) + double(spec.hidden)) * context.rates.activationBytes;
  bytes.secondBuffer = layout.overlap;
  const Routing routing = context.request.workload.peakRouting.value_or(Routing::Mean);
  const ExpertLoad &load = context.request.workload.expertLoad;
  RoutedRows peak =
      routing == Routing::Measured ? measuredRows(batch, load, placementOf(load, layout)) : routedRows(batch, routing);
  return routedBytes(peak, bytes);
}

std::vector<RankMemory> Trainer::memory() const {
  std::vector<RankMemory> classes;
  const double factor = 1 + train.fragmentation;
  const int64_t each = layout.tp * layout.cp * layout.dp;
  const RoutedBytes buffers = routed();
  for (int64_t rank = 0; rank < layout.pp; ++rank) {
    const RankShare share = stages.shareOf(rank);
    const StateMemory held = states(rank, share);
    double kept = 0;
    for (size_t stage : stages.ofRank(rank))
      kept = std::max(kept, stages.activations(stage));
    RankMemory memory;
    memory.stage = rank;
    memory.count = each;
    memory.ranks =
        each == 1 ? std::to_string(rank) : std::to_string(rank * each) + "-" + std::to_string((rank + 1) * each - 1);
    memory.parameters = int64_t(sum(share.parameters));
    memory.capacity = context.request.topology.device.memory.value;
    double before = 0;
    auto add = [&](const char *name, double bytes) {
      before += bytes;
      if (bytes > 0)
        memory.parts.push_back({name, Bytes(int64_t(std::ceil(bytes)))});
    };
    add("parameters", held.parameters);
    add("gradients", held.gradients);
    add("optimizer", held.optimizer);
    add("activations", kept * live[size_t(rank)]);
    const std::vector<size_t> own = stages.ofRank(rank);
    if (std::find(own.begin(), own.end(), stages.count() - 1) != own.end())
      add("logits", stages.tokens() * double(context.request.spec.vocab) * 4 / double(layout.tp));
    if (share.moeLayers > 0) {
      add("dispatch and combine", buffers.dispatch + buffers.combine);
      add("second communication buffer", buffers.second);
      add("rows of experts", buffers.compute - buffers.padding);
      add("alignment padding", buffers.padding);
    }
    add("buffers", train.buffers);
    add("fragmentation", before * (factor - 1));
    classes.push_back(std::move(memory));
  }
  return classes;
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

double Trainer::optimizerSeconds() const {
  double longest = 0;
  for (int64_t rank = 0; rank < layout.pp; ++rank) {
    const StateMemory held = states(rank, stages.shareOf(rank));
    // Optimizer states are read and written, gradients read, parameters written.
    const double sharded = held.optimizer / std::max(1e-9, train.bytes.optimizer);
    longest = std::max(longest, (2 * held.optimizer + sharded * (train.bytes.gradient + train.bytes.weight)) /
                                    context.rates.memory);
  }
  return longest;
}

/// Gradients summed and parameters collected over the ranks that hold the same, once a step.
LinkUse Trainer::exchange() const {
  LinkUse most(context.links.topology.tiers.size());
  for (int64_t rank = 0; rank < layout.pp; ++rank) {
    const RankShare share = stages.shareOf(rank);
    const double experts = at(share.parameters, Piece::Experts), rest = sum(share.parameters) - experts;
    const double bytes = train.bytes.gradient + (layout.zero == Zero::None ? train.bytes.gradient : train.bytes.weight);
    LinkUse use = context.links.gather({double(layout.dp * layout.cp), double(layout.tp)}, rest * bytes);
    use += context.links.gather({double(edp), double(layout.ep * layout.etp)}, experts * bytes);
    if (context.links.seconds(use) > context.links.seconds(most))
      most = use;
  }
  return most;
}

void Trainer::addSteps(ClusterPlan &plan) const {
  const Topology &topology = context.request.topology;
  const StageTime &t = times[slowest];
  const double m =
      double(layout.microbatches) * double(layout.chunks) * (layout.schedule == PipelineKind::DualPipeV ? 2 : 1);
  LinkUse all(topology.tiers.size());
  auto compute = [&](const char *phase, const char *name, double seconds, double flops) {
    plan.steps.push_back({phase, name, Seconds(m * seconds), Flops(m * flops), 0, 0, "", Bound::Compute});
  };
  auto link = [&](const char *phase, const char *name, const LinkUse &use, double times) {
    const double seconds = context.links.seconds(use) * times;
    if (seconds <= 0)
      return;
    int tier = context.links.slowest(use);
    plan.steps.push_back({phase, name, Seconds(seconds), Flops(0), 0, use.total() * times,
                          tier < 0 ? "" : topology.tiers[size_t(tier)].name,
                          use.latency > context.links.transfer(use) ? Bound::Latency : Bound::Link});
    all += use * times;
  };
  compute("forward", "linears, attention", t.forward, t.forwardFlops);
  compute("backward", "gradients of inputs", t.inputGrad, t.forwardFlops + t.recomputeFlops);
  compute("backward", "gradients of weights", t.weightGrad, t.forwardFlops);
  for (const char *phase : {"forward", "backward"}) {
    link(phase, "dispatch, combine", t.dispatch, m);
    link(phase, "tensor parallel", t.tensor, m);
    link(phase, "pipeline", t.pipeline, m);
  }
  if (idle > 0)
    plan.steps.push_back({"pipeline", "idle", Seconds(idle), Flops(0), 0, 0, "", Bound::Latency});
  link("optimizer", "gradients, parameters", exchange(), 1);
  plan.steps.push_back({"optimizer", "update", Seconds(optimizerSeconds()), Flops(0),
                        optimizerSeconds() * context.rates.memory, 0, "", Bound::Memory});
  for (size_t tier = 0; tier < all.bytes.size(); ++tier) {
    const Tier &of = topology.tiers[tier];
    plan.traffic.push_back(
        {"step", of.name, of.link, all.bytes[tier], of.effective(), Seconds(all.bytes[tier] / of.effective().value)});
  }
}

void Trainer::addFigures(ClusterPlan &plan) const {
  const double devices = double(layout.devices()), step = stepSeconds();
  const double tokens = double(layout.dp * layout.microbatches * layout.microbatchSize) * double(train.sequence);
  double forward = 0;
  for (const StageTime &t : times)
    forward += t.forwardFlops * double(layout.tp * layout.cp * layout.dp) * double(layout.microbatches);
  const double peak = context.request.topology.device.whole(context.request.topology.device.bf16.value).value;
  auto add = [&](const char *key, const char *label, double value, const char *unit) {
    plan.figures.push_back({key, label, value, unit});
  };
  add("tokens_per_s", "tokens/s", tokens / step, "tokens/s");
  add("tokens_per_s_per_device", "tokens/s a device", tokens / step / devices, "tokens/s");
  add("step_s", "a step", step, "s");
  add("tokens_per_step", "tokens of a step", tokens, "tokens");
  add("mfu", "share of the peak rate in use", 3 * forward / (step * devices * peak), "");
  add("model_flop", "FLOP of a step", 3 * forward, "FLOP");
  add("pipeline_s", "pipeline", makespan, "s");
  add("bubble", "share of the pipeline that a rank is idle", makespan > 0 ? idle / makespan : 0, "");
  add("live_microbatches", "stage passes alive at once", *std::max_element(live.begin(), live.end()), "");
  if (context.request.workload.dollarsPerDeviceHour) {
    const double hour = *context.request.workload.dollarsPerDeviceHour * devices;
    add("dollars_per_hour", "dollars an hour", hour, "$");
    add("dollars_per_million_tokens", "dollars for a million tokens", hour / (tokens / step * 3600) * 1e6, "$");
  }
}

ClusterPlan Trainer::plan() const {
  ClusterPlan plan = describePlan(context, layout);
  plan.memory = memory();
  addSteps(plan);
  addFigures(plan);
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

/// Micro-batches of the workload's batch.
Expected<ParallelLayout> withMicrobatches(const TrainWorkload &train, ParallelLayout layout) {
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

} // namespace

Expected<ClusterPlan> planner::evaluateTrain(const RequestModel &context, const ParallelLayout &asked) {
  if (Status status = checkLayout(context.request, asked); !status)
    return status.takeError();
  Expected<ParallelLayout> layout = withMicrobatches(context.request.workload.train, asked);
  if (!layout)
    return layout.takeError();
  Trainer trainer(context, *layout);
  if (Status status = trainer.runPipeline(); !status)
    return status.takeError();
  ClusterPlan plan = trainer.plan();
  if (const RankMemory &full = plan.fullest(); !full.fits() && context.request.mustFit)
    return Error{"memory",
                 "ranks " + full.ranks + " need " + format(full.total()) + ", a device has " + format(full.capacity),
                 "use more devices, recompute=full, zero=os+g, or a smaller microbatch"};
  return plan;
}
