//===- CallEffects.cpp - Which calls may run at the same time -------------===//
#include "CallEffects.h"
#include "k2c/Kernels/Describe.h"
#include "k2c/Kernels/TileAttr.h"

using namespace mlir;

namespace k2c {

FailureOr<CallEffects> effectsOf(kern::CallOp call, SymbolTable &symbols, KernelDescriptions &descriptions) {
  auto kernel = symbols.lookup<kern::FuncOp>(call.getCallee());
  if (!kernel.getTile())
    return kernel.emitError() << "the kernel has no tile; run choose-tiles first";
  const DescribedKernel *described = descriptions.find(kernel);
  if (!described)
    return failure();
  TileConfig tile = tileConfig(kernel.getTileAttr());
  CallEffects effects{described->desc, gridOf(described->desc, tile), {}};
  SmallVector<kern::CallOp::Argument> arguments = call.getCallArguments();
  for (auto [operand, source] : llvm::zip_equal(operands(effects.desc), described->sources)) {
    switch (operand.role) {
    case Operand::Role::Activation:
    case Operand::Role::Permutation:
    case Operand::Role::Result: {
      bool isResult = source.kind == ArgumentSource::Result;
      Value value = isResult ? call.getOutputs()[source.index] : arguments[source.index].value;
      effects.touched.push_back({value, operand.effect});
      break;
    }
    case Operand::Role::Plane:
      effects.touched.push_back({CachePlanes{operand.group}, operand.effect});
      break;
    case Operand::Role::Step:
      for (Capture capture : operand.effect.captured())
        effects.touched.push_back({capture, capturing(operand.effect)});
      break;
    case Operand::Role::Weight: // constants of the program, and numbers
    case Operand::Role::Table:
    case Operand::Role::Layer:
    case Operand::Role::Places:
    case Operand::Role::Held:
    case Operand::Role::Subtrees:
      break;
    }
  }
  if (tile.splitTokens > 0)
    effects.touched.push_back({Partials{call.getCalleeAttr().getAttr()}, Effect::destroys()});
  return effects;
}

namespace {

using Touched = CallEffects::Touched;

bool areEqual(const Grid &a, const Grid &b) {
  return a.space == b.space && a.rowsPerItem == b.rowsPerItem && a.itemsPerBlock == b.itemsPerBlock &&
         a.slotsPerToken == b.slotsPerToken;
}

/// Both write, each the rows of a form that the other does not. (Who reads has all rows.)
bool writeApart(const Effect &first, const Effect &second) {
  FormFilter a = first.rows(), b = second.rows();
  return a != b && a != FormFilter::All && b != FormFilter::All;
}

/// The order that two calls have because of `a` and `b`. `byRow`: row i is item i of both or of neither.
CallOrder orderOf(const Touched &a, const Touched &b, bool byRow, function_ref<Overlap(Value, Value)> overlap) {
  if (!a.effect.isWritten() && !b.effect.isWritten())
    return CallOrder::Free;
  if (!a.value() || !b.value()) {
    bool commute = a.effect.isInAnyOrder() && b.effect.isInAnyOrder();
    return a.memory == b.memory && !commute ? CallOrder::Barrier : CallOrder::Free;
  }
  Overlap how = overlap(a.value(), b.value());
  if (how == Overlap::None || (how == Overlap::Same && writeApart(a.effect, b.effect)))
    return CallOrder::Free;
  bool sameRows = a.value() == b.value() && byRow && a.effect.isByRow() && b.effect.isByRow();
  return sameRows ? CallOrder::SameWorker : CallOrder::Barrier;
}

} // namespace

Overlap overlapOf(rt::ArenaOp first, rt::ArenaOp second) {
  const int64_t begin = first.getOffset(), end = begin + first.getBytes();
  const int64_t otherBegin = second.getOffset(), otherEnd = otherBegin + second.getBytes();
  if (end <= otherBegin || otherEnd <= begin)
    return Overlap::None;
  return begin == otherBegin && end == otherEnd ? Overlap::Same : Overlap::Partial;
}

Effect capturing(const Effect &effect) {
  return effect.isInAnyOrder() ? Effect::writes().inAnyOrder() : Effect::writes();
}

CallOrder orderOf(const CallEffects &first, const CallEffects &second, function_ref<Overlap(Value, Value)> overlap,
                  Shared *shared) {
  return orderOf(first.touched, second.touched, areEqual(first.grid, second.grid), overlap, shared);
}

CallOrder orderOf(ArrayRef<Touched> first, ArrayRef<Touched> second, bool byRow,
                  function_ref<Overlap(Value, Value)> overlap, Shared *shared) {
  CallOrder order = CallOrder::Free;
  for (const Touched &a : first)
    for (const Touched &b : second) {
      const CallOrder ofBoth = orderOf(a, b, byRow, overlap);
      if (ofBoth <= order)
        continue;
      order = ofBoth;
      if (shared)
        *shared = {a.value(), b.value()};
      if (order == CallOrder::Barrier)
        return order;
    }
  return order;
}

} // namespace k2c
