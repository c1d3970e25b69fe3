//===- ChooseTiles.cpp - Each kernel's tile, by the cost model ------------===//
//
// A kern.func is described (Kernels/Describe.h); the kernel model lists the tiles the target's registers can hold and
// prices them. The choice is written as `tile`, in the order of rising cost; N0 holds for all of them.
//
//===----------------------------------------------------------------------===//
#include "k2c/Kernels/Describe.h"
#include "k2c/Kernels/TileAttr.h"
#include "k2c/Kernels/TileConfig.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/Remark.h"

namespace k2c {
#define GEN_PASS_DEF_CHOOSETILES
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// Legal tiles of `desc` by rising cost.
std::vector<TileConfig> ranked(const KernelDesc &desc, const TargetInfo &target) {
  std::vector<TileConfig> tiles = candidates(desc, target);
  auto price = [&](const TileConfig &tile) {
    TileCost cost = tileCost(desc, tile, target);
    return std::make_pair(cost.cycles, cost.loads);
  };
  llvm::stable_sort(tiles, [&](const TileConfig &a, const TileConfig &b) { return price(a) < price(b); });
  return tiles;
}

struct ChooseTiles : impl::ChooseTilesBase<ChooseTiles> {
  using ChooseTilesBase::ChooseTilesBase;

  LogicalResult choose(kern::FuncOp kernel, Attribute machine, int64_t choice) {
    const TargetInfo target = targetInfo(machine);
    const DescribedKernel *described = getAnalysis<KernelDescriptions>().find(kernel);
    if (!described)
      return failure();
    std::vector<TileConfig> tiles = ranked(described->desc, target);
    if (tiles.empty())
      return kernel.emitError() << "choose-tiles: no tile of kernel '" << kernel.getSymName() << "' is legal on "
                                << target.lanes << " lanes and " << target.vectorRegisters << " vector registers";
    TileConfig tile = tiles[choice % tiles.size()];
    auto cpu = dyn_cast<kern::CpuAttr>(machine); // a GPU's step branches on no number of rows
    if (auto limits = nn::limitsOf(getOperation()); limits && cpu)
      tile.splitTokens =
          splitTokensFor(described->desc, tile, cpu.getCores(), limits.getStepRows(), limits.getPositions());
    kernel.setTileAttr(tileAttr(&getContext(), tile));
    std::string whole;
    llvm::raw_string_ostream(whole) << kernel.getTileAttr();
    remark(kernel.getLoc(), "choose-tiles", kernel.getSymName(),
           "kernel '" + kernel.getSymName().str() + "': " + std::to_string(tile.mr) + "x" +
               std::to_string(tile.nrVectors) + " of " + std::to_string(tiles.size()) + " tiles, " + whole,
           {{"cycles_per_thousand_multiply_adds", tileCost(described->desc, tile, target).cycles}});
    return success();
  }

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Scheduled, Form::Scheduled)))
      return signalPassFailure();
    FailureOr<Attribute> machine = targetOf(getOperation(), "choose-tiles");
    if (failed(machine))
      return signalPassFailure();
    dist::PlanAttr plan = planOf(getOperation());
    for (auto kernel : getOperation().getOps<kern::FuncOp>())
      if (failed(choose(kernel, *machine, plan ? plan.getTileChoice() : 0)))
        return signalPassFailure();
    markAnalysesPreserved<KernelDescriptions>();
  }
};

} // namespace
} // namespace k2c
