//===- Special.cpp - Special registers ------------------------------------===//
#include "Special.h"

namespace k2c::ptx {

std::optional<Special> specialNamed(std::string_view name) {
  static const std::map<std::string_view, Special> all = {
      {"tid.x", Special::TidX},
      {"tid.y", Special::TidY},
      {"tid.z", Special::TidZ},
      {"ntid.x", Special::NtidX},
      {"ntid.y", Special::NtidY},
      {"ntid.z", Special::NtidZ},
      {"ctaid.x", Special::CtaidX},
      {"ctaid.y", Special::CtaidY},
      {"ctaid.z", Special::CtaidZ},
      {"nctaid.x", Special::NctaidX},
      {"nctaid.y", Special::NctaidY},
      {"nctaid.z", Special::NctaidZ},
      {"laneid", Special::Laneid},
      {"warpid", Special::Warpid},
      {"nwarpid", Special::Nwarpid},
      {"lanemask_eq", Special::LanemaskEq},
      {"lanemask_lt", Special::LanemaskLt},
      {"lanemask_le", Special::LanemaskLe},
      {"lanemask_gt", Special::LanemaskGt},
      {"lanemask_ge", Special::LanemaskGe},
      {"cluster_ctaid.x", Special::ClusterCtaidX},
      {"cluster_ctaid.y", Special::ClusterCtaidY},
      {"cluster_ctaid.z", Special::ClusterCtaidZ},
      {"cluster_nctaid.x", Special::ClusterNctaidX},
      {"cluster_nctaid.y", Special::ClusterNctaidY},
      {"cluster_nctaid.z", Special::ClusterNctaidZ},
      {"cluster_ctarank", Special::ClusterCtarank},
      {"cluster_nctarank", Special::ClusterNctarank},
      {"clusterid.x", Special::ClusteridX},
      {"clusterid.y", Special::ClusteridY},
      {"clusterid.z", Special::ClusteridZ},
      {"nclusterid.x", Special::NclusteridX},
      {"nclusterid.y", Special::NclusteridY},
      {"nclusterid.z", Special::NclusteridZ},
      {"dynamic_smem_size", Special::DynamicSmemSize},
      {"total_smem_size", Special::TotalSmemSize},
  };
  const auto found = all.find(name);
  return found == all.end() ? std::nullopt : std::optional<Special>(found->second);
}

/// `special` is `first`, or one of the two other axes behind it.
static bool isOf(Special special, Special first, size_t &axis) {
  axis = static_cast<size_t>(special) - static_cast<size_t>(first);
  return axis < 3;
}

uint32_t specialValue(Special special, const Warp &warp, int lane, const Launch &launch, const Extent &cluster) {
  const Cta &cta = *warp.cta;
  const Extent &block = launch.block;
  const uint32_t thread = warp.index * warpLanes + static_cast<uint32_t>(lane), bit = uint32_t(1) << lane;
  size_t axis = 0;
  if (isOf(special, Special::TidX, axis))
    return Extent{thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1]}[axis];
  if (isOf(special, Special::NtidX, axis))
    return block[axis];
  if (isOf(special, Special::CtaidX, axis))
    return cta.id[axis];
  if (isOf(special, Special::NctaidX, axis))
    return launch.grid[axis];
  if (isOf(special, Special::ClusterCtaidX, axis))
    return cta.id[axis] % cluster[axis];
  if (isOf(special, Special::ClusterNctaidX, axis))
    return cluster[axis];
  if (isOf(special, Special::ClusteridX, axis))
    return cta.id[axis] / cluster[axis];
  if (isOf(special, Special::NclusteridX, axis))
    return launch.grid[axis] / cluster[axis];
  switch (special) {
  case Special::Laneid:
    return static_cast<uint32_t>(lane);
  case Special::Warpid:
    return warp.index;
  case Special::Nwarpid:
    return static_cast<uint32_t>(cta.warps.size());
  case Special::LanemaskEq:
    return bit;
  case Special::LanemaskLt:
    return bit - 1;
  case Special::LanemaskLe:
    return bit | (bit - 1);
  case Special::LanemaskGt:
    return ~(bit | (bit - 1));
  case Special::LanemaskGe:
    return ~(bit - 1);
  case Special::ClusterCtarank:
    return cta.rank;
  case Special::ClusterNctarank:
    return static_cast<uint32_t>(product(cluster));
  case Special::DynamicSmemSize:
    return static_cast<uint32_t>(launch.sharedBytes);
  default: // TotalSmemSize
    return static_cast<uint32_t>(cta.shared.size());
  }
}

} // namespace k2c::ptx
