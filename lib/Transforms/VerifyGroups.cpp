//===- VerifyGroups.cpp - What one worker writes, no other reads ----------===//
//
// Proofs from the bytes of the arena, whatever pass has placed them. Between the calls of a group no barrier is
// needed, by the rules of CallEffects.h. Between an asynchronous start and its wait nothing touches the bytes that its
// work touches, if one of the two writes them:
//
//   %t, %y = copy.start %x          at [2560]
//   %a = kern.call @add(%z, %z) at [5120]        reads and writes other bytes
//   %b = kern.call @add(%y, %z) at [7680]        refused: %y is being written
//   copy.wait %t
//
// Every start has a wait that is sure to run. What control flow forwards lies where it is taken, and so does what a
// list hands to its layers, and they to the next. An op that says neither where its results lie nor what it does with
// its operands may touch all of them anywhere.
//
//===----------------------------------------------------------------------===//
#include "VerifyGroups.h"
#include "CallEffects.h"
#include "Timeline.h"
#include "dialects/Mem/Mem.h"

using namespace mlir;

namespace k2c {

namespace {

/// Bytes [begin, end) of the arena, or somewhere in the step, or nobody knows where.
struct Bytes {
  enum class Where : uint8_t { Arena, Step, Unknown };
  int64_t begin = 0, end = 0;
  Where where = Where::Arena;
};

std::string text(const Bytes &bytes) {
  if (bytes.where == Bytes::Where::Step)
    return "the step's logits";
  if (bytes.where == Bytes::Where::Unknown)
    return "a value without an offset";
  return "bytes [" + std::to_string(bytes.begin) + ", " + std::to_string(bytes.end) + ") of the arena";
}

/// A value that an op touches.
struct Touched {
  Value value;
  bool isWritten;
};

/// A call and what it touches.
struct Member {
  kern::CallOp call;
  CallEffects effects;
};

class Groups {
public:
  Groups(FunctionOpInterface function, SymbolTable &symbols, KernelDescriptions &descriptions, nn::LimitsAttr limits,
         bool isOnGpu)
      : function(function), symbols(symbols), descriptions(descriptions), limits(limits), isOnGpu(isOnGpu),
        timeline(function, limits) {}

  LogicalResult verify();

private:
  Bytes bytesOf(Value value);
  Bytes bytesAt(std::optional<int64_t> offset, Type type);
  std::optional<int64_t> offsetOf(Value value);
  Overlap overlap(Value a, Value b);
  LogicalResult verifyPair(Member &first, Member &second);
  LogicalResult verifyBlock(Block &block);
  FailureOr<SmallVector<Touched>> touchedBy(Operation *op);
  LogicalResult verifyFlight(Flight &flight, Operation *op);
  LogicalResult verifyForwards(RegionBranchOpInterface branch);
  LogicalResult verifyTaken(nn::LayersOp layers);
  LogicalResult verifyYielded(nn::LayerOp layer);

  FunctionOpInterface function;
  SymbolTable &symbols;
  KernelDescriptions &descriptions;
  nn::LimitsAttr limits;
  const bool isOnGpu;
  Timeline timeline;
};

/// The argument of a function that nn.layers does not call has no place, and lies below the arena.
std::optional<int64_t> Groups::offsetOf(Value value) {
  Value origin = mem::originOf(value);
  if (!origin)
    return std::nullopt;
  return mem::offsetOf(origin).value_or(-boundBytes(origin.getType(), limits));
}

Bytes Groups::bytesOf(Value value) {
  if (livesInStep(value))
    return {0, 0, Bytes::Where::Step};
  return bytesAt(offsetOf(value), value.getType());
}

Bytes Groups::bytesAt(std::optional<int64_t> offset, Type type) {
  if (!offset)
    return {0, 0, Bytes::Where::Unknown};
  return {*offset, *offset + boundBytes(type, limits)};
}

Overlap Groups::overlap(Value a, Value b) {
  Bytes first = bytesOf(a), second = bytesOf(b);
  if (first.where == Bytes::Where::Unknown || second.where == Bytes::Where::Unknown)
    return Overlap::Partial;
  if (first.where == Bytes::Where::Step || second.where == Bytes::Where::Step)
    return first.where == second.where ? Overlap::Same : Overlap::None;
  if (first.end <= second.begin || second.end <= first.begin)
    return Overlap::None;
  return first.begin == second.begin && a.getType() == b.getType() ? Overlap::Same : Overlap::Partial;
}

LogicalResult Groups::verifyPair(Member &first, Member &second) {
  Shared shared;
  auto lie = [&](Value a, Value b) { return overlap(a, b); };
  if (!needsBarrier(orderOf(first.effects, second.effects, lie, &shared), isOnGpu))
    return success();
  std::string what = shared.first ? text(bytesOf(shared.second)) + " while others have " + text(bytesOf(shared.first))
                                  : "the cache, a capture or partials that others have";
  return second.call->emitError() << "scheduled form: touches " << what << " in a nowait call of @"
                                  << first.call.getCallee()
                                  << "; workers must meet between the two, as group-launches leaves it";
}

LogicalResult Groups::verifyBlock(Block &block) {
  std::vector<Member> group; // nowait calls since the last barrier
  for (Operation &op : block) {
    auto call = dyn_cast<kern::CallOp>(op);
    if (isJoin(&op) || (!call && group.empty()))
      continue;
    if (!call)
      return group.back().call.emitError() << "scheduled form: the call is nowait, and '" << op.getName()
                                           << "' follows; workers must meet first, as group-launches leaves it";
    if (!call.getNowait() && group.empty())
      continue;
    FailureOr<CallEffects> effects = effectsOf(call, symbols, descriptions);
    if (failed(effects))
      return failure();
    Member member{call, std::move(*effects)};
    for (Member &other : group)
      if (failed(verifyPair(other, member)))
        return failure();
    if (call.getNowait())
      group.push_back(std::move(member));
    else
      group.clear();
  }
  return success();
}

/// What the functions of `layers` write: what they carry lies where the list's lies, all else is results of theirs.
static void addResults(nn::LayersOp layers, SymbolTable &symbols, SmallVector<Touched> &touched) {
  for (FlatSymbolRefAttr callee : layers.getCallees())
    symbols.lookup(callee.getValue())->walk([&](nn::PlacedOp op) {
      for (Value result : op->getResults())
        touched.push_back({result, true});
    });
}

/// The values with memory that `op` itself touches: not what is in its regions, and not what is only forwarded.
FailureOr<SmallVector<Touched>> Groups::touchedBy(Operation *op) {
  SmallVector<Touched> touched;
  if (auto call = dyn_cast<kern::CallOp>(op)) {
    FailureOr<CallEffects> effects = effectsOf(call, symbols, descriptions);
    if (failed(effects))
      return failure();
    for (const CallEffects::Touched &one : effects->touched)
      if (one.value())
        touched.push_back({one.value(), one.effect.isWritten()});
  } else if (auto start = dyn_cast<nn::AsyncStart>(op)) {
    for (Value value : start.getReadValues())
      touched.push_back({value, false});
    for (Value value : start.getWrittenValues())
      touched.push_back({value, true});
  } else if (!isJoin(op) && op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>()) {
    auto layers = dyn_cast<nn::LayersOp>(op);
    for (ValueRange values : {ValueRange(op->getOperands()), ValueRange(op->getResults())})
      for (Value value : values)
        if (boundBytes(value.getType(), limits) > 0)
          touched.push_back(
              {value, !layers || value.getDefiningOp() == op || llvm::is_contained(layers.getCarried(), value)});
    if (layers)
      addResults(layers, symbols, touched);
  }
  return touched;
}

LogicalResult Groups::verifyFlight(Flight &flight, Operation *op) {
  FailureOr<SmallVector<Touched>> own = touchedBy(op), held = touchedBy(flight.start);
  if (failed(own) || failed(held))
    return failure();
  for (const Touched &mine : *own)
    for (const Touched &other : *held)
      if ((mine.isWritten || other.isWritten) && overlap(mine.value, other.value) != Overlap::None)
        return op->emitError() << "scheduled form: '" << op->getName() << "' touches " << text(bytesOf(mine.value))
                               << " while '" << flight.start->getName() << "' has " << text(bytesOf(other.value))
                               << "; wait for its token first";
  return success();
}

LogicalResult Groups::verifyForwards(RegionBranchOpInterface branch) {
  for (auto [operand, input] : nn::forwardsOf(branch)) {
    if (boundBytes(input.getType(), limits) == 0 || overlap(operand->get(), input) == Overlap::Same)
      continue;
    return operand->getOwner()->emitError()
           << "scheduled form: forwards " << text(bytesOf(operand->get())) << ", but '" << branch->getName()
           << "' takes " << text(bytesOf(input)) << "; one place has to be both";
  }
  return success();
}

LogicalResult Groups::verifyTaken(nn::LayersOp layers) {
  for (FlatSymbolRefAttr callee : layers.getCallees()) {
    auto layer = symbols.lookup<nn::LayerOp>(callee.getValue());
    for (auto [given, taken] : llvm::zip_equal(layers.getRows(), layer.getRows())) {
      Bytes from = bytesOf(given), to = bytesAt(mem::offsetOf(taken), taken.getType());
      if (from.where != Bytes::Where::Arena || to.where != Bytes::Where::Arena || from.begin != to.begin)
        return layers.emitError() << "scheduled form: forwards " << text(from) << ", but layer " << callee << " takes "
                                  << text(to) << "; one place has to be both";
    }
  }
  return success();
}

LogicalResult Groups::verifyYielded(nn::LayerOp layer) {
  for (auto [carried, yielded] : llvm::zip_equal(layer.getCarried(), layer.getYielded()))
    if (overlap(carried, yielded) != Overlap::Same)
      return layer.getBody().front().getTerminator()->emitError()
             << "scheduled form: forwards " << text(bytesOf(yielded)) << ", but the next layer takes "
             << text(bytesOf(carried)) << "; one place has to be both";
  return success();
}

LogicalResult Groups::verify() {
  auto groups = [&](Block *block) { return WalkResult(verifyBlock(*block)); };
  auto forwards = [&](RegionBranchOpInterface branch) { return WalkResult(verifyForwards(branch)); };
  auto taken = [&](nn::LayersOp layers) { return WalkResult(verifyTaken(layers)); };
  if (function.walk<WalkOrder::PreOrder>(groups).wasInterrupted() || function.walk(forwards).wasInterrupted() ||
      function.walk(taken).wasInterrupted())
    return failure();
  if (auto layer = dyn_cast<nn::LayerOp>(*function); layer && failed(verifyYielded(layer)))
    return failure();
  for (Flight &flight : timeline.flights) {
    if (!flight.isAwaited)
      return flight.start->emitError() << "scheduled form: nothing that is sure to run waits for '"
                                       << flight.start->getName() << "'; take its token in the region of the start";
    auto apart = [&](Operation *op) {
      return flight.isUnderway(timeline.positionOf(op)) ? WalkResult(verifyFlight(flight, op)) : WalkResult::advance();
    };
    if (function.walk(apart).wasInterrupted())
      return failure();
  }
  return success();
}

} // namespace

LogicalResult verifyGroups(FunctionOpInterface function, SymbolTable &symbols, KernelDescriptions &descriptions,
                           nn::LimitsAttr limits) {
  const bool isOnGpu = k2c::isOnGpu(function->getParentOfType<ModuleOp>());
  return Groups(function, symbols, descriptions, limits, isOnGpu).verify();
}

} // namespace k2c
