//===- Links.cpp - What a group of ranks sends over which tier ----------------===//

#include "Links.h"

#include "k2c/Planner/Experts.h"
#include <algorithm>
#include <cmath>
#include <numeric>

using namespace k2c;
using namespace k2c::planner;

LinkUse &LinkUse::operator+=(const LinkUse &other) {
  for (size_t tier = 0; tier < bytes.size(); ++tier)
    bytes[tier] += other.bytes[tier];
  latency += other.latency;
  return *this;
}

LinkUse LinkUse::operator*(double factor) const {
  LinkUse result = *this;
  for (double &each : result.bytes)
    each *= factor;
  result.latency *= factor;
  return result;
}

double LinkUse::total() const { return std::accumulate(bytes.begin(), bytes.end(), 0.0); }

Links::Links(const Topology &topology) : topology(topology) {
  double devices = 1;
  for (const Tier &tier : topology.tiers)
    unit.push_back(devices *= double(tier.count));
}

double Links::membersWithin(RankGroup group, int tier) const {
  if (tier < 0)
    return 1;
  return std::clamp(std::floor(unit[size_t(tier)] / group.stride), 1.0, group.size);
}

/// Mean units that a token visits of `count`, which may be fractional where a group fills its last unit in part.
/// Group-limited choice visits no more than the units of its groups.
static double unitsVisited(const MoeSpec &moe, double count) {
  int64_t units = std::clamp<int64_t>(int64_t(std::ceil(count)), 1, moe.experts);
  int64_t ofGroups = moe.topGroups * ((units + moe.groups - 1) / moe.groups);
  return std::min(distinctNodesMean(moe.experts, moe.topK, units), double(ofGroups));
}

LinkUse Links::dispatch(RankGroup group, const MoeSpec &moe, Copies copies, double rows, double rowBytes) const {
  LinkUse use;
  for (int tier = 0; tier < int(unit.size()); ++tier) {
    double inner = membersWithin(group, tier - 1), outer = membersWithin(group, tier), ways = outer / inner;
    if (ways <= 1)
      continue;
    // Of the inner units that a token visits, one in `ways` is where it is already: where it started, or where the tier
    // outside delivers it.
    const double forwarded = unitsVisited(moe, group.size / inner) * (1 - 1 / ways);
    // Of its experts, those that lie in this unit of the tier and not in the inner one that it starts from.
    const double direct = double(moe.topK) * (outer - inner) / group.size;
    use.bytes[size_t(tier)] = rows * rowBytes * (copies == Copies::ForEachUnit ? forwarded : direct);
    use.latency += topology.tiers[size_t(tier)].latency.value.value;
  }
  return use;
}

LinkUse Links::withinExperts(double ep, double etp, const MoeSpec &moe, double rows, double rowBytes) const {
  return gather({etp, 1}, rows * unitsVisited(moe, ep) * etp * rowBytes);
}

LinkUse Links::toParts(double ep, double etp, const MoeSpec &moe, double rows, double rowBytes) const {
  return exchange({etp, 1}, rows * unitsVisited(moe, ep) * rowBytes);
}

LinkUse Links::ofParts(double etp, const MoeSpec &moe, double rows, double partBytes) const {
  return exchange({etp, 1}, rows * double(moe.topK) * partBytes);
}

LinkUse Links::gather(RankGroup group, double bytes) const {
  LinkUse use;
  for (int tier = 0; tier < int(unit.size()); ++tier) {
    double inner = membersWithin(group, tier - 1), outer = membersWithin(group, tier);
    if (outer <= inner)
      continue;
    // Tiers outside have delivered all but the part of this unit's own members: bytes / outer each.
    use.bytes[size_t(tier)] = bytes / outer * (outer / inner - 1);
    use.latency += topology.tiers[size_t(tier)].latency.value.value;
  }
  return use;
}

LinkUse Links::exchange(RankGroup group, double bytes) const {
  LinkUse use;
  for (int tier = 0; tier < int(unit.size()); ++tier) {
    double inner = membersWithin(group, tier - 1), outer = membersWithin(group, tier);
    if (outer <= inner)
      continue;
    use.bytes[size_t(tier)] = bytes * (outer - inner);
    use.latency += topology.tiers[size_t(tier)].latency.value.value;
  }
  return use;
}

LinkUse Links::send(double stride, double bytes) const {
  LinkUse use;
  for (size_t tier = 0; tier < unit.size(); ++tier)
    if (unit[tier] > stride || tier + 1 == unit.size()) {
      use.bytes[tier] = bytes;
      use.latency = topology.tiers[tier].latency.value.value;
      break;
    }
  return use;
}

double Links::transfer(const LinkUse &use) const {
  int tier = slowest(use);
  return tier < 0 ? 0 : use.bytes[size_t(tier)] / topology.tiers[size_t(tier)].effective().value;
}

std::string Links::slowestName(const LinkUse &use) const {
  const int tier = slowest(use);
  return tier < 0 ? "" : topology.tiers[size_t(tier)].name;
}

int Links::slowest(const LinkUse &use) const {
  int slowest = -1;
  double longest = 0;
  for (size_t tier = 0; tier < unit.size(); ++tier) {
    double seconds = use.bytes[tier] / topology.tiers[tier].effective().value;
    if (seconds > longest) {
      longest = seconds;
      slowest = int(tier);
    }
  }
  return slowest;
}
