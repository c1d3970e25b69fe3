//===- CheckLayout.cpp - Whether a model divides into a layout ----------------===//
//
// A layout is right when its ways of dividing the model come out even, and when the devices exist. The order of the
// checks matters: first every field is brought into a range, so that products of two of them cannot overflow; products
// of more are Checked. Then devices, attention, experts, and what only training or serving knows.
//
//   heads % tp, dense and shared widths % tp        tensor parallelism divides heads and columns
//   tp % key heads or key heads % tp                fewer key heads than ranks: they are replicated
//   (tp x cp x dp) % (ep x etp)                     experts are spread over the ranks of one stage
//
// An error is at the key of the layout to change, with both numbers and, where there is one, the nearest right value.
// With separate pools each is checked by itself, its keys prefixed with "prefill.", and then both together for
// devices. Of a pool that is planned alone, what the workload asks of the other one is refused: its plan could not say
// whether it holds.
//
//===----------------------------------------------------------------------===//

#include "Space.h"
#include "StageSplit.h"
#include "TrainStep.h"
#include "base/Utf8.h"
#include "k2c/Model/Layers.h"

using namespace k2c;
using namespace k2c::planner;

namespace {

Error indivisible(const char *key, int64_t ways, const std::string &what, int64_t size) {
  return {key, std::to_string(ways) + " does not divide " + what + ", " + std::to_string(size),
          "choose a divisor of " + std::to_string(size)};
}

Status checkRanges(const ParallelLayout &layout) {
  constexpr int64_t most = 1 << 20;
  for (auto [key, value] : {std::pair{"tp", layout.tp}, std::pair{"ep", layout.ep}, std::pair{"etp", layout.etp},
                            std::pair{"pp", layout.pp}, std::pair{"dp", layout.dp}, std::pair{"cp", layout.cp},
                            std::pair{"replicas", layout.replicas}, std::pair{"vocab", layout.vocab},
                            std::pair{"chunks", layout.chunks}, std::pair{"microbatch", layout.microbatchSize}})
    if (value < 1 || value > most)
      return Error{key, "is " + std::to_string(value) + ", must be 1 to " + std::to_string(most), ""};
  for (auto [key, value] : {std::pair{"redundant", layout.redundantExperts}, std::pair{"step", layout.stepTokens},
                            std::pair{"microbatches", layout.microbatches}})
    if (value < 0 || value > most)
      return Error{key, "is " + std::to_string(value) + ", must be 0 to " + std::to_string(most), ""};
  return Status::success();
}

/// Products stay below 2^63 only factor by factor. Of one pool.
Status checkDevices(const Topology &topology, const ParallelLayout &layout) {
  Checked devices = Checked(layout.tp) * layout.cp * layout.dp * layout.pp * layout.replicas;
  if (!devices.isValid() || devices.value() > topology.ranks())
    return Error{"layout",
                 "tp " + std::to_string(layout.tp) + " x cp " + std::to_string(layout.cp) + " x dp " +
                     std::to_string(layout.dp) + " x pp " + std::to_string(layout.pp) + " x replicas " +
                     std::to_string(layout.replicas) + " needs " +
                     (devices.isValid() ? formatCount(devices.value()) : "more than 2^63") + " devices, topology '" +
                     topology.name + "' has " + formatCount(topology.ranks()),
                 "lower one of them, or choose a larger topology"};
  return Status::success();
}

Status checkAttention(const ModelSpec &spec, const ParallelLayout &layout) {
  for (const auto &[name, attention] : spec.attentions) {
    const AttentionSizes sizes = attentionSizes(attention);
    if (sizes.heads % layout.tp)
      return indivisible("tp", layout.tp, "the attention heads", sizes.heads);
    if (sizes.keyHeads % layout.tp && layout.tp % sizes.keyHeads)
      return indivisible("tp", layout.tp, "the key heads (nor is it a multiple of them)", sizes.keyHeads);
  }
  if (spec.mlp && spec.mlp->inter % layout.tp)
    return indivisible("tp", layout.tp, "the width of a dense layer", spec.mlp->inter);
  if (spec.moe && spec.moe->sharedInter % layout.tp)
    return indivisible("tp", layout.tp, "the width of the shared expert", spec.moe->sharedInter);
  return Status::success();
}

Status checkExperts(const PlanRequest &request, const ParallelLayout &layout) {
  const ModelSpec &spec = request.spec;
  if (!spec.moe) {
    for (auto [key, value] : {std::pair{"ep", layout.ep}, std::pair{"etp", layout.etp}})
      if (value > 1)
        return Error{key, "is " + std::to_string(value) + ", but model '" + shortened(spec.name) + "' has no experts",
                     "leave it out"};
    return Status::success();
  }
  const int64_t ranks = layout.tp * layout.cp * layout.dp, group = layout.ep * layout.etp;
  if (spec.moe->inter % layout.etp)
    return indivisible("etp", layout.etp, "the width of an expert", spec.moe->inter);
  if (layout.ep > spec.moe->experts + layout.redundantExperts)
    return Error{"ep",
                 std::to_string(layout.ep) + " ranks for " +
                     std::to_string(spec.moe->experts + layout.redundantExperts) + " expert slots",
                 "lower ep, or add redundant=" + std::to_string(layout.ep - spec.moe->experts)};
  if (const int64_t slots = spec.moe->experts + layout.redundantExperts; layout.redundantExperts && slots % layout.ep)
    return Error{"redundant",
                 std::to_string(layout.redundantExperts) + " makes " + std::to_string(slots) +
                     " expert slots, which ep " + std::to_string(layout.ep) + " does not divide",
                 "give redundant=" + std::to_string(layout.redundantExperts + layout.ep - slots % layout.ep)};
  if (ranks % group)
    return Error{"ep",
                 "ep " + std::to_string(layout.ep) + " x etp " + std::to_string(layout.etp) +
                     " does not divide the ranks of a stage, tp x cp x dp = " + std::to_string(ranks),
                 "choose a divisor of " + std::to_string(ranks)};
  return Status::success();
}

Status checkTraining(const PlanRequest &request, const ParallelLayout &layout) {
  const ModelSpec &spec = request.spec;
  const bool isPublished = layout.recompute >= RecomputeSet::DeepSeekV3 && layout.recompute != RecomputeSet::Layer;
  const RecomputeSet left = planner::recomputedOf(spec, layout.recompute);
  const std::string others = left == RecomputeSet::None ? "" : nameOf(left) + std::string(", ");
  if (isPublished && left != layout.recompute)
    return Error{"recompute",
                 std::string(nameOf(layout.recompute)) +
                     " is a set of tensors of latent attention and experts; model '" + shortened(spec.name) +
                     "' lacks one of them",
                 "use none, " + others + "full"};
  if (left != layout.recompute)
    return Error{"recompute", "mla_up_proj is of latent attention, and model '" + shortened(spec.name) + "' has none",
                 "use none, " + others + "full"};
  if (layout.sp && layout.tp == 1)
    return Error{"sp", "splits tokens over the tp ranks, and tp is 1", "leave sp out or raise tp"};
  if (layout.redundantExperts)
    return Error{"redundant", "experts have no replicas in training", "leave it out"};
  if (layout.vocab > 1)
    return Error{"vocab", "embedding and head are divided by tp in training", "leave it out"};
  const bool hasPairs = layout.schedule == PipelineKind::DualPipe || layout.schedule == PipelineKind::DualPipeV ||
                        layout.schedule == PipelineKind::Interleaved;
  if (layout.overlap && (layout.pp == 1 || !hasPairs))
    return Error{"overlap",
                 "a forward runs beside a backward in interleaved, dualpipe and dualpipev with pp > 1; this is " +
                     std::string(nameOf(layout.schedule)) + " with pp=" + std::to_string(layout.pp),
                 "leave it out or choose one of these schedules"};
  if (layout.pp == 1 && (layout.schedule == PipelineKind::DualPipe || layout.schedule == PipelineKind::DualPipeV))
    return Error{"schedule",
                 std::string(nameOf(layout.schedule)) + " runs the model from both ends of a pipeline, pp is 1",
                 "leave it out or choose a larger pp"};
  if (layout.chunks > 1 && layout.schedule != PipelineKind::Interleaved)
    return Error{"chunks", "belong to schedule=interleaved, this is " + std::string(nameOf(layout.schedule)), ""};
  if (spec.encoderLayers > 0 && layout.pp > 1)
    return Error{"pp", "stages of encoder-decoder models are not planned", "use pp=1"};
  if (layout.cp > 1 && spec.encoderLayers > 0)
    return Error{"cp", "sequences of encoder-decoder models are not divided", "leave it out"};
  if (const int64_t tokens = request.workload.train.sequence; tokens % layout.cp)
    return indivisible("cp", layout.cp, "the tokens of a sequence", tokens);
  if (!layout.layers.empty())
    if (Status status = checkSplit(spec, layout, PlanPhase::Train); !status)
      return status;
  if (layout.replicas > 1)
    return Error{"replicas", "copies of the model are data-parallel ranks in training", "use dp"};
  if (layout.offload != Offload::None && !request.topology.host)
    return Error{"offload",
                 "topology '" + shortened(request.topology.name) + "' does not say what memory its nodes have",
                 "add host: {memory: 2 TB, bandwidth: 64 GB/s}"};
  return Status::success();
}

Status checkServing(const ModelSpec &spec, const ParallelLayout &layout) {
  if (layout.cp > 1 && spec.encoderLayers > 0)
    return Error{"cp", "caches of encoder-decoder models are not divided", "leave it out"};
  if (layout.sp)
    return Error{"sp", "sequence parallelism is planned for training only", "leave it out"};
  return layout.layers.empty() ? Status::success() : checkSplit(spec, layout, PlanPhase::Serve);
}

/// Two pools, each of which passed its own checks.
Status checkPools(const PlanRequest &request, const ParallelLayout &layout) {
  if (request.spec.encoderLayers > 0)
    return Error{"prefill", "separate pools of encoder-decoder models are not planned", "leave its keys out"};
  if (layout.stepTokens > 0)
    return Error{"step", "is " + std::to_string(layout.stepTokens) + ", but prompts are computed by the prefill pool",
                 "write prefill.step=" + std::to_string(layout.stepTokens)};
  const int64_t prefill = layout.prefill->devices(), both = layout.devices(); // below 2^21
  if (both > request.topology.ranks())
    return Error{"layout",
                 formatCount(prefill) + " devices that compute prompts and " + formatCount(both - prefill) +
                     " that generate tokens are " + formatCount(both) + ", topology '" +
                     shortened(request.topology.name) + "' has " + formatCount(request.topology.ranks()),
                 "lower replicas or prefill.replicas, or choose a larger topology"};
  return Status::success();
}

/// A pool without the other one: of what only that one does, the plan has no figure.
Status checkAlone(const PlanRequest &request, PoolRole role, int64_t stepTokens) {
  const ServeWorkload &serve = request.workload.serve;
  const std::string phase = std::string("phase=") + nameOf(role);
  const char *remedy = "leave it out, or plan both pools (keys with prefill. before them)";
  if (request.spec.encoderLayers > 0)
    return Error{"phase", "separate pools of encoder-decoder models are not planned", "leave it out"};
  if (role == PoolRole::Decode && stepTokens > 0)
    return Error{"step", "is " + std::to_string(stepTokens) + ", but " + phase + " computes no prompts",
                 "leave it out"};
  if (role == PoolRole::Decode && serve.timeToFirstToken)
    return Error{"targets.first_token",
                 "is " + format(*serve.timeToFirstToken) + ", but " + phase + " has no TTFT: it computes no prompts",
                 remedy};
  if (role == PoolRole::Prefill && serve.timePerToken)
    return Error{"targets.per_token",
                 "is " + format(*serve.timePerToken) + ", but " + phase + " has no TPOT: it generates no tokens",
                 remedy};
  if (role == PoolRole::Prefill && serve.batch)
    return Error{"batch",
                 "is " + formatCount(*serve.batch) + " sequences that decode at once, but " + phase +
                     " generates no tokens",
                 remedy};
  return Status::success();
}

/// One pool, or all of a training layout.
Status checkPool(const PlanRequest &request, const ParallelLayout &layout) {
  const ModelSpec &spec = request.spec;
  if (Status status = checkRanges(layout); !status)
    return status;
  if (Status status = checkDevices(request.topology, layout); !status)
    return status;
  if (Status status = checkAttention(spec, layout); !status)
    return status;
  if (Status status = checkExperts(request, layout); !status)
    return status;
  if (layout.pp > spec.layerCount())
    return Error{"pp", std::to_string(layout.pp) + " stages for " + std::to_string(spec.layerCount()) + " layers", ""};
  return request.phase == PlanPhase::Train ? checkTraining(request, layout) : checkServing(spec, layout);
}

} // namespace

Status planner::checkLayout(const PlanRequest &request, const ParallelLayout &layout) {
  if (Status status = checkPool(request, layout); !status)
    return status;
  if (!layout.prefill)
    return layout.role == PoolRole::Both ? Status::success() : checkAlone(request, layout.role, layout.stepTokens);
  if (Status status = checkPool(request, *layout.prefill); !status) {
    Error error = status.takeError();
    error.where = "prefill." + error.where;
    return error;
  }
  return checkPools(request, layout);
}
