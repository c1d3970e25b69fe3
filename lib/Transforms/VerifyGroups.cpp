//===- VerifyGroups.cpp - What one worker writes, no other reads ----------===//
#include "VerifyGroups.h"
#include "BufferLives.h"
#include "CallEffects.h"
#include "dialects/Mem/Mem.h"
#include "dialects/Mla/Mla.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace k2c {

namespace {

/// Bytes [begin, end) of the arena, or somewhere in the step.
struct Bytes {
  int64_t begin = 0, end = 0;
  bool inStep = false;
};

std::string text(const Bytes &bytes) {
  if (bytes.inStep)
    return "the step's logits";
  return "bytes [" + std::to_string(bytes.begin) + ", " + std::to_string(bytes.end) + ") of the arena";
}

/// A call and what it touches.
struct Member {
  kern::CallOp call;
  CallEffects effects;
};

class Groups {
public:
  Groups(func::FuncOp function, SymbolTable &symbols, KernelDescriptions &descriptions, nn::LimitsAttr limits)
      : function(function), symbols(symbols), descriptions(descriptions), limits(limits) {}

  LogicalResult verify();

private:
  Bytes bytesOf(Value value);
  int64_t offsetOf(Value value);
  Overlap overlap(Value a, Value b);
  LogicalResult verifyPair(Member &first, Member &second);

  func::FuncOp function;
  SymbolTable &symbols;
  KernelDescriptions &descriptions;
  nn::LimitsAttr limits;
};

/// The argument of a function that nn.layers does not call has no place, and lies below the arena.
int64_t Groups::offsetOf(Value value) {
  Operation *producer = value.getDefiningOp();
  if (!producer) {
    return mem::argumentOf(function).value_or(-boundBytes(value.getType(), limits));
  }
  return llvm::TypeSwitch<Operation *, int64_t>(producer)
      .Case([&](kern::CallOp call) { return (*call.getOffsets())[cast<OpResult>(value).getResultNumber()]; })
      .Case([&](mla::MergeFormsOp merge) { return offsetOf(merge.getAbsorbed()); })
      .Case([&](nn::LayersOp layers) { return offsetOf(layers.getInput()); });
}

Bytes Groups::bytesOf(Value value) {
  if (llvm::any_of(value.getUsers(), llvm::IsaPred<nn::SampleOp>))
    return {0, 0, true};
  int64_t begin = offsetOf(value);
  return {begin, begin + boundBytes(value.getType(), limits), false};
}

Overlap Groups::overlap(Value a, Value b) {
  Bytes first = bytesOf(a), second = bytesOf(b);
  if (first.inStep || second.inStep)
    return first.inStep && second.inStep ? Overlap::Same : Overlap::None;
  if (first.end <= second.begin || second.end <= first.begin)
    return Overlap::None;
  return first.begin == second.begin && a.getType() == b.getType() ? Overlap::Same : Overlap::Partial;
}

LogicalResult Groups::verifyPair(Member &first, Member &second) {
  Shared shared;
  auto lie = [&](Value a, Value b) { return overlap(a, b); };
  if (orderOf(first.effects, second.effects, lie, &shared) != CallOrder::Barrier)
    return success();
  std::string what = shared.first ? text(bytesOf(shared.second)) + " while others have " + text(bytesOf(shared.first))
                                  : "the cache, a capture or partials that others have";
  return second.call->emitError() << "scheduled form: touches " << what << " in an open call of @"
                                  << first.call.getCallee()
                                  << "; workers must meet between the two, as group-launches leaves it";
}

LogicalResult Groups::verify() {
  std::vector<Member> group; // open calls since the last barrier
  for (Operation &op : function.front()) {
    auto call = dyn_cast<kern::CallOp>(op);
    if (isa<mla::MergeFormsOp>(op) || (!call && group.empty()))
      continue;
    if (!call)
      return group.back().call.emitError() << "scheduled form: the call is open, and '" << op.getName()
                                           << "' follows; workers must meet first, as group-launches leaves it";
    if (!call.getOpen() && group.empty())
      continue;
    FailureOr<CallEffects> effects = effectsOf(call, symbols, descriptions);
    if (failed(effects))
      return failure();
    Member member{call, std::move(*effects)};
    for (Member &other : group)
      if (failed(verifyPair(other, member)))
        return failure();
    if (call.getOpen())
      group.push_back(std::move(member));
    else
      group.clear();
  }
  return success();
}

} // namespace

LogicalResult verifyGroups(func::FuncOp function, SymbolTable &symbols, KernelDescriptions &descriptions,
                           nn::LimitsAttr limits) {
  return Groups(function, symbols, descriptions, limits).verify();
}

} // namespace k2c
