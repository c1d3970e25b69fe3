//===- Graphs.cpp - Captures of streams, and graphs -----------------------===//
//
// A graph is its nodes, each behind others of lower numbers. A launch enqueues all of them: behind what its stream
// comes behind and the launch of the same graph before it, and by its edges among each other; so they run in any order
// that the edges allow. The stream's next operation comes behind all of them.
//
//===----------------------------------------------------------------------===//
#include "Driver.h"

#include <algorithm>

using namespace k2c::emulated;

namespace {

/// Whether all nodes come before, or are, those of `last`.
bool areJoined(const Graph &graph, const std::vector<uint32_t> &last) {
  std::vector<bool> isReached(graph.nodes.size());
  for (const uint32_t node : last)
    isReached[node] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;)
    if (isReached[i])
      for (const uint32_t earlier : graph.nodes[i].after)
        isReached[earlier] = true;
  return std::find(isReached.begin(), isReached.end(), false) == isReached.end();
}

/// What keeps `now` from taking the place of `then`.
CUgraphExecUpdateResult differenceOf(const Node &then, const Node &now) {
  if (then.work.body.index() != now.work.body.index())
    return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  if (then.work.context != now.work.context)
    return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  if (const auto *launch = std::get_if<KernelLaunch>(&then.work.body);
      launch && launch->kernel != std::get<KernelLaunch>(now.work.body).kernel)
    return CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED;
  if (const Copy *copy = std::get_if<Copy>(&then.work.body);
      copy && copy->direction != std::get<Copy>(now.work.body).direction)
    return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUgraphExecUpdateResultInfo compare(const Graph &then, const Graph &now) {
  CUgraphExecUpdateResultInfo info{CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  if (then.nodes.size() != now.nodes.size()) {
    info.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return info;
  }
  for (size_t i = 0; i < now.nodes.size() && info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS; ++i) {
    const Node &node = now.nodes[i];
    info.result = then.nodes[i].after == node.after ? differenceOf(then.nodes[i], node)
                                                    : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS)
      continue;
    info.errorNode = handleOf<CUgraphNode>(node.id);
    if (info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED && !node.after.empty())
      info.errorFromNode = handleOf<CUgraphNode>(now.nodes[node.after.front()].id);
  }
  return info;
}

void launch(Driver &driver, Executable &executable, Stream &stream) {
  std::vector<Queue::OperationId> before = stream.tail, all;
  before.insert(before.end(), executable.tail.begin(), executable.tail.end());
  for (const Node &node : executable.graph.nodes) {
    std::vector<Queue::OperationId> after;
    for (const uint32_t earlier : node.after)
      after.push_back(all[earlier]);
    Work work = node.work;
    auto *mark = std::get_if<Mark>(&work.body);
    Event *event = mark ? driver.events.find(mark->event) : nullptr;
    if (event)
      mark->record = ++event->records;
    all.push_back(driver.queue.add(std::move(work), node.after.empty() ? before : after));
    if (event)
      event->operation = all.back();
  }
  before.insert(before.end(), all.begin(), all.end());
  stream.tail = {driver.queue.add({stream.context, Join{}}, before)};
  executable.tail = stream.tail;
}

} // namespace

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  return enterStream(Entry::cuStreamBeginCapture_v2, handle, [&](Driver &driver, Stream &stream) {
    if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
      return CUDA_ERROR_INVALID_VALUE;
    if (stream.capture != 0)
      return driver.invalidate(stream.capture, CUDA_ERROR_ILLEGAL_STATE);
    Capture made;
    made.mode = mode;
    made.thread = std::this_thread::get_id();
    made.origin = idOf(handle);
    made.graph.context = stream.context;
    stream.capture = driver.captures.add(std::move(made));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  return enterStream(Entry::cuStreamEndCapture, handle, [&](Driver &driver, Stream &stream) {
    if (!graph)
      return CUDA_ERROR_INVALID_VALUE;
    *graph = nullptr;
    Capture *capture = driver.captures.find(stream.capture);
    if (!capture)
      return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != idOf(handle))
      return driver.invalidate(stream.capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id())
      return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    const bool isInvalid = capture->isInvalid, isWhole = areJoined(capture->graph, stream.nodes);
    Graph captured = std::move(capture->graph);
    driver.endCapture(stream.capture);
    if (isInvalid || driver.failing != CUDA_SUCCESS)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!isWhole)
      return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    *graph = handleOf<CUgraph>(driver.graphs.add(std::move(captured)));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph handle, unsigned long long flags) {
  return enter(Entry::cuGraphInstantiateWithFlags, [&](Driver &driver) {
    const Graph *graph = driver.graphs.find(idOf(handle));
    if (!executable || !graph || flags != 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = driver.errorOf(graph->context); error != CUDA_SUCCESS)
      return error;
    *executable = handleOf<CUgraphExec>(driver.executables.add({*graph, {}}));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph handle, CUgraphExecUpdateResultInfo *result) {
  return enter(Entry::cuGraphExecUpdate_v2, [&](Driver &driver) {
    const Graph *graph = driver.graphs.find(idOf(handle));
    Executable *updated = driver.executables.find(idOf(executable));
    if (!graph || !updated || !result)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = driver.errorOf(graph->context); error != CUDA_SUCCESS)
      return error;
    *result = compare(updated->graph, *graph);
    if (result->result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
      return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    updated->graph = *graph;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream streamHandle) {
  return enterStream(Entry::cuGraphLaunch, streamHandle, [&](Driver &driver, Stream &stream) {
    Executable *executable = driver.executables.find(idOf(handle));
    if (!executable)
      return CUDA_ERROR_INVALID_VALUE;
    if (stream.capture != 0)
      return driver.invalidate(
          stream.capture, refuse(CUDA_ERROR_NOT_SUPPORTED, "a graph is launched in a capture; capture what it does"));
    ++driver.statistics.graphLaunches;
    launch(driver, *executable, stream);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return enter(Entry::cuGraphExecDestroy, [&](Driver &driver) {
    const Executable *executable = driver.executables.find(idOf(handle));
    if (!executable)
      return CUDA_ERROR_INVALID_VALUE;
    const CUresult error = driver.errorOf(executable->graph.context);
    driver.executables.erase(idOf(handle));
    return error;
  });
}

CUresult cuGraphDestroy(CUgraph handle) {
  return enter(Entry::cuGraphDestroy, [&](Driver &driver) {
    const Graph *graph = driver.graphs.find(idOf(handle));
    if (!graph)
      return CUDA_ERROR_INVALID_VALUE;
    const CUresult error = driver.errorOf(graph->context);
    driver.graphs.erase(idOf(handle));
    return error;
  });
}
