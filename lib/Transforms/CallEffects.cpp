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
  CallEffects effects{described->desc, gridOf(described->desc, tileConfig(kernel.getTileAttr())), {}};
  SmallVector<kern::CallOp::Argument> arguments = call.getCallArguments();
  for (auto [operand, source, access] :
       llvm::zip_equal(operands(effects.desc), described->sources, accesses(effects.desc))) {
    using Role = Operand::Role;
    if (!llvm::is_contained({Role::Activation, Role::Result, Role::Plan}, operand.role))
      continue;
    if (source.kind == ArgumentSource::Result)
      effects.values.push_back({call.getOutputs()[source.index], access});
    else
      effects.values.push_back({arguments[source.index].value, access});
  }
  return effects;
}

namespace {

template <class Desc> bool is(const CallEffects &call) { return std::holds_alternative<Desc>(call.desc.body); }

bool readsPlanes(const CallEffects &call) {
  return is<GqaAttentionDesc>(call) || is<AbsorbedAttentionDesc>(call) || is<ExpandedAttentionDesc>(call);
}

/// Caches and captures: an append meets no other kernel of a cache, and nothing is captured twice.
bool sharesState(const CallEffects &first, const CallEffects &second) {
  bool plane = (is<AppendDesc>(first) && (is<AppendDesc>(second) || readsPlanes(second))) ||
               (is<AppendDesc>(second) && readsPlanes(first));
  return plane || (is<SelectDesc>(first) && is<SelectDesc>(second)) ||
         (is<ObserveDesc>(first) && is<ObserveDesc>(second));
}

bool areEqual(const Grid &a, const Grid &b) {
  return a.space == b.space && a.rowsPerItem == b.rowsPerItem && a.itemsPerBlock == b.itemsPerBlock &&
         a.slotsPerToken == b.slotsPerToken;
}

/// The rows that one writes, the other does not.
bool writeApart(const CallEffects &first, const CallEffects &second) {
  FormFilter a = writtenRows(first.desc), b = writtenRows(second.desc);
  return a != b && a != FormFilter::All && b != FormFilter::All;
}

} // namespace

CallOrder orderOf(const CallEffects &first, const CallEffects &second, function_ref<Overlap(Value, Value)> overlap,
                  Shared *shared) {
  if (sharesState(first, second))
    return CallOrder::Barrier;
  bool byRow = areEqual(first.grid, second.grid);
  CallOrder order = CallOrder::Free;
  for (const CallEffects::Touched &a : first.values)
    for (const CallEffects::Touched &b : second.values) {
      if (!a.access.writes && !b.access.writes)
        continue;
      Overlap how = overlap(a.value, b.value);
      if (how == Overlap::None)
        continue;
      if (how == Overlap::Same && a.access.writes && b.access.writes && writeApart(first, second))
        continue;
      if (a.value != b.value || !byRow || !a.access.byRow || !b.access.byRow) {
        if (shared)
          *shared = {a.value, b.value};
        return CallOrder::Barrier;
      }
      order = CallOrder::SameWorker;
    }
  return order;
}

} // namespace k2c
