//===- WeightMaps.cpp - The weight map of a program -----------------------===//
#include "WeightMaps.h"
#include "ProgramFacts.h"
#include "dialects/Nn/Nn.h"
#include "k2c/Kernels/LayoutAttr.h"
#include "k2c/Model/Rope.h"
#include "k2c/Weights/TensorFamily.h"
#include <cstring>

using namespace mlir;

namespace k2c {

namespace {

std::optional<IndexSet> setOf(nn::IndicesAttr indices) { return indices ? std::optional(indices.set()) : std::nullopt; }

/// The checkpoint's shape of one tensor of the family with that pattern: the IR has heads as a dimension of their own.
std::vector<int64_t> storedShape(const ModelSpec &spec, StringRef pattern) {
  for (const WeightFamily &family : spec.weights)
    if (pattern == family.pattern)
      return family.shape;
  return {};
}

/// The family as the packer reads it: the shape of one tensor, without experts and alternatives.
TensorFamily familyOf(nn::WeightsOp op, const ModelSpec &spec) {
  TensorFamily family;
  family.name = op.getSymName().str();
  family.pattern = op.getSource().str();
  family.layers = setOf(op.getDomain("layer"));
  family.experts = setOf(op.getDomain("expert"));
  ArrayRef<int64_t> shape = op.getTensorType().getShape();
  shape = shape.drop_front((family.experts ? 1 : 0) + (op.getAlternatives().empty() ? 0 : 1));
  family.shape.assign(shape.begin(), shape.end());
  family.stored = storedShape(spec, op.getSource());
  if (auto view = op.getView()) {
    family.shape.assign(view->getDims().begin(), view->getDims().end());
    family.slice = TensorSlice{view->getDim(), view->getFrom(), view->getTo()};
    family.transpose = view->getTranspose();
  }
  if (op.getParts()) {
    family.parts = *op.getParts();
    family.along = *op.getAlong() - op.getLeadingDims();
    const auto rank = static_cast<int64_t>(family.shape.size());
    if (family.transpose && family.along >= rank - 2) // of the tensor before its last dimensions are swapped
      family.along = 2 * rank - 3 - family.along;
  }
  if (nn::BlocksAttr stored = op.getStorageAttr())
    family.blocks = {stored.getBlock()[0], stored.getBlock()[1]};
  return family;
}

/// The rotary table [positions][2][dims / 2], in pieces of any size.
Table ropeTableOf(const RopeSpec &rope, int64_t positions) {
  Table table;
  int64_t row = rope.dims * static_cast<int64_t>(sizeof(float));
  table.bytes = positions * row;
  table.generate = [rope, row](int64_t first, char *out, int64_t count) {
    std::vector<float> values(rope.dims);
    while (count > 0) {
      ropeTableRows(rope, first / row, 1, values.data());
      int64_t skip = first % row, bytes = std::min(row - skip, count);
      std::memcpy(out, reinterpret_cast<const char *>(values.data()) + skip, bytes);
      first += bytes;
      out += bytes;
      count -= bytes;
    }
  };
  return table;
}

Transform transformOf(Attribute layout) {
  if (std::optional<MatrixLayout> matrices = matrixLayout(layout))
    return std::visit([](const auto &known) -> Transform { return known; }, *matrices);
  return RowMajor{elementOf(layout), cast<rt::RowMajorAttr>(layout).getElements()};
}

/// What a family's slots are made of: all experts, of which a rank may hold a part.
struct PackedSlots {
  Transform transform;
  int64_t experts = 0;
};

PackedSlots packedSlots(rt::WeightSlotsOp slots, nn::WeightsOp family) {
  PackedSlots packed{transformOf(slots.getLayout()), slots.getExperts().value_or(0)};
  if (!family.getHeld())
    return packed;
  packed.experts = family.getDomain("expert").size();
  if (auto *panels = std::get_if<PanelLayout>(&packed.transform))
    panels->matrix.count = packed.experts;
  if (auto *rows = std::get_if<RowLayout>(&packed.transform))
    rows->matrix.count = packed.experts;
  return packed;
}

} // namespace

WeightMap weightMapOf(ModuleOp runtime, const ModelSpec &spec) {
  SymbolTable symbols(runtime);
  WeightMap map;
  for (rt::WeightSlotsOp slots : slotsInOrder(runtime)) {
    if (auto table = symbols.lookup<nn::ConstantTableOp>(slots.getFamily())) {
      WeightSlot slot;
      slot.slot = slots.getFirst();
      slot.family = slots.getFamily().str();
      slot.transform = ropeTableOf(spec.ropes.at(slot.family), table.getTensorType().getDimSize(0));
      map.slots.push_back(std::move(slot));
    } else {
      auto family = symbols.lookup<nn::WeightsOp>(slots.getFamily());
      const PackedSlots packed = packedSlots(slots, family);
      appendSlots(map, familyOf(family, spec), packed.transform, packed.experts);
    }
  }
  return map;
}

} // namespace k2c
