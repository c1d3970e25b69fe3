//===- LowerToRt.cpp - Calls become launches, values become pointers ------===//
//
// What is decided is written out: a value is an offset in the arena, a weight a slot, a cache view a plane of a layer,
// the batch the step. Functions keep their shape, one for each kind of layer, called in a loop over its indices.
// Kernels are emitted for the target, each as a module of its own beside the host code:
//
//   %a = kern.call @k(%x, @w[%l]) at [64]      %0 = rt.arena 0   %1 = rt.weight @w[%l]   %2 = rt.arena 64
//                                         ->   %g = rt.grid %t slots 1 rows_per_item 64 items 24
//                                              rt.launch @k grid(%g) args(%0, %1, %2)
//
//===----------------------------------------------------------------------===//
#include "LowerFunction.h"
#include "k2c/Conversion/Passes.h"
#include "k2c/Kernels/Emit.h"
#include "k2c/Kernels/TileAttr.h"
#include "k2c/Kernels/WeightShare.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringSet.h"

namespace k2c {
#define GEN_PASS_DEF_LOWERTORT
#include "k2c/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// A weight that the items of a block of rows read from end to end, as an argument's number and how it is cut.
struct Streamed {
  int64_t argument = 0;
  k2rt_share share = {};
};

/// The weight of a linear or a head linear. Which experts a grouped linear reads is only known at run time.
std::optional<Streamed> streamedWeight(const KernelDesc &desc) {
  if (!std::holds_alternative<LinearDesc>(desc.body) && !std::holds_alternative<HeadLinearDesc>(desc.body))
    return std::nullopt;
  for (auto [index, operand] : llvm::enumerate(operands(desc)))
    if (k2rt_share share = weightShare(desc, operand); share.items > 0 && share.groups == 1)
      return Streamed{int64_t(index), share};
  return std::nullopt;
}

/// Writes the runtime form of `scheduled` into a new module.
class ProgramLowering {
public:
  ProgramLowering(ModuleOp scheduled, const ProgramWeights &weights)
      : scheduled(scheduled), weights(weights), b(scheduled.getContext()) {}

  FailureOr<OwningOpRef<ModuleOp>> lower();

private:
  void writeWeightTables();
  void writePlaneTables();
  LogicalResult writeKernels();
  LogicalResult writeFunctions();

  ModuleOp scheduled;
  const ProgramWeights &weights;
  OpBuilder b;
  int64_t scratch = 0;
};

void ProgramLowering::writeWeightTables() {
  for (const WeightRange &range : weights.ranges())
    rt::WeightSlotsOp::create(b, range.family->getLoc(), range.name, range.first, range.count(), range.bytes(),
                              range.layout());
}

void ProgramLowering::writePlaneTables() {
  auto limits = scheduled->getAttrOfType<nn::LimitsAttr>("nn.limits");
  int64_t index = 0;
  for (auto pool : scheduled.getOps<nn::PoolOp>())
    for (nn::PlaneAttr plane : pool.getPlanes().getAsRange<nn::PlaneAttr>()) {
      int64_t tokens = limits.getSeq() * llvm::divideCeil(limits.getPositions(), pool.getPage()) * pool.getPage();
      int64_t bytes = tokens * plane.getWidth() * plane.getElement().getIntOrFloatBitWidth() / 8;
      rt::PlaneTableOp::create(b, pool.getLoc(), planeName(pool, plane), index++, pool.getLayers().size(), bytes);
    }
}

LogicalResult ProgramLowering::writeKernels() {
  int64_t id = 0;
  llvm::StringSet<> emitted;
  for (auto kernel : scheduled.getOps<kern::FuncOp>()) {
    const KernelDesc &desc = weights.kernel(kernel.getSymName()).desc;
    TileConfig tile = tileConfig(kernel.getTileAttr());
    scratch = std::max(scratch, scratchBytes(desc, tile));
    // Code is named by what it computes: equal descriptions share it, in this program and in the cache of objects.
    std::string symbol = "k2c_" + kernelHash(desc);
    std::vector<std::string> variants = variantNames(desc);
    auto listed = rt::KernelOp::create(b, kernel.getLoc(), kernel.getSymName(), id++, b.getStringAttr(symbol),
                                       b.getStrArrayAttr(SmallVector<StringRef>(variants.begin(), variants.end())),
                                       /*streams=*/nullptr, /*items=*/nullptr, /*bytes=*/nullptr);
    if (std::optional<Streamed> streamed = streamedWeight(desc)) {
      listed.setStreams(streamed->argument);
      listed.setItems(streamed->share.items);
      listed.setBytes(streamed->share.item_bytes);
    }
    if (!emitted.insert(symbol).second)
      continue;
    OwningOpRef<ModuleOp> code = emitKernel(b.getContext(), desc, tile, symbol);
    if (!code)
      return failure();
    code->setSymName(symbol + ".code");
    b.insert(code.release());
  }
  return success();
}

LogicalResult ProgramLowering::writeFunctions() {
  FunctionLowering lowering(scheduled, weights);
  for (auto function : scheduled.getOps<func::FuncOp>()) {
    if (failed(lowering.lower(b, function)))
      return failure();
    if (function->hasAttr("nn.entry"))
      rt::ProgramOp::create(b, function.getLoc(), "program", function.getSymName(),
                            scheduled->getAttrOfType<IntegerAttr>("mem.peak").getInt(), scratch);
  }
  return success();
}

FailureOr<OwningOpRef<ModuleOp>> ProgramLowering::lower() {
  OwningOpRef<ModuleOp> lowered = ModuleOp::create(scheduled.getLoc());
  b.setInsertionPointToEnd(lowered->getBody());
  writeWeightTables();
  writePlaneTables();
  if (failed(writeKernels()) || failed(writeFunctions()))
    return failure();
  return lowered;
}

/// What the pass reads without asking again: limits, peak, tiles and offsets.
LogicalResult checkScheduled(ModuleOp module) {
  auto missing = [](Operation *op, StringRef what, StringRef pass) {
    return op->emitError() << "lower-to-rt: " << what << "; run " << pass << " first";
  };
  if (!module->hasAttr("nn.limits") || !module->hasAttr("mem.peak"))
    return missing(module, "the module has no nn.limits or no mem.peak", "assign-memory");
  for (auto kernel : module.getOps<kern::FuncOp>())
    if (!kernel.getTile())
      return missing(kernel, "the kernel has no tile", "choose-tiles");
  for (auto function : module.getOps<func::FuncOp>())
    for (Type type : function.getArgumentTypes())
      if (!isa<IndexType, nn::BatchType>(type) && !(nn::rowsOf(type) && function->hasAttr("mem.argument")))
        return function.emitError() << "lower-to-rt: function '" << function.getSymName() << "' takes a " << type
                                    << ", which has no place; only layers of an nn.layers list take rows, and weights "
                                       "are families";
  WalkResult result = module.walk([&](kern::CallOp call) -> WalkResult {
    auto kernel = cast<kern::FuncOp>(SymbolTable::lookupNearestSymbolFrom(call, call.getCalleeAttr()));
    if (!call.getOffsets() || (kernel.getTileAttr().getSplitTokens() > 0 && !call->hasAttr("mem.partials")))
      return missing(call, "the call has no offsets", "assign-memory");
    return success();
  });
  return failure(result.wasInterrupted());
}

struct LowerToRt : impl::LowerToRtBase<LowerToRt> {
  using LowerToRtBase::LowerToRtBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkScheduled(module)))
      return signalPassFailure();
    FailureOr<ProgramWeights> weights = ProgramWeights::collect(module);
    if (failed(weights))
      return signalPassFailure();
    FailureOr<OwningOpRef<ModuleOp>> lowered = ProgramLowering(module, *weights).lower();
    if (failed(lowered))
      return signalPassFailure();
    for (NamedAttribute attr : llvm::to_vector(module->getDiscardableAttrs()))
      module->removeDiscardableAttr(attr.getName());
    module.getBodyRegion().takeBody((*lowered)->getBodyRegion());
  }
};

} // namespace
} // namespace k2c
