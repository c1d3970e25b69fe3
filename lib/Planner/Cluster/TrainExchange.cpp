//===- TrainExchange.cpp - Gradients and parameters between ranks -------------===//
//
// Data-parallel ranks sum gradients and, where states are sharded, collect parameters. Buckets of them are on their way
// while a rank computes: gradients beside the backward that makes them, parameters beside the pass that wants them. How
// often depends on what is sharded:
//
//   none, os      gradients once a step, with the last micro-batch; os: parameters once, with the first (Megatron-LM's
//                 distributed optimizer with --overlap-grad-reduce and --overlap-param-gather)
//   os+g          gradients with every micro-batch, since no rank has room for all of them (DeepSpeed's engine:
//                 "ZeRO stage >= 2 communicates during non gradient accumulation boundaries as well")
//   os+g+params   and parameters before every forward and backward
//
//===----------------------------------------------------------------------===//

#include "TrainingModel.h"

#include <algorithm>

using namespace k2c;
using namespace k2c::planner;

/// Optimizer states are read and written, gradients read, parameters written. States in the host's memory stay there
/// (ZeRO-Offload, Ren et al., 2021): gradients go down, the processors update, parameters come back, each bucket beside
/// the next, so that the longest of the three remains.
TrainingModel::Update TrainingModel::update() const {
  const StateBytes &bytes = train.bytes;
  const double each = 2 * bytes.optimizer + bytes.gradient + bytes.weight;
  double most = 0;
  for (int64_t rank : stages.firstRanks())
    most = std::max(most, shardedParameters(rank));
  Update update;
  if (!offloads(layout.offload, Offload::Optimizer)) {
    update.bytes = most * each;
    update.seconds = update.bytes / context.rates.memory;
    return update;
  }
  const Host &host = *context.request.topology.host;
  update.bytes = hostParameters() * each;
  update.seconds = host.memoryBandwidth ? update.bytes / host.memoryBandwidth->value.value : 0;
  update.gradients = most * bytes.gradient, update.parameters = most * bytes.weight;
  update.gradientSeconds = update.gradients / host.effective().value;
  update.parameterSeconds = update.parameters / host.effective().value;
  return update;
}

/// Of the rank that waits longest, with `bytes` of each parameter.
LinkUse TrainingModel::gatherAll(double bytes) const {
  LinkUse most;
  for (const RankShare &share : shares) {
    const double experts = at(share.parameters, WeightModule::Experts), rest = sum(share.parameters) - experts;
    LinkUse use = context.links.gather({double(layout.dp * layout.cp), double(layout.tp)}, rest * bytes);
    use += context.links.gather({double(edp), double(layout.ep * layout.etp)}, experts * bytes);
    if (context.links.seconds(use) > context.links.seconds(most))
      most = use;
  }
  return most;
}

TrainingModel::Exchanges TrainingModel::exchanges() const {
  const double m = double(layout.microbatches);
  // What computes while links are free: transfers that run beside it take their part.
  const double busy = layout.overlap ? work.linkSeconds : 0;
  const double forward = std::max(0.0, work.forward.seconds - busy - work.ringHidden[0]);
  const double backward = std::max(0.0, work.backward() - busy - work.ringHidden[1]);
  auto part = [&](double bytes, double times, double beside) {
    Exchange exchange{gatherAll(bytes) * times, 0, 0};
    exchange.seconds = context.links.seconds(exchange.use);
    exchange.hidden = std::min(exchange.seconds, times * beside);
    return exchange;
  };
  Exchanges all;
  const double gradient = train.bytes.gradient, weight = train.bytes.weight;
  // Without sharding an all-reduce: summed in shares, collected again.
  all.gradients = part(layout.zero == Zero::None ? 2 * gradient : gradient, layout.zero >= Zero::OsG ? m : 1, backward);
  if (layout.zero == Zero::Os || layout.zero == Zero::OsG)
    all.parameters = part(weight, 1, forward);
  if (layout.zero == Zero::OsGParams) // twice a micro-batch, beside what the gradients leave of it
    all.parameters = part(2 * weight, m, forward + std::max(0.0, backward - all.gradients.seconds / m));
  return all;
}
