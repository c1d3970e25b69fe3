//===- LowerToRt.cpp - Calls become launches, values become pointers ------===//
//
// What is decided is written out: a value is an offset in the arena, a weight a slot, a cache view a plane of a layer,
// the batch the step. Functions keep their shape, one for each kind of layer, called in a loop over its indices.
// Kernels become numbers; the code that emit-kernels wrote for them comes behind the host code:
//
//   %a = kern.call @k(%x, @w[%l]) at [64]      %0 = rt.arena 0 bytes 64   %1 = rt.weight @w[%l]
//                                              %2 = rt.arena 64 bytes 64
//                                         ->   %g = rt.grid %t slots 1 rows_per_item 64 items 24
//                                              rt.launch @k grid(%g) args(%0, %1, %2)
//
//===----------------------------------------------------------------------===//
#include "LowerFunction.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Mem/Mem.h"
#include "dialects/Mla/Mla.h"
#include "k2c/Conversion/Passes.h"
#include "k2c/Kernels/Cost.h"
#include "k2c/Kernels/Cpu.h"
#include "k2c/Kernels/TileAttr.h"
#include "k2c/Kernels/TouchAttr.h"
#include "k2c/Kernels/WeightShare.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/PlanAttr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

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
std::optional<Streamed> streamedWeight(const KernelDesc &desc, WeightLayout weights) {
  if (!std::holds_alternative<LinearDesc>(desc.body) && !std::holds_alternative<HeadLinearDesc>(desc.body))
    return std::nullopt;
  for (auto [index, operand] : llvm::enumerate(operands(desc)))
    if (k2rt_share share = weightShare(desc, operand, weights); share.items > 0 && share.experts == 0)
      return Streamed{int64_t(index), share};
  return std::nullopt;
}

/// Writes the runtime form of `scheduled` into a new module.
class ProgramLowering {
public:
  ProgramLowering(ModuleOp scheduled, KernelDescriptions &descriptions)
      : scheduled(scheduled), descriptions(descriptions), b(scheduled.getContext()) {}

  FailureOr<OwningOpRef<ModuleOp>> lower();

private:
  void copyWeights();
  void writePlaneTables();
  void writeCollectives();
  LogicalResult writeKernels();
  LogicalResult writeFunctions();
  void moveCode();

  ModuleOp scheduled;
  KernelDescriptions &descriptions;
  OpBuilder b;
};

/// Slots and the families that have some stay what they are: the packer reads them.
void ProgramLowering::copyWeights() {
  SymbolTable symbols(scheduled);
  llvm::SetVector<Operation *> families;
  for (auto slots : scheduled.getOps<rt::WeightSlotsOp>())
    families.insert(symbols.lookup(slots.getFamily()));
  for (Operation *family : families)
    b.clone(*family);
  for (auto slots : scheduled.getOps<rt::WeightSlotsOp>())
    b.clone(*slots);
}

void ProgramLowering::writePlaneTables() {
  nn::LimitsAttr limits = nn::limitsOf(scheduled);
  int64_t index = 0;
  for (auto pool : scheduled.getOps<nn::PoolOp>())
    for (auto plane : pool.getPlanes().getAsRange<nn::PlaneAttr>())
      rt::PlaneTableOp::create(b, pool.getLoc(), planeName(pool, plane), index++, pool.getLayers().size(),
                               plane.getName(), plane.getWidth(), plane.getElement(), nn::pagesOf(pool, limits),
                               pool.getGroup(), nn::planeBytes(pool, plane, limits));
}

/// A row of what travels, in bytes.
int64_t rowBytes(Value rows) {
  auto type = cast<RankedTensorType>(rows.getType());
  return ShapedType::getNumElements(type.getShape().drop_front()) * type.getElementTypeBitWidth() / 8;
}

void ProgramLowering::writeCollectives() {
  SmallVector<Operation *> sites;
  scheduled.walk([&](Operation *op) {
    if (dist::siteOf(op))
      sites.push_back(op);
  });
  llvm::sort(sites, [](Operation *a, Operation *b) { return *dist::siteOf(a) < *dist::siteOf(b); });
  const int64_t sliced = stageRanksOf(scheduled).ofGroup;
  const auto stages = std::max<int64_t>(static_cast<int64_t>(stagesOf(scheduled).size()) - 1, 1);
  auto list = [&](Operation *op, rt::Collective kind, rt::Axis axis, int64_t members, IntegerAttr quota,
                  IntegerAttr to) {
    const int64_t site = *dist::siteOf(op);
    rt::CollectiveOp::create(b, op->getLoc(), siteName(site), site, kind, axis, members, rowBytes(op->getOperand(0)),
                             quota, to);
  };
  for (Operation *op : sites)
    TypeSwitch<Operation *>(op)
        .Case([&](dist::AllToAllOp all) {
          list(op, rt::Collective::AllToAllRows, static_cast<rt::Axis>(all.getAxis()),
               all.getTo().getType().getMembers(), all.getQuotaAttr(), {});
        })
        .Case([&](dist::GatherSlicesOp) { list(op, rt::Collective::GatherSlices, rt::Axis::Tp, sliced, {}, {}); })
        .Case([&](dist::ScatterSlicesOp) { list(op, rt::Collective::ScatterSlices, rt::Axis::Tp, sliced, {}, {}); })
        .Case([&](dist::SendOp send) {
          list(op, rt::Collective::Send, rt::Axis::Pp, stages, {}, b.getI64IntegerAttr(send.getTo()));
        })
        .Case([&](dist::ReceiveOp) { list(op, rt::Collective::Receive, rt::Axis::Pp, stages, {}, {}); });
}

/// costRule() of a kernel, as the manifest states it.
DictionaryAttr costAttr(Builder &b, const KernelDesc &desc, WeightLayout weights) {
  const CostRule cost = costRule(desc, weights);
  NamedAttrList fields;
  fields.append("rows", b.getStringAttr(nameOf(cost.rows)));
  visitNumbers(cost, /*all=*/false, [&](StringRef name, auto number) {
    if constexpr (std::is_integral_v<decltype(number)>)
      fields.append(name, b.getI64IntegerAttr(number));
    else
      fields.append(name, b.getF64FloatAttr(number));
  });
  return fields.getDictionary(b.getContext());
}

LogicalResult ProgramLowering::writeKernels() {
  int64_t id = 0;
  for (auto kernel : scheduled.getOps<kern::FuncOp>()) {
    const DescribedKernel *described = descriptions.find(kernel);
    if (!described)
      return failure();
    const KernelDesc &desc = described->desc;
    const WeightLayout weights = weightsOf(kernel);
    std::vector<std::string> variants = variantNames(desc);
    auto listed =
        rt::KernelOp::create(b, kernel.getLoc(), kernel.getSymName(), id++, b.getStringAttr(kernelSymbol(desc)),
                             b.getStrArrayAttr(SmallVector<StringRef>(variants.begin(), variants.end())),
                             /*streams=*/nullptr, /*items=*/nullptr, /*bytes=*/nullptr, costAttr(b, desc, weights),
                             touchesAttr(b.getContext(), desc, tileConfig(kernel.getTileAttr())));
    if (std::optional<Streamed> streamed = streamedWeight(desc, weights)) {
      listed.setStreams(streamed->argument);
      listed.setItems(streamed->share.items);
      listed.setBytes(streamed->share.item_bytes);
    }
  }
  return success();
}

LogicalResult ProgramLowering::writeFunctions() {
  FunctionLowering lowering(scheduled, descriptions);
  auto certificate = scheduled->getAttrOfType<mem::CertificateAttr>(mem::MemDialect::certificateAttrName);
  const bool isLatent = llvm::any_of(scheduled.getOps<kern::FuncOp>(), [](kern::FuncOp kernel) {
    return kernel.walk([](mla::AppendOp) { return WalkResult::interrupt(); }).wasInterrupted();
  });
  auto plan = scheduled->getAttrOfType<dist::PlanAttr>(dist::DistDialect::planAttrName);
  const IntegerAttr expandedFrom = isLatent && plan ? b.getI64IntegerAttr(plan.getExpandedFrom()) : IntegerAttr();
  NamedAttrList entries;
  for (FunctionOpInterface function : kern::stepFunctions(scheduled)) {
    if (failed(lowering.lower(b, function)))
      return failure();
    if (auto entry = function->getAttrOfType<StringAttr>(nn::NnDialect::entryAttrName))
      entries.append(entry, FlatSymbolRefAttr::get(function.getNameAttr()));
  }
  if (entries.empty())
    return success();
  rt::ProgramOp::create(b, scheduled.getLoc(), b.getStringAttr("program"), entries.getDictionary(b.getContext()),
                        b.getI64IntegerAttr(certificate.getArena()), b.getI64IntegerAttr(certificate.getScratch()),
                        expandedFrom, /*second=*/IntegerAttr());
  return success();
}

/// Code of kernels, most of the program's text: moved, never copied, and behind the host program, which is read first.
void ProgramLowering::moveCode() {
  for (auto code : llvm::make_early_inc_range(scheduled.getOps<ModuleOp>())) {
    code->remove();
    b.insert(code);
  }
}

FailureOr<OwningOpRef<ModuleOp>> ProgramLowering::lower() {
  OwningOpRef<ModuleOp> lowered = ModuleOp::create(scheduled.getLoc());
  b.setInsertionPointToEnd(lowered->getBody());
  copyWeights();
  writePlaneTables();
  writeCollectives();
  if (failed(writeKernels()) || failed(writeFunctions()))
    return failure();
  moveCode();
  return lowered;
}

/// What the pass reads without asking again: limits, peak, tiles and offsets.
LogicalResult checkScheduled(ModuleOp module) {
  auto missing = [](Operation *op, StringRef what, StringRef pass) {
    return op->emitError() << "lower-to-rt: " << what << "; run " << pass << " first";
  };
  if (!nn::limitsOf(module) || !module->hasAttr(mem::MemDialect::certificateAttrName))
    return missing(module, "the module has no nn.limits or no mem.certificate", "certify-memory");
  for (auto kernel : module.getOps<kern::FuncOp>())
    if (!kernel.getTile())
      return missing(kernel, "the kernel has no tile", "choose-tiles");
  llvm::StringSet<> entries;
  for (FunctionOpInterface function : kern::stepFunctions(module))
    if (auto entry = function->getAttrOfType<StringAttr>(nn::NnDialect::entryAttrName);
        entry && !entries.insert(entry).second)
      return function.emitError() << "lower-to-rt: a second function is the entry '" << entry.getValue()
                                  << "'; give it a name of its own";
  for (FunctionOpInterface function : kern::stepFunctions(module))
    for (BlockArgument argument : function.getArguments())
      if (Type type = argument.getType();
          !isa<nn::BatchType>(type) && !(isa<nn::LayerOp>(function) && (type.isIndex() || mem::offsetOf(argument))))
        return function.emitError() << "lower-to-rt: function '" << function.getName() << "' takes a " << type
                                    << ", which has no place; only layers of an nn.layers list take rows, and weights "
                                       "are families";
  for (FunctionOpInterface function : kern::stepFunctions(module)) {
    WalkResult result = function->walk([&](kern::CallOp call) -> WalkResult {
      auto kernel = cast<kern::FuncOp>(SymbolTable::lookupNearestSymbolFrom(call, call.getCalleeAttr()));
      if (!call.getOffsets() || (kernel.getTileAttr().getSplitTokens() > 0 && !call.getPartials()))
        return missing(call, "the call has no offsets", "assign-memory");
      return success();
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

/// Every result of a collective has an offset, and sites are numbered from 0.
LogicalResult checkCollectives(ModuleOp module) {
  WalkResult result = module.walk([&](nn::PlacedOp op) -> WalkResult {
    if (!dist::siteOf(op))
      return success();
    const size_t offsets = op.getOffsets().value_or(ArrayRef<int64_t>()).size();
    if (offsets == op->getNumResults())
      return success();
    return op->emitError() << "lower-to-rt: the collective has " << offsets << " offsets of its " << op->getNumResults()
                           << " results; run assign-memory first";
  });
  return failure(result.wasInterrupted() || failed(dist::checkSites(module, "lower-to-rt")));
}

struct LowerToRt : impl::LowerToRtBase<LowerToRt> {
  using LowerToRtBase::LowerToRtBase;

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Scheduled, Form::Scheduled)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    if (failed(checkScheduled(module)) || failed(checkCollectives(module)))
      return signalPassFailure();
    FailureOr<OwningOpRef<ModuleOp>> lowered = ProgramLowering(module, getAnalysis<KernelDescriptions>()).lower();
    if (failed(lowered))
      return signalPassFailure();
    module->removeDiscardableAttr(
        mem::MemDialect::peakAttrName); // carried out; what identifies the program and its plan stays
    module.getBodyRegion().takeBody((*lowered)->getBodyRegion());
  }
};

} // namespace
} // namespace k2c
