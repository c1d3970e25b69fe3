// Where workers run and which memory they touch first.
//
// Workers are numbered node by node: on two nodes of four processors, workers 0-3 run on the first and 4-7 on the
// second. A launch gives worker w of T the items [w*n/T, (w+1)*n/T), so each node reads one contiguous range of the
// items of every weight, whatever T is: weights are sharded over the nodes, and none has a second copy.
#ifndef K2RT_WORKERBINDING_H
#define K2RT_WORKERBINDING_H

#include "base/Nodes.h"

namespace k2c::runtime {

/// The node and the processors of a worker. `nodes` counts those that have workers.
struct WorkerBinding {
  int32_t node = 0;                 ///< index into the nodes that bindingsOfWorkers was given
  int64_t nodeIndex = 0, nodes = 1; ///< its node's position among the `nodes`
  int64_t index = 0, count = 1;     ///< its position among the `count` workers of the node
  std::vector<int> processors;      ///< where it may run; empty: wherever the process may

  /// Whether this worker is the first to touch chunk `chunk` of memory that all workers share: chunks go round the
  /// nodes, then round the workers of a node.
  bool owns(int64_t chunk) const { return chunk % nodes == nodeIndex && chunk / nodes % count == index; }
};

/// Bindings of workers 0 .. workers-1 over `nodes` (not empty): worker w of T is on the node of processor w * P / T of
/// the P processors in the order of the nodes. As many workers as processors: one on each. Otherwise a worker may run
/// on every processor of its node, as the system (and other programs) will have it; with one node, anywhere, unless the
/// nodes are a part of the host (`isApart`).
std::vector<WorkerBinding> bindingsOfWorkers(const std::vector<Node> &nodes, int32_t workers, bool isApart = false);

} // namespace k2c::runtime

#endif
