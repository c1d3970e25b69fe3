//===- ModelShare.h - What one rank of a layout holds of a model --------------===//
//
// Sums over layers are prefix sums, so that a stage costs the same however many layers it has: a search asks for
// thousands of layouts.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_MODELSHARE_H
#define K2C_LIB_PLANNER_CLUSTER_MODELSHARE_H

#include "RowTraffic.h"
#include "k2c/Model/Layers.h"
#include "k2c/Planner/Count.h"
#include "k2c/Planner/Evaluate.h"
#include <algorithm>
#include <array>

namespace k2c::planner {

/// A kind of module of the model, whose weights a layout shards in one way.
enum class WeightModule : uint8_t { Attention, Norms, Router, Experts, Shared, Mlp, Embedding, Head };
inline constexpr size_t weightModuleCount = 8;
const char *nameOf(WeightModule module);

/// One number for each kind of module.
using ByModule = std::array<double, weightModuleCount>;
inline double &at(ByModule &values, WeightModule module) { return values[size_t(module)]; }
inline double at(const ByModule &values, WeightModule module) { return values[size_t(module)]; }
double sum(const ByModule &values);

/// One rank of one stage.
struct RankShare {
  LayerRange layers;
  int64_t moeLayers = 0;
  std::vector<double> attentionLayers; ///< layers with each of ModelShare::attentions
  ByModule parameters{};               ///< whole numbers below 2^53
  ByModule bytes{};                    ///< of the weights in the request's format
  std::vector<double> layersOfKinds;   ///< of each of ModelShare::kinds
  RowTraffic traffic;                  ///< of its layers
  int64_t layerCount() const { return layers.end - layers.begin; }
  int64_t denseLayers() const { return layerCount() - moeLayers; }
  RankShare &operator+=(const RankShare &other);
};

/// A model, counted once.
class ModelShare {
public:
  ModelShare(const ModelSpec &spec, WeightFormat format);

  /// The share of a rank that runs `layers`: of the rank with most experts. The layout passes checkLayout.
  RankShare of(LayerRange layers, const ParallelLayout &layout) const;
  /// Of every stage, with so many layers each (0: an embedding or a head alone). Their sum is the model's.
  std::vector<RankShare> ofStages(const std::vector<int64_t> &layersOfStages, const ParallelLayout &layout) const;
  /// Of one stage; `isFirst`, `isLast`: with the embedding, with the head.
  RankShare of(LayerRange layers, bool isFirst, bool isLast, const ParallelLayout &layout) const;
  /// Whether two runs of layers have equal shares, between the first stage and the last.
  bool areAlike(LayerRange a, LayerRange b) const;
  /// Share of one module of multi-token prediction: a copy of the last layer and what surrounds it.
  /// `hasTables`: and its copies of embedding and head, which training shares with the model (DeepSeek-V3 report,
  /// section 3.2.3).
  RankShare ofDraft(const ParallelLayout &layout, bool hasTables) const;
  /// How many of these layers have experts.
  int64_t moeLayers(LayerRange layers) const { return moeBefore[size_t(layers.end)] - moeBefore[size_t(layers.begin)]; }
  /// How many of these layers have each attention.
  std::vector<double> layersWith(LayerRange layers) const;
  /// Adds up what layers count, by the sizes of their attention; `layers` has a number of them for each.
  template <class OfLayer> double overLayers(const std::vector<double> &layers, OfLayer ofLayer) const {
    double total = 0;
    for (size_t i = 0; i < attentions.size(); ++i)
      total += layers[i] * ofLayer(attentions[i].sizes);
    return total;
  }
  /// The most that a layer counts.
  template <class OfLayer> double maxOfLayers(OfLayer ofLayer) const {
    double most = 0;
    for (const AttentionLayers &attention : attentions)
      most = std::max(most, double(ofLayer(attention.sizes)));
    return most;
  }

  const ModelSpec &spec;
  const std::vector<AttentionLayers> attentions;
  /// Layers that are alike.
  struct Kind {
    LayerKind kind;
    RowTraffic traffic;          ///< of one of them
    std::vector<int64_t> before; ///< how many of them come before each layer
  };
  std::vector<Kind> kinds;
  double expert = 0; ///< parameters of one routed expert

private:
  void split(RankShare &share, const ParallelLayout &layout) const;

  /// Of the layers before each, unsplit.
  std::vector<ByModule> parameters, bytes;
  std::vector<int64_t> moeBefore;
  std::vector<std::vector<int64_t>> attentionBefore; ///< with each of `attentions`
  ByModule outside{}, outsideBytes{};                ///< embedding and head; the final norm counts with the head
  double replicatedAttention = 0;                    ///< share of attention that every tp rank holds whole
  double keyValueShare = 0;                          ///< share of attention that splits over key heads only
  int64_t keyHeads = 1;                              ///< these heads
};

/// Slots of a layer's experts on one rank.
int64_t slotsPerRank(const ModelSpec &spec, const ParallelLayout &layout);

/// Whether model and topology divide into the layout. `where` of the error is the layout's key.
Status checkLayout(const PlanRequest &request, const ParallelLayout &layout);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_MODELSHARE_H
