//===- SameMachine.cpp - Whether two topologies are of equal machines -----===//

#include "k2c/Cluster/Topology.h"

#include <algorithm>
#include <tuple>

namespace k2c {

static auto constantsOf(const ReachedRates &of) {
  return std::tie(of.memory, of.bf16, of.fp8, of.attention, of.attentionBackward, of.launch, of.fill, of.attentionFill,
                  of.tileRows, of.transferSms, of.transferRate, of.sendReceive);
}

static auto constantsOf(const Device &of) {
  return std::tie(of.kind, of.model, of.arch, of.cores, of.numa, of.memory, of.memoryRead, of.f32, of.bf16, of.fp8,
                  of.fp4, of.l1, of.l2, of.l3, of.l2Read);
}

static auto constantsOf(const Host &of) {
  return std::tie(of.memory, of.link, of.bandwidth, of.efficiency, of.memoryBandwidth);
}

static auto constantsOf(const Tier &of) {
  return std::tie(of.name, of.count, of.link, of.bandwidth, of.latency, of.efficiency);
}

template <class T> static bool areSame(const T &a, const T &b) { return constantsOf(a) == constantsOf(b); }

bool isSameMachine(const Topology &a, const Topology &b) {
  return areSame(a.device, b.device) && areSame(a.device.kernels, b.device.kernels) &&
         a.device.measured.has_value() == b.device.measured.has_value() && a.host.has_value() == b.host.has_value() &&
         (!a.host || areSame(*a.host, *b.host)) &&
         std::equal(a.tiers.begin(), a.tiers.end(), b.tiers.begin(), b.tiers.end(), areSame<Tier>);
}

} // namespace k2c
