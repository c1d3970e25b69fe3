// What the routes of a run mean for its ranks: rows of experts, nodes of tokens, bytes between nodes. Counted from
// routes and placement alone, as the certificate `dispersion` of a bundle is; the exchange counts what it sends itself.
#ifndef K2RT_ENGINE_ROUTETRAFFIC_H
#define K2RT_ENGINE_ROUTETRAFFIC_H

#include "engine/ExpertLoads.h"
#include "k2rt/program.h"
#include "k2rt/traffic.h"
#include "program/Bundle.h"
#include <cstdint>
#include <vector>

namespace k2c::runtime {

/// Numbers of which a mean and a maximum count.
struct Spread {
  int64_t sum = 0, numbers = 0, most = 0;

  void add(int64_t number);
  double mean() const { return numbers > 0 ? static_cast<double>(sum) / static_cast<double>(numbers) : 0; }
};

class RouteTraffic {
public:
  /// `bundle`, which is of several ranks, outlives it.
  explicit RouteTraffic(const Bundle &bundle);

  /// The rank of a stage that carried each row of a step, of all replicas, and the experts of the rows as k2rt_ir_step
  /// captures them; the step has gone by table `table` of the placement.
  void count(const std::vector<int32_t> &sources, const int32_t *experts, size_t table);

  /// Of tokens and layers with experts; and of tokens, over all layers.
  const Spread &nodes() const { return nodesOfTokens; }
  const Spread &bytesBetweenNodes() const { return bytesOfTokens; }
  int64_t tokens(int32_t rank) const;
  /// Rows that the experts of a rank, or its parts of experts, computed, in all layers.
  int64_t expertRows(int32_t rank) const;
  /// Slots of a rank by the first table, of all layers, whose expert no token has chosen.
  int64_t deadExperts(int32_t rank) const;
  /// Of a layer with experts.
  const ExpertLoads &loads(size_t moeLayer) const { return chosen[moeLayer]; }
  /// Mean over largest of the rows of ranks in a layer with experts: 1 at best, and without any rows.
  double balancedness(size_t moeLayer) const;

private:
  bool hasLayer(int32_t rank, size_t moeLayer) const;
  const int32_t *entriesOf(size_t table, size_t moeLayer) const;
  const std::vector<int32_t> &slotsOf(size_t table, size_t moeLayer);

  const Bundle &bundle;
  k2rt_division division{};
  int64_t messageBytes = 0, rowBytes = 0;               ///< of what crosses nodes, to experts and back
  std::vector<std::vector<std::vector<int32_t>>> slots; ///< by table, by layer: all of all experts; empty: not yet
  Spread nodesOfTokens, bytesOfTokens;
  int64_t stageRowBytes = 0;                    ///< of a token, from a stage to the next
  std::vector<int64_t> tokensOfRank;            ///< by rank of a stage in all replicas
  std::vector<std::vector<int64_t>> rowsOfRank; ///< by layer with experts, by those that divide them in all replicas
  std::vector<ExpertLoads> chosen;              ///< by layer with experts
};

} // namespace k2c::runtime

#endif
