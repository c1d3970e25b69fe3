//===- BoundBytes.cpp - What a value takes in the arena -------------------===//
#include "k2c/Transforms/BoundBytes.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/NnVerify.h"

using namespace mlir;

namespace k2c {

int64_t countsBytes(int64_t members) { return 2 * 8 * members; }

int64_t boundBytes(Type type, nn::LimitsAttr limits) {
  if (auto permutation = dyn_cast<moe::PermutationType>(type))
    return 4 * (permutation.getExperts() + 1 + 2 * nn::boundRows(permutation.getRows(), limits) * permutation.getTop());
  if (auto counts = dyn_cast<dist::CountsType>(type))
    return countsBytes(counts.getMembers());
  nn::RowsAttr rows = nn::rowsOf(type);
  if (!rows)
    return 0;
  auto tensor = cast<RankedTensorType>(type);
  int64_t bytes = nn::boundRows(rows, limits) * tensor.getElementTypeBitWidth() / 8;
  for (int64_t dim : tensor.getShape().drop_front())
    bytes *= dim;
  return bytes;
}

} // namespace k2c
