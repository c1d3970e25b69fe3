//===- Elementwise.cpp - Element-wise ops, alone or behind one another ----===//
#include "Builder.h"
#include "dialects/Nn/Nn.h"

using namespace mlir;

namespace k2c {

DType elementOf(Value value) { return *dtypeOf(cast<RankedTensorType>(value.getType()).getElementType()); }

int64_t rowElements(Value value) {
  return ShapedType::getNumElements(cast<RankedTensorType>(value.getType()).getShape().drop_front());
}

LogicalResult appendSteps(nn::ElementwiseOp op, Elementwise &list, KnownTerms &known,
                          function_ref<FailureOr<ElementTerms>(Value, int64_t)> makeInput) {
  Value result = op->getResult(0);
  ElementTerms terms;
  for (Value operand : op->getOperands()) {
    int64_t parts = rowElements(operand) / rowElements(result);
    FailureOr<ElementTerms> found = known.contains(operand) ? known[operand] : makeInput(operand, parts);
    if (failed(found))
      return failure();
    if (static_cast<int64_t>(found->size()) != parts)
      return op->emitOpError("reads rows that its kernel cannot hold; form-kernels should have cut it");
    terms.append(*found);
    known[operand] = std::move(*found);
  }
  if (failed(op.appendSteps(list, terms, elementOf(result))))
    return failure();
  known[result] = {ElementTerm::step(static_cast<int64_t>(list.steps.size()) - 1)};
  return success();
}

MaybeDescribed describeElementwise(kern::FuncOp kernel, ArrayRef<Operation *> ops) {
  if (!llvm::all_of(ops, llvm::IsaPred<nn::ElementwiseOp>))
    return std::nullopt;
  DescBuilder b(kernel);
  RowwiseDesc desc;
  KnownTerms known;
  auto makeInput = [&](Value value, int64_t parts) -> FailureOr<ElementTerms> {
    ElementTerms terms;
    for (int64_t part = 0; part < parts; ++part) {
      terms.push_back(ElementTerm::input(desc.inputs.size()));
      if (!b.addPart(value, part, parts, desc.inputs.emplace_back()))
        return failure();
    }
    return terms;
  };
  for (Operation *op : ops)
    if (failed(appendSteps(cast<nn::ElementwiseOp>(op), desc.list, known, makeInput)))
      return FailureOr<DescribedKernel>(failure());
  Value result = ops.back()->getResult(0);
  if (nn::RowsAttr space = nn::rowsOf(result.getType()); space && space.getKind() == nn::RowKind::Slot)
    desc.slotsPerToken = space.getPerToken();
  bool ok = b.addResult(result, desc.y);
  return b.finish(ok, std::move(desc));
}

} // namespace k2c
