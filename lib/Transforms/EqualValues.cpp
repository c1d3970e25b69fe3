//===- EqualValues.cpp - Values that are computed alike -------------------===//
#include "EqualValues.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;

namespace k2c {

bool areSame(Value a, Value b) {
  auto first = dyn_cast<OpResult>(a), second = dyn_cast<OpResult>(b);
  if (a == b || !first || !second)
    return a == b;
  auto compare = [](Value a, Value b) { return success(areSame(a, b)); };
  return first.getResultNumber() == second.getResultNumber() &&
         OperationEquivalence::isEquivalentTo(first.getOwner(), second.getOwner(), compare, /*markEquivalent=*/nullptr,
                                              OperationEquivalence::IgnoreLocations);
}

} // namespace k2c
