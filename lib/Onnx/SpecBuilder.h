//===- SpecBuilder.h - a decoder as a ModelSpec, part by part --------------------------===//
//
//   Spec.cpp            layers, feed-forward parts, kinds and families
//   SpecAttention.cpp   attentions and rotary embeddings
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_ONNX_SPECBUILDER_H
#define K2C_LIB_ONNX_SPECBUILDER_H

#include "Spec.h"
#include <map>
#include <string>
#include <vector>

namespace k2c::onnx {

/// What names of a layer's tensors begin with.
inline const std::string layerPrefix = "model.layers.{layer}.";

/// The number that people wrote for a float: the shortest decimal that is it.
double written(double value);

/// Builds the spec of one decoder.
class SpecBuilder {
public:
  SpecBuilder(Fold &fold, const Decoder &decoder, const std::vector<RopeSpec> &stated, OnnxTensors &tensors)
      : fold(fold), decoder(decoder), stated(stated), tensors(tensors) {}

  Expected<ModelSpec> build();

private:
  Error refuse(const std::string &what) const {
    return Error{fold.graph.path, what, "k2c compiles decoders whose layers differ in their kind alone"};
  }
  Status addLayer(size_t index);
  /// Kinds that differ in more than their feed-forward part have names of their own.
  void nameKind(LayerKind &kind) const;
  Status addAttention(const GqaLayer &found, int64_t index, LayerKind &kind);
  Status addAttention(const MlaLayer &found, int64_t index, LayerKind &kind);
  Status addLinear(const std::string &id, const std::string &name, const LinearLayer &linear, int64_t layer);
  /// How far, relative, the factor of scores that was meant may be from `scale`, which is one or two of the graph's
  /// constants, or 1 by them: what their type rounds.
  double roundoffOf(double scale) const;
  void findRounded();
  Expected<RopeSpec> formulaOf(const Rotation &rotation);
  Expected<std::string> ropeName(const Rotation &rotation, double scale, double turnedScale, double width);
  Status addFeedForward(const DecoderLayer &layer, int64_t index, LayerKind &kind);
  Status addProjection(const ProjectedRows &rows, const std::string &role, const std::string &norm, int64_t layer);
  Status addMlp(const MlpLayer &mlp, const std::string &prefix, const std::string &id, int64_t layer);
  Status addExperts(const DecoderLayer &found, int64_t layer);
  Status setNorm(double eps);
  /// Adds one tensor of the family `id`, which is made at the first.
  Status addTensor(const std::string &id, const std::string &pattern, int64_t layer, const View &view,
                   int64_t expert = 0, size_t alternative = 0);
  WeightFamily &family(const std::string &id, const std::string &pattern);
  bool isTied();
  void closeFamilies();

  Fold &fold;
  const Decoder &decoder;
  const std::vector<RopeSpec> &stated;
  OnnxTensors &tensors;
  ModelSpec spec;
  bool hasNorm = false;         // spec.normEps is known
  std::vector<LayerKind> kinds; // by layer
  std::map<std::string, std::vector<int64_t>> layersOfFamily;
  std::vector<std::pair<Rotation, RopeSpec>> formulas; // of rotations, before scores' factors
  std::map<double, double> rounded; // numbers of 16 bits, and how far from what was meant, relative, they may be
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_SPECBUILDER_H
