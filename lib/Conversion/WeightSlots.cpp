//===- WeightSlots.cpp - Which packed weights a program reads -------------===//
#include "k2c/Conversion/WeightSlots.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace k2c {

static bool inPanels(const Operand &operand) { return operand.role == Operand::Role::Weight && operand.panels.n > 0; }

int64_t WeightRange::bytes() const { return operand.weightBytes(); }

std::string WeightRange::layout() const {
  if (!inPanels(operand))
    return (operand.role == Operand::Role::Table ? "table<" : "rows<") + std::string(k2c::name(operand.type)) + ", " +
           std::to_string(operand.elements) + ">";
  const PanelLayout &p = operand.panels;
  return "panels<" + std::string(k2c::name(p.type)) + ", matrices = " + std::to_string(p.matrices) +
         ", n = " + std::to_string(p.n) + ", k = " + std::to_string(p.k) +
         (p.interleave == 2 ? ", interleave = 2" : "") +
         (p.isScaled() ? ", scales = " + std::to_string(p.scaleColumns) + " x " + std::to_string(p.scaleRows) : "") +
         ">";
}

/// Two operands that the same bytes can serve.
static bool sameLayout(const Operand &a, const Operand &b) {
  WeightRange x, y;
  x.operand = a;
  y.operand = b;
  return x.layout() == y.layout();
}

const WeightRange *ProgramWeights::find(StringRef family, const Operand &operand) const {
  for (const WeightRange &range : list)
    if (SymbolTable::getSymbolName(range.family).getValue() == family && sameLayout(range.operand, operand))
      return &range;
  return nullptr;
}

void ProgramWeights::add(Operation *family, const Operand &operand, const KernelDesc &reader) {
  StringRef name = SymbolTable::getSymbolName(family).getValue();
  if (find(name, operand))
    return;
  WeightRange range;
  bool known = llvm::any_of(list, [&](const WeightRange &other) { return other.name == name; });
  range.name = known ? (name + (inPanels(operand) ? ".panels" : ".rows")).str() : name.str();
  range.family = family;
  range.operand = operand;
  range.share = weightShare(reader, operand);
  range.first = slots();
  if (auto weights = dyn_cast<nn::WeightsOp>(family))
    range.layers = weights.getDomain("layer");
  list.push_back(std::move(range));
}

FailureOr<ProgramWeights> ProgramWeights::collect(ModuleOp scheduled) {
  ProgramWeights program;
  SymbolTable symbols(scheduled);
  for (auto kernel : scheduled.getOps<kern::FuncOp>()) {
    FailureOr<DescribedKernel> described = describe(kernel);
    if (failed(described))
      return failure();
    program.kernels[kernel.getSymName()] = std::move(*described);
  }
  for (auto function : scheduled.getOps<func::FuncOp>())
    for (auto call : function.getOps<kern::CallOp>()) {
      const DescribedKernel &kernel = program.kernel(call.getCallee());
      SmallVector<kern::CallOp::Argument> arguments = call.getCallArguments();
      for (auto [operand, source] : llvm::zip_equal(operands(kernel.desc), kernel.sources))
        if (source.kind == ArgumentSource::Argument && arguments[source.index].weight)
          program.add(symbols.lookup(arguments[source.index].weight.getFamily().getValue()), operand, kernel.desc);
    }
  return program;
}

} // namespace k2c
