//===- TrainPipeline.cpp - Time of a training layout's pipeline ---------------===//

#include "Trainer.h"

#include <algorithm>

using namespace k2c;
using namespace k2c::planner;

Expected<std::shared_ptr<const PipelineCache::Entry>> PipelineCache::get(const PipelineShape &shape) {
  const std::vector<int64_t> key = {int64_t(shape.kind), shape.pp, shape.microbatches, shape.chunks, shape.paired};
  auto found = entries.find(key);
  if (found != entries.end())
    return found->second;
  Expected<PipelineSchedule> schedule = makePipelineSchedule(shape);
  if (!schedule) {
    Error error = schedule.takeError();
    error.where = "schedule";
    return entries.emplace(key, Expected<std::shared_ptr<const Entry>>(error)).first->second;
  }
  Entry entry{std::move(*schedule), {}};
  // What lives at once follows from the order, whatever tasks last.
  Expected<PipelineTimeline> run = simulate(entry.schedule, PipelineDurations());
  if (!run)
    return run.takeError();
  for (int64_t stash : run->peakStash)
    entry.live.push_back(double(stash));
  return entries.emplace(key, std::make_shared<const Entry>(std::move(entry))).first->second;
}

Trainer::Trainer(const RequestModel &context, const ParallelLayout &layout, PipelineCache &cache)
    : context(context), train(context.request.workload.train), layout(layout), cache(cache), stages(context, layout) {
  edp = layout.tp * layout.cp * layout.dp / (layout.ep * layout.etp);
  for (int64_t rank = 0; rank < layout.pp; ++rank)
    shares.push_back(stages.shareOf(rank));
}

PipelineShape Trainer::shape(int64_t microbatches) const {
  PipelineShape shape;
  shape.kind = layout.schedule;
  shape.pp = layout.pp;
  shape.microbatches = microbatches;
  shape.chunks = layout.chunks;
  shape.paired = layout.overlap && layout.schedule == PipelineKind::Interleaved;
  shape.extraWarmup = shape.paired ? 1 : 0;
  return shape;
}

/// Activations stream out beside the backward that follows and in beside the forward before, both ways at once: what a
/// micro-batch's passes do not cover is waited for.
double Trainer::hostExposed(const StageTime &t) const {
  const double computing = t.forward.seconds + t.backward(), sending = 2 * t.linkSeconds;
  return std::max(0.0, t.hostSeconds - (layout.overlap ? std::max(computing, sending) : computing + sending));
}

/// Of the slowest stage, as the schedule counts: all chunks of a rank together. Without overlap transfers block.
PipelineDurations Trainer::durations() const {
  const StageTime &t = times[slowest];
  const double chunks = double(layout.chunks), waiting = hostExposed(t);
  PipelineDurations d;
  d.forward = chunks * (t.forward.seconds + t.linkSeconds + waiting / 2);
  d.inputGrad = chunks * (t.inputGrad.seconds + t.linkSeconds + waiting / 2);
  d.weightGrad = chunks * t.weightGrad.seconds;
  d.overlapped = d.forward + d.inputGrad + d.weightGrad;
  if (layout.overlap)
    d.overlapped = chunks * (std::max(t.forward.seconds + t.backward(), 2 * t.linkSeconds) + waiting);
  return d;
}

/// Few enough micro-batches to simulate often, with the remainder that their groups leave: all, or between four and six
/// times the ranks.
static int64_t shortened(int64_t microbatches, int64_t pp) {
  const int64_t period = 2 * pp;
  return microbatches < 8 * pp ? microbatches : 4 * pp + microbatches % period;
}

Status Trainer::makePrograms() {
  if (layout.pp == 1 && layout.schedule != PipelineKind::Interleaved) {
    live = {1};
    return Status::success();
  }
  // GPipe keeps all micro-batches alive, others as many as fill the pipeline.
  const bool keepsAll = layout.schedule == PipelineKind::GPipe;
  Expected<std::shared_ptr<const PipelineCache::Entry>> entry =
      cache.get(shape(keepsAll ? layout.microbatches : shortened(layout.microbatches, layout.pp)));
  if (!entry)
    return entry.takeError();
  live = (*entry)->live;
  return Status::success();
}

void Trainer::timeStages() {
  auto passes = [&](const StageTime &t) {
    return t.forward.seconds + t.backward() + 2 * t.linkSeconds + hostExposed(t);
  };
  for (size_t stage = times.size(); stage < stages.count(); ++stage) {
    times.push_back(stages.time(stage));
    if (passes(times[stage]) > passes(times[slowest]))
      slowest = stage;
  }
}

double Trainer::leastStepSeconds() {
  timeStages();
  const PipelineDurations d = durations();
  const double apart = d.forward + d.inputGrad + d.weightGrad,
               passes = layout.schedule == PipelineKind::DualPipeV ? 2 : 1;
  constexpr double rounding = 1 - 1e-9; // of sums in another order
  makespan = rounding * passes * double(layout.microbatches) * std::min(apart, d.overlapped.value_or(apart));
  return stepSeconds();
}

Status Trainer::runPipeline(bool quick) {
  timeStages();
  const PipelineDurations d = durations();
  if (layout.pp == 1 && layout.schedule != PipelineKind::Interleaved) {
    makespan = double(layout.microbatches) * (d.forward + d.inputGrad + d.weightGrad);
    return Status::success();
  }
  auto run = [&](int64_t microbatches) -> Expected<PipelineTimeline> {
    if (quick) {
      Expected<std::shared_ptr<const PipelineCache::Entry>> entry = cache.get(shape(microbatches));
      return entry ? simulate((*entry)->schedule, d) : Expected<PipelineTimeline>(entry.takeError());
    }
    Expected<PipelineSchedule> schedule = makePipelineSchedule(shape(microbatches));
    return schedule ? simulate(*schedule, d) : Expected<PipelineTimeline>(schedule.takeError());
  };
  const int64_t few = quick ? shortened(layout.microbatches, layout.pp) : layout.microbatches;
  Expected<PipelineTimeline> first = run(few);
  if (!first)
    return first.takeError();
  makespan = first->makespan;
  idle = *std::max_element(first->idle.begin(), first->idle.end());
  if (few < layout.microbatches) {
    Expected<PipelineTimeline> longer = run(few + 2 * layout.pp);
    if (!longer)
      return longer.takeError();
    makespan += (longer->makespan - first->makespan) * double(layout.microbatches - few) / double(2 * layout.pp);
  }
  timeline = std::move(*first);
  return Status::success();
}
