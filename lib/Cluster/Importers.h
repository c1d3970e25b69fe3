//===- Importers.h - One reader for each foreign format ---------------------===//
#ifndef K2C_LIB_CLUSTER_IMPORTERS_H
#define K2C_LIB_CLUSTER_IMPORTERS_H

#include "k2c/Cluster/Topology.h"

namespace k2c::cluster {

Expected<Topology> importNcclXml(const std::string &text, const std::string &file, const std::optional<Topology> &like);
Expected<Topology> importNvidiaSmi(const std::string &text, const std::string &file, const Topology &like);
Expected<Topology> importSlurmConf(const std::string &text, const std::string &file, const Topology &like);
Expected<Topology> importSlurmYaml(const std::string &text, const std::string &file, const Topology &like);

/// Words of a line and their columns (from 1).
struct Word {
  std::string text;
  size_t column;
};
std::vector<Word> wordsOf(const std::string &line);

std::string placeOf(const std::string &file, size_t line, size_t column);

//===----------------------------------------------------------------------===//
// Inside a node
//===----------------------------------------------------------------------===//

/// NVLink of a compute capability (90: sm_90), one way.
struct NvLinkRate {
  int64_t sm;
  Bandwidth link;
  int64_t links; ///< of a device
};
/// Errors: an unknown capability (lists the known).
Expected<NvLinkRate> nvLinkRate(int64_t sm, const std::string &where);

/// What joins the devices of one node.
struct NodeLinks {
  std::string file;
  NvLinkRate rate;
  std::vector<std::vector<int64_t>> counts; ///< links between two devices; through a switch, of a device
  bool switched = false;                    ///< every device has `counts` links in all; else for each other device
};
/// No tier for one device, `node` where all are joined alike, `nvlink` and `node` where equal groups are. Errors:
/// groups that differ, with both numbers.
Expected<std::vector<Tier>> tiersOfNode(const NodeLinks &links);

//===----------------------------------------------------------------------===//
// Between nodes
//===----------------------------------------------------------------------===//

/// "a[1-3,7]b[0-1],c" as names, in order. `total` counts the names of the whole file. Errors: unbalanced brackets,
/// empty or descending ranges, more than 65536 names.
Expected<std::vector<std::string>> expandHostList(const std::string &text, const std::string &where, size_t &total);

/// A switch or a block of Slurm: joins nodes or other switches.
struct SlurmUnit {
  std::string name;
  std::string where; ///< place of its definition
  std::vector<std::string> nodes, children;
};

/// Tiers and node names of a tree of switches. Errors: several roots, circles, units that differ in size, nodes that
/// occur twice.
Expected<Topology> topologyOfTree(const std::vector<SlurmUnit> &units, const std::string &file, const Topology &like);
/// The same of blocks: NVLink domains, joined by one network.
Expected<Topology> topologyOfBlocks(const std::vector<SlurmUnit> &blocks, const std::string &file,
                                    const Topology &like);

} // namespace k2c::cluster

#endif // K2C_LIB_CLUSTER_IMPORTERS_H
