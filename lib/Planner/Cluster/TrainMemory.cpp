//===- TrainMemory.cpp - Memory of a training layout --------------------------===//
//
// states + (live micro-batches + buffers) times (1 + fragmentation), paper 002.
//
//===----------------------------------------------------------------------===//

#include "LargestLoad.h"
#include "TrainingModel.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace k2c;
using namespace k2c::planner;

StateMemory TrainingModel::states(const RankShare &share) const {
  auto of = [&](const RankShare &s, Zero zero) {
    DeviceParameters device;
    device.routed = int64_t(std::llround(at(s.parameters, WeightModule::Experts)));
    device.norms = int64_t(std::llround(sum(s.parameters))) - device.routed.value();
    return stateMemory(device, zero, train.bytes, layout.dp * layout.cp, edp, /*paperGroups=*/false);
  };
  StateMemory memory = of(share, layout.zero);
  // Two ranks run each stage of DualPipe; sharded optimizer states are held once by both.
  if (layout.schedule == PipelineKind::DualPipe && layout.zero != Zero::None)
    memory.optimizer /= 2;
  return memory;
}

Routing TrainingModel::routing() const { return context.request.workload.memoryRouting(); }

/// Buffers of one layer's dispatch and combine and its rows while they are computed with.
TrainingModel::Routed TrainingModel::routed(Routing routing) const {
  if (!context.request.spec.moe)
    return {};
  const int64_t tokens = int64_t(std::ceil(stages.tokens() / double(layout.tp) * double(layout.etp)));
  const RoutedLayer layer = routedLayer(context, layout, tokens, routing);
  return {layer.bytes, std::max(0.0, layer.peak.rows.real() - layer.mean.rows.real())};
}

std::array<double, TrainingModel::parts> TrainingModel::bytesOf(int64_t rank, const Routed &routed) const {
  const RoutedBytes &buffers = routed.bytes;
  std::array<double, parts> bytes{};
  const RankShare &share = shares[stages.kindOfRank(rank)];
  const StateMemory &held = statesOf(rank);
  bytes[Parameters] = held.parameters;
  bytes[Gradients] = held.gradients;
  bytes[Optimizer] = offloads(layout.offload, Offload::Optimizer) ? 0 : held.optimizer;
  const std::vector<size_t> &own = stages.ofRank(rank);
  bytes[Activations] = maxOnDevice(rank, [&](size_t stage) { return stages.activations(stage); });
  if (routed.rowsMore > 0)
    bytes[Uneven] = maxOnDevice(rank, [&](size_t stage) { return stages.activationsOfRows(stage, routed.rowsMore); });
  if (std::find(own.begin(), own.end(), stages.count() - 1) != own.end())
    bytes[Logits] = stages.tokens() * double(context.request.spec.vocab) * 4 / double(layout.tp);
  if (share.moeLayers > 0) {
    bytes[Dispatch] = buffers.dispatch + buffers.combine;
    bytes[Second] = buffers.second;
    bytes[Rows] = buffers.compute - buffers.padding;
    bytes[Padding] = buffers.padding;
  }
  bytes[Ring] = stages.ringBuffers();
  bytes[Fixed] = train.buffers;
  // States are allocated once; what comes and goes leaves gaps.
  bytes[Loss] = std::accumulate(bytes.begin() + Activations, bytes.end(), 0.0) * train.fragmentation;
  return bytes;
}

template <class Bytes> double TrainingModel::maxAlive(int64_t rank, Bytes bytes) const {
  const std::vector<size_t> &own = stages.ofRank(rank);
  if (!programs)
    return bytes(own.front());
  double most = 0;
  for (const std::vector<int64_t> &passes : programs->alive[size_t(rank)]) {
    double all = 0;
    for (size_t lane = 0; lane < own.size(); ++lane)
      all += double(passes[lane]) * bytes(own[lane]);
    most = std::max(most, all);
  }
  return most;
}

/// Offloaded: the pass that computes and the one on its way, of each direction that runs at once.
template <class Bytes> double TrainingModel::maxOnDevice(int64_t rank, Bytes bytes) const {
  const double all = maxAlive(rank, bytes);
  if (!offloads(layout.offload, Offload::Activations))
    return all;
  double largest = 0;
  for (size_t stage : stages.ofRank(rank))
    largest = std::max(largest, bytes(stage));
  return std::min(all, (layout.overlap ? 4 : 2) * largest);
}

double TrainingModel::keptBytes(int64_t rank) const {
  return maxAlive(rank, [&](size_t stage) { return stages.activations(stage); });
}

double TrainingModel::maxPasses() const {
  double most = 0;
  for (int64_t rank = 0; rank < layout.pp; ++rank)
    most = std::max(most, maxAlive(rank, [](size_t) { return 1.0; }));
  return most;
}

double TrainingModel::shardedParameters(int64_t rank) const {
  return statesOf(rank).optimizer / std::max(1e-9, train.bytes.optimizer);
}

double TrainingModel::hostBytes(int64_t rank) const {
  double held = 0;
  if (offloads(layout.offload, Offload::Activations))
    held += keptBytes(rank);
  // The processors add gradients of this rank's share to its states.
  if (offloads(layout.offload, Offload::Optimizer))
    held += statesOf(rank).optimizer + shardedParameters(rank) * train.bytes.gradient;
  return held;
}

template <class Bytes> double TrainingModel::maxOfNode(Bytes bytes) const {
  // Nodes are filled in the order of the ranks: a node has devices of one stage, or of several.
  const int64_t node = context.request.topology.devicesPerNode(), each = layout.tp * layout.cp * layout.dp;
  double most = 0;
  for (int64_t first = 0; first < each * layout.pp; first += each % node ? node : each) {
    const int64_t end = std::min(first + node, each * layout.pp);
    double held = 0;
    for (int64_t rank = first / each; rank * each < end; ++rank)
      held += double(std::min(end, (rank + 1) * each) - std::max(first, rank * each)) * bytes(rank);
    most = std::max(most, held);
  }
  return most;
}

double TrainingModel::hostBytes() const {
  return maxOfNode([&](int64_t rank) { return hostBytes(rank); });
}

double TrainingModel::hostParameters() const {
  return maxOfNode([&](int64_t rank) { return shardedParameters(rank); });
}

double TrainingModel::maxBytes(Routing routing) const {
  const Routed buffers = routed(routing);
  double most = 0;
  for (int64_t rank = 0; rank < layout.pp; ++rank) {
    const std::array<double, parts> bytes = bytesOf(rank, buffers);
    most = std::max(most, std::accumulate(bytes.begin(), bytes.end(), 0.0));
  }
  return most;
}

std::vector<RankMemory> TrainingModel::memory() const {
  static const char *const names[parts] = {"parameters",
                                           "gradients",
                                           "optimizer",
                                           "activations",
                                           "activations of uneven routing",
                                           "logits",
                                           "dispatch and combine",
                                           "second communication buffer",
                                           "rows of experts",
                                           "alignment padding",
                                           "keys in the ring",
                                           "buffers",
                                           "fragmentation"};
  std::vector<RankMemory> classes;
  const int64_t each = layout.tp * layout.cp * layout.dp;
  const Routed buffers = routed(routing());
  for (int64_t rank = 0; rank < layout.pp; ++rank) {
    RankMemory memory;
    memory.stage = rank;
    memory.count = each;
    memory.ranks = rankRange(rank * each, each);
    memory.parameters = int64_t(sum(shares[stages.kindOfRank(rank)].parameters));
    memory.capacity = context.request.topology.device.memory.value;
    if (layout.offload != Offload::None)
      memory.host = wholeBytes(hostBytes(rank));
    const std::array<double, parts> bytes = bytesOf(rank, buffers);
    for (size_t i = 0; i < parts; ++i)
      if (bytes[i] > 0)
        memory.parts.push_back({names[i], wholeBytes(bytes[i])});
    classes.push_back(std::move(memory));
  }
  return classes;
}
