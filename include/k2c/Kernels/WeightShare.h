//===- WeightShare.h - Which bytes of a weight a worker reads ------------------===//
//
// gridOf() says what an item computes; here it is told from the side of the packed weights: how an operand's bytes are
// cut by the items of a launch, so that the runtime can bring each worker's part into the memory of its NUMA node.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_WEIGHTSHARE_H
#define K2C_KERNELS_WEIGHTSHARE_H

#include "k2c/Kernels/TileConfig.h"
#include "k2rt/share.h"

namespace k2c {

/// How launches of `desc` read its weight operand `weight`, which lies in `layout` (k2rt/share.h):
///   linear, head linear   the panels, one behind the other
///   linear, grouped       a block an expert, its items the panels
///   expanded attention    a head's panels
/// No items: rows chosen by the step (embedding), norms, biases, tables, which all workers read; matrices in rows,
/// whose gate and up columns lie apart.
k2rt_share weightShare(const KernelDesc &desc, const Operand &weight, WeightLayout layout);

/// Bytes that a weight slot of `payload` bytes takes in blobs and in memory: whole pages; routed experts (0: none) are
/// equal parts of the payload, each of whole pages.
inline int64_t slotBytes(int64_t payload, int64_t experts) {
  const int64_t ranges = experts > 0 ? experts : 1;
  return (payload / ranges + blobAlignment - 1) / blobAlignment * blobAlignment * ranges;
}

/// Which stages of ranks read a slot that is of no layer.
enum class SlotStage : uint8_t { All, First, Last };

/// `slots` weight slots, one after another, that are read alike.
struct SlotShares {
  int64_t slots = 0;
  k2rt_share share = {};
  SlotStage stage = SlotStage::All;
  int64_t parts = 1; ///< of each weight, a slot for each: slot i is part i modulo parts
};

/// Appends `run`, to the last entry where that is read alike.
void appendShare(std::vector<SlotShares> &shares, const SlotShares &run);

} // namespace k2c

#endif // K2C_KERNELS_WEIGHTSHARE_H
