//===- Import.h - Topologies from descriptions that clusters already have ---===//
//
// Four formats, told apart by what stands in them: NCCL's topology XML (NCCL_TOPO_DUMP_FILE), Slurm's topology.conf and
// topology.yaml, the matrix of `nvidia-smi topo -m`. Each says a part: the first and the last one node's links, Slurm's
// which nodes are near each other. What a file leaves open (device, bandwidths between nodes) comes from a topology
// that it is like. docs/Topology.md says what is taken from where.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_CLUSTER_IMPORT_H
#define K2C_CLUSTER_IMPORT_H

#include "k2c/Cluster/Topology.h"

namespace k2c {

/// Reads `text`, called `file` in errors and sources, which carry line and column. `like`: a topology with the same
/// devices and links; none: only NCCL's XML says enough. The file is hostile input: size, depth, names and the
/// number of nodes are bounded.
Expected<Topology> importTopology(const std::string &text, const std::string &file,
                                  const std::optional<Topology> &like);

/// The same of a file of at most 4 MiB; `like` is a built-in or the path of a topology file, or empty.
Expected<Topology> importTopologyFile(const std::string &path, const std::string &like);

} // namespace k2c

#endif // K2C_CLUSTER_IMPORT_H
