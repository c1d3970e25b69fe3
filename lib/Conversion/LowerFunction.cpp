//===- LowerFunction.cpp - One scheduled function to the runtime form -----===//
//
// Every value of a scheduled function becomes an address. Which one was decided before: assign-memory gave offsets in
// the arena, assign-slots gave weights their slots, and the description of a kernel says of each argument of a launch
// which argument or result of the call it is. So this walk has no choices, and keeps the order of operands(desc).
//
// Weights and cache planes exist only for the layers that have them: a layer's index becomes its ordinal in that set.
//
//   layers [1 to 61]                     l - 1
//   layers [3 to 61 step 4]              (l - 3) / 4
//   [0 to 3], [5 to 9]                   the members of each range that are below l, added up
//
// A kernel that splits the keys of a query is more than one launch: it is launched again to merge its partials. Lists
// of layers and exchanges are in LowerLayers.cpp.
//
// Branches and loops stay what they are, but without results: rows that they forward lie in one place. All workers go
// the same way, as conditions and bounds are numbers that each computes alike, of the step's counts and of the layer.
//
//   %y = scf.if %few -> !x { .. scf.yield %0 }         scf.if %few { rt.launch @k grid(%g) args(.., %at) }
//
//===----------------------------------------------------------------------===//
#include "LowerFunction.h"
#include "dialects/Mem/Mem.h"
#include "dialects/Mla/Mla.h"
#include "dialects/Rt/RtFunctions.h"
#include "k2c/Kernels/LayoutAttr.h"
#include "k2c/Kernels/TileAttr.h"
#include "k2c/Transforms/BoundBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace k2c {

std::string planeName(nn::PoolOp pool, nn::PlaneAttr plane) {
  return (pool.getSymName() + "." + plane.getName()).str();
}

std::string siteName(int64_t site) { return "site" + std::to_string(site); }

FunctionLowering::FunctionLowering(ModuleOp scheduled, KernelDescriptions &descriptions)
    : symbols(scheduled), descriptions(descriptions), limits(nn::limitsOf(scheduled)) {
  for (auto own : scheduled.getOps<rt::WeightSlotsOp>())
    slots[{own.getFamilyAttr(), own.getLayout()}] = own;
}

/// Sampled logits lie in the step.
static bool livesInStep(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) { return isa<nn::SampleOp>(user); });
}

Value FunctionLowering::bufferAddress(OpBuilder &b, Value value, int64_t skip) {
  auto pointer = rt::PtrType::get(b.getContext());
  if (livesInStep(value))
    return rt::LogitsOp::create(b, value.getLoc(), pointer);
  return rt::ArenaOp::create(b, value.getLoc(), pointer, *mem::offsetOf(value), boundBytes(value.getType(), limits),
                             skip > 0 ? b.getI64IntegerAttr(skip) : IntegerAttr());
}

Value FunctionLowering::layerIndex(OpBuilder &b, int64_t offset) {
  if (offset == 0)
    return layer;
  Location loc = layer.getLoc();
  return arith::AddIOp::create(b, loc, layer, arith::ConstantIndexOp::create(b, loc, offset));
}

/// How many indices of `range` are below `layer`; exact for a member of the range when `clamp` is off.
static Value membersBelow(OpBuilder &b, Value layer, const IndexRange &range, bool clamp) {
  Location loc = layer.getLoc();
  auto number = [&](int64_t value) { return arith::ConstantIndexOp::create(b, loc, value).getResult(); };
  Value count = layer;
  int64_t shift = range.from - (clamp ? range.step - 1 : 0);
  if (shift != 0)
    count = arith::SubIOp::create(b, loc, count, number(shift));
  if (range.step != 1)
    count = arith::DivSIOp::create(b, loc, count, number(range.step));
  if (!clamp)
    return count;
  count = arith::MaxSIOp::create(b, loc, count, number(0));
  return arith::MinSIOp::create(b, loc, count, number(range.size()));
}

/// The position of the layer in `among`, of which it is a member.
Value FunctionLowering::layerOrdinal(OpBuilder &b, nn::IndicesAttr among) {
  Value &known = ordinals[among];
  if (known)
    return known;
  bool clamp = among.getRanges().size() > 1;
  for (const IndexRange &range : among.getRanges()) {
    Value below = membersBelow(b, layer, range, clamp);
    known = known ? arith::AddIOp::create(b, layer.getLoc(), known, below).getResult() : below;
  }
  return known;
}

/// The layout in which the kernel of `call` reads a weight.
Attribute FunctionLowering::layoutOf(kern::CallOp call, const Operand &operand) {
  return layoutAttr(call.getContext(), operand, weightsOf(symbols.lookup<kern::FuncOp>(call.getCallee())));
}

Value FunctionLowering::weightAddress(OpBuilder &b, kern::CallOp call, const kern::CallOp::Argument &argument,
                                      const Operand &operand) {
  kern::WeightAttr weight = argument.weight;
  rt::WeightSlotsOp own = slots.lookup({weight.getFamily(), layoutOf(call, operand)});
  auto family = symbols.lookup<nn::WeightsOp>(weight.getFamily().getValue());
  return rt::WeightOp::create(b, own.getLoc(), rt::PtrType::get(b.getContext()),
                              FlatSymbolRefAttr::get(own.getSymNameAttr()),
                              argument.value ? layerOrdinal(b, family.getDomain("layer")) : Value());
}

/// A view comes from the append of its layer, as no function takes one; the append's kernel names the pool.
Value FunctionLowering::planeAddress(OpBuilder &b, Value view, unsigned plane) {
  auto kernel = symbols.lookup<kern::FuncOp>(view.getDefiningOp<kern::CallOp>().getCallee());
  FlatSymbolRefAttr name;
  kernel.walk([&](nn::StateOp op) { name = op.getStatePool(); });
  auto pool = symbols.lookup<nn::PoolOp>(name.getValue());
  auto attr = cast<nn::PlaneAttr>(pool.getPlanes()[plane]);
  return rt::PlaneOp::create(b, view.getLoc(), rt::PtrType::get(b.getContext()),
                             FlatSymbolRefAttr::get(b.getContext(), planeName(pool, attr)),
                             layerOrdinal(b, pool.getLayers()));
}

/// A call works on rows of a kind: those that enter here, or those of a tensor-parallel group.
static bool worksOn(kern::CallOp call, nn::RowKind kind) {
  auto isOfKind = [kind](Type type) {
    nn::RowsAttr rows = nn::rowsOf(type);
    return rows && rows.getKind() == kind;
  };
  return llvm::any_of(call.getOperandTypes(), isOfKind) || llvm::any_of(call.getResultTypes(), isOfKind);
}
static UnitAttr gatheredAttr(kern::CallOp call) {
  return worksOn(call, nn::RowKind::Gathered) ? UnitAttr::get(call.getContext()) : UnitAttr();
}

static_assert(int(rt::Holder::Part) == int(dist::Holder::Part) && int(rt::Holder::Rank) == int(dist::Holder::Rank) &&
              int(rt::Holder::Node) == int(dist::Holder::Node) && int(rt::Holder::World) == int(dist::Holder::World));

Value FunctionLowering::argument(OpBuilder &b, kern::CallOp call, const Operand &operand,
                                 const ArgumentSource &source) {
  int64_t bytes =
      source.offset * byteWidth(operand.role == Operand::Role::Activation ? operand.rows.type : operand.type);
  if (source.kind == ArgumentSource::Constant)
    return Value(arith::ConstantIndexOp::create(b, call.getLoc(), source.offset));
  if (source.kind == ArgumentSource::OwnLayer)
    return layerIndex(b, 0);
  if (source.kind == ArgumentSource::Result) {
    Value result = call.getOutputs()[source.index];
    return operand.role == Operand::Role::Plane ? planeAddress(b, result, source.plane)
                                                : bufferAddress(b, result, bytes);
  }
  kern::CallOp::Argument argument = call.getCallArguments()[source.index];
  if (argument.weight)
    return weightAddress(b, call, argument, operand);
  auto placement = [&](rt::Part part) -> Value {
    return rt::PlacementOp::create(b, call.getLoc(), rt::PtrType::get(b.getContext()), layerOrdinal(b, source.among),
                                   source.experts, source.slots, part, static_cast<rt::Holder>(source.holder),
                                   operand.elements);
  };
  switch (operand.role) {
  case Operand::Role::Places:
    return placement(rt::Part::Places);
  case Operand::Role::Held:
    return placement(rt::Part::Held);
  case Operand::Role::Subtrees:
    return placement(rt::Part::Subtrees);
  case Operand::Role::Step:
    return rt::StepOp::create(b, call.getLoc(), rt::StepType::get(b.getContext()), gatheredAttr(call));
  case Operand::Role::Layer:
    return source.among ? layerOrdinal(b, source.among) : layerIndex(b, source.offset);
  case Operand::Role::Plane:
    return planeAddress(b, argument.value, source.plane);
  default:
    return bufferAddress(b, argument.value, bytes);
  }
}

/// Rows of `grid`'s space for each token row: the slots of a kernel over slot rows.
static int64_t slotsPerToken(kern::FuncOp kernel, const Grid &grid) {
  if (grid.space == RowSpace::Slot)
    for (Type type : kernel.getResultTypes())
      if (nn::RowsAttr rows = nn::rowsOf(type); rows && rows.getKind() == nn::RowKind::Slot)
        return rows.getPerToken();
  return 1;
}

/// The site whose rows a call works on: values that arrived there, or slots of these. None: the step's.
static FlatSymbolRefAttr arrivedAt(kern::CallOp call) {
  for (Type type :
       llvm::concat<const Type>(llvm::to_vector(call.getOperandTypes()), llvm::to_vector(call.getResultTypes())))
    if (nn::RowsAttr rows = nn::rowsOf(type);
        rows && rows.getSite() >= 0 && (rows.getKind() == nn::RowKind::Recv || rows.getKind() == nn::RowKind::Slot))
      return FlatSymbolRefAttr::get(call.getContext(), siteName(rows.getSite()));
  return {};
}

Value FunctionLowering::gridItems(OpBuilder &b, kern::CallOp call, const DescribedKernel &kernel) {
  auto callee = symbols.lookup<kern::FuncOp>(call.getCallee());
  Grid grid = gridOf(kernel.desc, tileConfig(callee.getTileAttr()));
  if (grid.rowsPerItem == 0)
    return arith::ConstantIntOp::create(b, call.getLoc(), b.getI64Type(), grid.itemsPerBlock);
  rt::Count count = grid.space == RowSpace::Output         ? rt::Count::Output
                    : worksOn(call, nn::RowKind::Entering) ? rt::Count::Entering
                    : gatheredAttr(call)                   ? rt::Count::Gathered
                                                           : rt::Count::Token;
  FlatSymbolRefAttr site = arrivedAt(call);
  Value rows = site ? rt::ArrivedOp::create(b, call.getLoc(), b.getI64Type(), site).getResult()
                    : rt::RowsOp::create(b, call.getLoc(), b.getI64Type(), count).getResult();
  return rt::GridOp::create(b, call.getLoc(), b.getI64Type(), rows, slotsPerToken(callee, grid), grid.rowsPerItem,
                            grid.itemsPerBlock);
}

/// Weights and state are those of the function's own layer, and every weight has slots in the layout that the kernel
/// reads.
LogicalResult FunctionLowering::checkCall(kern::CallOp call, const DescribedKernel &kernel) {
  SmallVector<kern::CallOp::Argument> arguments = call.getCallArguments();
  for (const kern::CallOp::Argument &argument : arguments)
    if (argument.value && argument.value.getType().isIndex() && numbers.lookupOrNull(argument.value) != layer)
      return call.emitError() << "lower-to-rt: the call takes an index that is not that of its function's layer; call "
                                 "the kernel in the function of that layer";
  for (auto [operand, source] : llvm::zip_equal(operands(kernel.desc), kernel.sources)) {
    kern::WeightAttr weight =
        source.kind == ArgumentSource::Argument ? arguments[source.index].weight : kern::WeightAttr();
    if (!weight)
      continue;
    Attribute layout = layoutOf(call, operand);
    if (!slots.contains({weight.getFamily(), layout}))
      return call.emitError() << "lower-to-rt: the call reads " << weight.getFamily() << " as " << layout
                              << ", for which there are no slots; run assign-slots first";
  }
  return success();
}

LogicalResult FunctionLowering::lowerCall(OpBuilder &b, kern::CallOp call) {
  auto callee = symbols.lookup<kern::FuncOp>(call.getCallee());
  const DescribedKernel &kernel = *descriptions.find(callee);
  if (failed(checkCall(call, kernel)))
    return failure();
  SmallVector<Value> arguments;
  for (auto [operand, source] : llvm::zip_equal(operands(kernel.desc), kernel.sources))
    arguments.push_back(argument(b, call, operand, source));
  TileConfig tile = tileConfig(callee.getTileAttr());
  if (tile.splitTokens > 0) {
    lowerSplit(b, call, kernel, tile.splitTokens, std::move(arguments));
    return success();
  }
  rt::LaunchOp::create(b, call.getLoc(), call.getCalleeAttr(), gridItems(b, call, kernel), arguments, arrivedAt(call),
                       gatheredAttr(call), call.getNowaitAttr());
  return success();
}

/// Two launches, told apart by the last argument, and workers meet between them. The second merges the partials of a
/// step of at most `splitTokens` tokens; it has no items in others.
void FunctionLowering::lowerSplit(OpBuilder &b, kern::CallOp call, const DescribedKernel &kernel, int64_t splitTokens,
                                  SmallVector<Value> arguments) {
  Location loc = call.getLoc();
  Type i64 = b.getI64Type();
  auto number = [&](int64_t value) { return arith::ConstantIntOp::create(b, loc, i64, value).getResult(); };
  const int64_t bytes =
      partialBytes(kernel.desc, tileConfig(symbols.lookup<kern::FuncOp>(call.getCallee()).getTileAttr()));
  arguments.push_back(
      rt::ArenaOp::create(b, loc, rt::PtrType::get(b.getContext()), *call.getPartials(), bytes, IntegerAttr()));
  arguments.push_back(number(0));
  const UnitAttr gathered = gatheredAttr(call);
  rt::LaunchOp::create(b, loc, call.getCalleeAttr(), gridItems(b, call, kernel), arguments, /*arrived=*/nullptr,
                       gathered, /*nowait=*/nullptr);
  Value tokens = rt::RowsOp::create(b, loc, i64, gathered ? rt::Count::Gathered : rt::Count::Token);
  Value below = arith::SubIOp::create(b, loc, number(splitTokens + 1), tokens);
  Value isSplit = arith::MinSIOp::create(b, loc, arith::MaxSIOp::create(b, loc, below, number(0)), number(1));
  Value most = rt::GridOp::create(b, loc, i64, isSplit, 1, 1, splitTokens);
  Grid merge = mergeGrid(kernel.desc);
  Value items = rt::GridOp::create(b, loc, i64, arith::MinSIOp::create(b, loc, tokens, most), 1, merge.rowsPerItem,
                                   merge.itemsPerBlock);
  arguments.back() = number(1);
  rt::LaunchOp::create(b, loc, call.getCalleeAttr(), items, arguments, /*arrived=*/nullptr, gathered,
                       call.getNowaitAttr());
}

/// Lowers what is in a region; what is computed there for later ops is not there behind it.
LogicalResult FunctionLowering::lowerRegion(Region &from, Region &into) {
  llvm::SaveAndRestore<llvm::DenseMap<nn::IndicesAttr, Value>> outer(ordinals);
  OpBuilder body(into.front().getTerminator());
  return lowerBlock(body, from.front());
}

/// Rows that `op` forwards lie in one place; what lies nowhere is refused.
static LogicalResult checkForwarded(Operation *op) {
  for (Type type : op->getResultTypes())
    if (!nn::rowsOf(type))
      return op->emitError() << "lower-to-rt: '" << op->getName() << "' forwards a " << type
                             << ", which has no place; only rows are forwarded";
  return success();
}

LogicalResult FunctionLowering::lowerIf(OpBuilder &b, scf::IfOp op) {
  if (failed(checkForwarded(op)))
    return failure();
  const bool hasElse = !op.getElseRegion().empty();
  auto lowered = scf::IfOp::create(b, op.getLoc(), numbers.lookup(op.getCondition()), hasElse);
  return failure(failed(lowerRegion(op.getThenRegion(), lowered.getThenRegion())) ||
                 (hasElse && failed(lowerRegion(op.getElseRegion(), lowered.getElseRegion()))));
}

LogicalResult FunctionLowering::lowerFor(OpBuilder &b, scf::ForOp op) {
  if (failed(checkForwarded(op)) || failed(rt::checkCount(op, "lower-to-rt")))
    return failure();
  auto lowered = scf::ForOp::create(b, op.getLoc(), numbers.lookup(op.getLowerBound()),
                                    numbers.lookup(op.getUpperBound()), numbers.lookup(op.getStep()));
  numbers.map(op.getInductionVar(), lowered.getInductionVar());
  return lowerRegion(op.getRegion(), lowered.getRegion());
}

/// All of `block` but its terminator.
LogicalResult FunctionLowering::lowerBlock(OpBuilder &b, Block &block) {
  for (Operation &op : block.without_terminator()) {
    LogicalResult done =
        TypeSwitch<Operation *, LogicalResult>(&op)
            .Case([&](kern::CallOp call) { return lowerCall(b, call); })
            .Case([&](nn::LayersOp layers) { return lowerLayers(b, layers), success(); })
            .Case([&](nn::SampleOp sample) { return rt::SampleOp::create(b, op.getLoc()), success(); })
            .Case([&](mla::MergeFormsOp) { return success(); })
            .Case([&](dist::AllToAllOp o) { return lowerCollective(b, o), success(); })
            .Case<dist::GatherSlicesOp, dist::ScatterSlicesOp>([&](auto o) { return lowerSlices(b, o), success(); })
            .Case([&](dist::ReceiveOp o) { return lowerStage(b, "receive", o.getSite(), o.getResult()), success(); })
            .Case([&](dist::SendOp o) { return lowerStage(b, "send", o.getSite(), o.getInput()), success(); })
            .Case([&](scf::IfOp branch) { return lowerIf(b, branch); })
            .Case([&](scf::ForOp loop) { return lowerFor(b, loop); })
            .Default([&](Operation *other) -> LogicalResult {
              if (failed(rt::checkNumber(other, "lower-to-rt")))
                return failure();
              return b.clone(*other, numbers), success();
            });
    if (failed(done))
      return failure();
  }
  return success();
}

LogicalResult FunctionLowering::lower(OpBuilder &b, FunctionOpInterface function) {
  const bool isLayer = isa<nn::LayerOp>(function);
  SmallVector<Type> inputs;
  if (isLayer)
    inputs.push_back(b.getIndexType());
  auto lowered = func::FuncOp::create(b, function.getLoc(), function.getName(), b.getFunctionType(inputs, {}));
  if (isLayer)
    lowered.setPrivate();
  OpBuilder body = OpBuilder::atBlockEnd(lowered.addEntryBlock());
  layer = isLayer ? Value(lowered.getArgument(0)) : Value();
  ordinals.clear();
  numbers.clear();
  if (isLayer)
    numbers.map(function.getArgument(0), layer);
  if (failed(lowerBlock(body, function.front())))
    return failure();
  func::ReturnOp::create(body, function.front().getTerminator()->getLoc());
  return success();
}

} // namespace k2c
