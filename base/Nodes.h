// NUMA nodes: which processors of this process are near which memory.
#ifndef K2C_BASE_NODES_H
#define K2C_BASE_NODES_H

#include <cstdint>
#include <string>
#include <vector>

namespace k2c {

/// A node that has processors of this process.
struct Node {
  int32_t number = 0;          ///< the system's
  std::vector<int> processors; ///< ascending, never empty
  int32_t memory = 0;          ///< the node its processors' memory comes from: the nearest that has any
};

/// The nodes of `processors` (ascending, not empty), in the order of their numbers; each processor is in exactly one.
/// A system that says nothing, and processors that it puts nowhere: the first node. `root` as in readContainer.
std::vector<Node> readNodes(const std::vector<int> &processors, const std::string &root = "/");

/// The numbers of a sysfs list, "0-3,8,10-11", ascending; what is no list is empty. At most 65,536 numbers.
std::vector<int> parseNumberList(const std::string &text);

} // namespace k2c

#endif
