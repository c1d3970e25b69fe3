//===- ImportGraph.h - a graph as the model that it is -------------------------------===//
#ifndef K2C_LIB_ONNX_IMPORTGRAPH_H
#define K2C_LIB_ONNX_IMPORTGRAPH_H

#include "Decoder.h"
#include "Roles.h"
#include "Spec.h"

namespace k2c::onnx {

struct ImportedGraph {
  InputRoles roles;
  ModelSpec spec;
  std::shared_ptr<OnnxTensors> tensors;
};

/// The model that the graph is, with what files beside its own say. `parts`, where the graph is refused: what was
/// understood of it.
Expected<ImportedGraph> importGraph(const Graph &graph, FoundParts *parts = nullptr);

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_IMPORTGRAPH_H
