//===- Links.h - What a group of ranks sends over which tier ------------------===//
//
// Ranks are numbered tp first, then cp, dp, pp, replicas, and lie on devices in order, so that a group is `size` ranks
// `stride` apart and its first members share the innermost units. Collectives are hierarchical: what crosses a tier
// crosses once for each unit on the other side.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_LINKS_H
#define K2C_LIB_PLANNER_CLUSTER_LINKS_H

#include "k2c/Cluster/Topology.h"
#include "k2c/Model/ModelSpec.h"
#include <array>
#include <vector>

namespace k2c::planner {

/// Bytes that one device receives over each tier of the topology, and small messages it waits for.
struct LinkUse {
  static constexpr size_t maxTiers = 8; ///< that a topology file may have
  std::array<double, maxTiers> bytes{}; ///< by tier
  double latency = 0;                   ///< seconds of messages one after another

  LinkUse &operator+=(const LinkUse &other);
  LinkUse operator*(double factor) const;
  double total() const;
};

/// Ranks that communicate.
struct RankGroup {
  double size = 1;
  double stride = 1;
};

/// How often a token crosses a tier: once for each unit behind it that has one of its experts, from where it is
/// forwarded, or once for each of its experts.
enum class Copies : uint8_t { ForEachUnit, ForEachRoute };

/// A topology as the planner's collectives see it.
class Links {
public:
  explicit Links(const Topology &topology);

  /// `rows` of `rowBytes` that start on each rank of the group and visit experts spread evenly over it.
  LinkUse dispatch(RankGroup group, const MoeSpec &moe, Copies copies, double rows, double rowBytes) const;
  /// The `etp` neighbours that share each of `ep` ranks' experts collect what each of them received (one copy of a
  /// token a rank of experts), compute their part of the width, and add the parts up: an all-gather and a
  /// reduce-scatter, as Megatron's expert tensor parallelism. `rowBytes` of both together; `rows` start on each rank.
  LinkUse withinExperts(double ep, double etp, const MoeSpec &moe, double rows, double rowBytes) const;
  /// Such neighbours, serving: each sends on what it received to each other one, and gets back of each of these a part
  /// of the sum of each choice, `partBytes` long: choices are added up behind that, as they are rounded and weighted.
  LinkUse toParts(double ep, double etp, const MoeSpec &moe, double rows, double rowBytes) const;
  LinkUse ofParts(double etp, const MoeSpec &moe, double rows, double partBytes) const;
  /// Each rank has a share of `bytes` and ends with all of it (all-gather), or begins with all and ends with a share of
  /// the sum (reduce-scatter).
  LinkUse gather(RankGroup group, double bytes) const;
  /// Each rank receives `bytes` from each other one (all-to-all).
  LinkUse exchange(RankGroup group, double bytes) const;
  LinkUse allReduce(RankGroup group, double bytes) const { return gather(group, bytes) * 2; }
  /// To the rank `stride` further.
  LinkUse send(double stride, double bytes) const;

  /// Seconds of the bytes: tiers work beside each other, so the slowest one's.
  double transfer(const LinkUse &use) const;
  double seconds(const LinkUse &use) const { return transfer(use) + use.latency; }
  /// The tier that takes longest; -1: none is used.
  int slowest(const LinkUse &use) const;
  /// Its name; empty: none.
  std::string slowestName(const LinkUse &use) const;

  const Topology &topology;

private:
  /// Members of the group inside one unit of tier `tier`; -1: one rank.
  double membersWithin(RankGroup group, int tier) const;
  std::vector<double> unit; ///< devices in a unit that tier t joins
};

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_LINKS_H
