//===- Describe.h - what an ONNX file is, for people -----------------------------===//
#ifndef K2C_ONNX_DESCRIBE_H
#define K2C_ONNX_DESCRIBE_H

#include "k2c/Model/ModelSpec.h"
#include <map>
#include <set>

namespace k2c {

/// An ONNX file, and the decoder that it is or what was understood of it.
struct OnnxDescription {
  int64_t irVersion = 0;
  std::string producer;                                  ///< name and version; may be empty
  std::map<std::string, std::set<int64_t>> operatorSets; ///< versions of the nodes' domains, "ai.onnx" among them
  std::map<std::string, int64_t> operators;              ///< nodes of each op; "com.microsoft:MoE" of other domains
  int64_t nodes = 0, constants = 0;                      ///< that outputs depend on, functions inlined; all tensors
  std::vector<std::string> unused;                       ///< nodes that no output depends on: "node 'a' (Add)"

  struct Port {
    std::string name;
    std::string role;  ///< of an input "tokens", "mask", "positions" or "cache"; "": not known, or an output
    std::string type;  ///< "FLOAT16"
    std::string shape; ///< "[batch, sequence]"; "": the file says none
  };
  std::vector<Port> inputs, outputs;

  std::optional<ModelSpec> spec; ///< none: the graph is refused

  /// Where a weight of the spec is stored.
  struct Weight {
    std::string role;   ///< WeightFamily::id
    std::string tensor; ///< its name as the spec has it, of expert 0
    std::string constant;
    std::string type;           ///< of the constant
    std::string format;         ///< of weights that --widen makes f32; "": of others
    std::vector<int64_t> shape; ///< of the constant, or of the weights that it stores
    bool isTransposed = false;  ///< rows of the weight are columns of the constant
  };
  /// Of the first layer of each run of spec->layersByKind(); `whole`: of the families that no layer has.
  std::vector<std::vector<Weight>> weights;
  std::vector<Weight> whole;

  std::optional<Error> error;          ///< why the graph is refused
  std::vector<std::string> understood; ///< parts of a refused graph: "head of 320 ids and 64 columns"
};

/// Describes a .onnx file. Error: it cannot be read as a graph.
Expected<OnnxDescription> describeOnnx(const std::string &path);

} // namespace k2c

#endif // K2C_ONNX_DESCRIBE_H
