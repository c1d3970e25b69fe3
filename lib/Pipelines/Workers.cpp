//===- Workers.cpp - What the workers of the topology have to do ----------===//
#include "Workers.h"

#include "k2c/Kernels/Cost.h"
#include <algorithm>

namespace k2c {

namespace {

std::string counted(int64_t count, const std::string &what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

void remarkNodes(const Device &device, const std::vector<SlotShares> &shares, Plan &plan) {
  std::string text = counted(device.cores, "worker") + " on " + counted(int64_t(device.numa.size()), "NUMA node");
  int64_t first = 0;
  for (size_t node = 0; node < device.numa.size(); ++node) {
    int64_t last = first + device.numa[node], bytes = 0;
    for (const SlotShares &run : shares)
      bytes += run.slots / run.parts * k2rt_share_bytes(&run.share, first, last, device.cores);
    text += std::string(node == 0 ? ": " : "; ") + "node " + std::to_string(node) + " has workers " +
            std::to_string(first) + "-" + std::to_string(last - 1) + " and reads " + format(Bytes(bytes)) +
            " of the weights";
    first = last;
  }
  plan.remarks.push_back({"place-workers", text, {}});
}

/// Whether an item is a row: as many items as the step has rows. Attention's cost is in what a row reads.
bool isByRow(const KernelDesc &desc, const Grid &grid) {
  return !std::holds_alternative<PermutationDesc>(desc.body) && !std::holds_alternative<GqaAttentionDesc>(desc.body) &&
         grid.rowsPerItem == 1 && grid.itemsPerBlock == 1;
}

/// Items of a step of `rows` rows, its sequences as long as the limits allow.
int64_t itemsOf(const ProgramKernel &kernel, int64_t rows, const Limits &limits) {
  TileConfig tile = kernel.tile;
  if (rows > tile.splitTokens)
    tile.splitTokens = 0;
  const Grid grid = gridOf(kernel.desc, tile);
  const int64_t items = itemCount(grid, rows * grid.slotsPerToken);
  return tile.splitTokens > 0 ? items / maxPartials * softmaxPartials(limits.maxContext - 1) : items;
}

/// What the kernels move in a step of one token, each in all of its launches; those of prompts have no rows in it.
void remarkCosts(const std::vector<ProgramKernel> &kernels, Plan &plan) {
  const CountedRows other = plan.expandedFrom == 0 ? CountedRows::Absorbed : CountedRows::Expanded;
  for (const ProgramKernel &kernel : kernels) {
    if (kernel.launches == 0 || costRule(kernel.desc, WeightLayout::Panels).rows == other)
      continue;
    const Cost cost = count(kernel.desc, {1, 1, 1});
    const int64_t weights = kernel.launches * cost.weights.value;
    const int64_t activations = kernel.launches * (cost.read.value + cost.written.value);
    const int64_t bytes = weights + activations + kernel.launches * cost.cache.value;
    plan.remarks.push_back(
        {"step-cost",
         std::to_string(kernel.launches) + (kernel.launches == 1 ? " launch" : " launches") + " of '" +
             kernel.desc.name + "' in a step of one token: " + format(Bytes(bytes)),
         {{"launches", double(kernel.launches)}, {"bytes", double(bytes)}, {"activation_bytes", double(activations)}}});
  }
}

} // namespace

void remarkWorkers(const Device &device, const std::vector<SlotShares> &shares,
                   const std::vector<ProgramKernel> &kernels, Plan &plan) {
  if (device.numa.size() > 1)
    remarkNodes(device, shares, plan);
  remarkCosts(kernels, plan);
  const int64_t workers = device.cores;
  const int64_t rows = plan.limits.maxSequences; // of generated tokens in a step
  for (const ProgramKernel &kernel : kernels) {
    const Grid grid = gridOf(kernel.desc, kernel.tile);
    // Expanded attention is for prompts.
    if (kernel.launches == 0 || isByRow(kernel.desc, grid) ||
        std::holds_alternative<ExpandedAttentionDesc>(kernel.desc.body))
      continue;
    const int64_t alone = itemsOf(kernel, 1, plan.limits);
    if (alone >= workers)
      continue;
    const int64_t together = itemsOf(kernel, rows, plan.limits);
    plan.remarks.push_back({"share-launches",
                            "@" + kernel.desc.name + ": " + counted(alone, "item") + " for " +
                                counted(workers, "worker") + " in a step of one row, " + std::to_string(together) +
                                " in one of " + counted(rows, "row") + "; " + std::to_string(kernel.launches) +
                                (kernel.launches == 1 ? " launch" : " launches") + " a step",
                            {{"items", double(alone)}, {"idle", double(workers - alone)}}});
  }
}

} // namespace k2c
