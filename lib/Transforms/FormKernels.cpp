//===- FormKernels.cpp - Cut the program into fused kernels ---------------===//
//
// Each group of ops (KernelGroups.h) becomes the region of a kern.func and a kern.call in its place. What the group
// reads becomes arguments: values, and weights by family and layer. Equal regions are one kernel, so the number of
// kernels does not grow with layers.
//
//   %h = nn.rms_norm %x, @ln[%l]           kern.func @qb(%x, %ln, %w) { nn.rms_norm, nn.linear }
//   %q = nn.linear %h, @qb[%l]      ->     %q = kern.call @qb(%x, @ln[%l], @qb[%l])
//
//===----------------------------------------------------------------------===//
#include "KernelGroups.h"
#include "dialects/Kern/Kern.h"
#include "dialects/Nn/NnStorage.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/Remark.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringMap.h"

namespace k2c {
#define GEN_PASS_DEF_FORMKERNELS
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// A kernel under construction: its region, and the arguments a call has to pass.
struct Outline {
  kern::FuncOp kernel;
  SmallVector<kern::CallOp::Argument> arguments;
};

class Outliner {
public:
  explicit Outliner(ModuleOp module) : module(module), symbols(module) {}

  /// Replaces `group` by a call; the kernel is new or one that is equal.
  void outline(const KernelGroup &group);
  int64_t kernelCount() const { return kernels.size(); }

private:
  Outline build(const KernelGroup &group);
  Value argumentFor(Outline &outline, IRMapping &mapping, Value value);
  void bindWeights(Outline &outline, Operation *op, Operation *copy);
  RankedTensorType weightType(FlatSymbolRefAttr family);
  kern::FuncOp unique(kern::FuncOp kernel);

  ModuleOp module;
  SymbolTable symbols;
  llvm::StringMap<kern::FuncOp> kernels; ///< by the text of type and region
};

/// The name of a kernel: the role of its main op, and the weight of a linear, of which a layer has several.
std::string nameFor(const KernelGroup &group) {
  const auto *linear = llvm::find_if(group, isLinear);
  if (linear == group.end())
    return cast<nn::KernelOp>(group.back()).getRole().str();
  StringRef role = cast<nn::KernelOp>(*linear).getRole();
  FlatSymbolRefAttr family = cast<nn::WeightUser>(*linear).getWeightRefs()[0].family;
  return family ? (role + "_" + family.getValue()).str() : role.str();
}

/// What kernels read of a family or a table; verifiers have checked that it is one.
RankedTensorType Outliner::weightType(FlatSymbolRefAttr family) {
  Operation *symbol = symbols.lookup(family.getValue());
  if (auto weights = dyn_cast<nn::WeightsOp>(symbol))
    return nn::readTypeOf(weights);
  return cast<nn::ConstantTableOp>(symbol).getTensorType();
}

/// What `value` is inside the kernel. Views come along; everything else becomes an argument.
Value Outliner::argumentFor(Outline &outline, IRMapping &mapping, Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Block &body = outline.kernel.getBody().front();
  if (Operation *view = value.getDefiningOp(); view && nn::isView(view)) {
    for (Value operand : view->getOperands())
      argumentFor(outline, mapping, operand);
    OpBuilder::atBlockEnd(&body).clone(*view, mapping);
    return mapping.lookup(value);
  }
  Value argument = body.addArgument(value.getType(), value.getLoc());
  outline.arguments.push_back({kern::WeightAttr(), value});
  mapping.map(value, argument);
  return argument;
}

/// Each weight family of `copy` becomes an argument of the type it is read as; a weight that is a value is an argument
/// already. Layer indices are those of `op`: the copy's may have become arguments of the kernel (moe.routing names its
/// layer beside its bias).
void Outliner::bindWeights(Outline &outline, Operation *op, Operation *copy) {
  auto user = dyn_cast<nn::WeightUser>(copy);
  if (!user)
    return;
  for (size_t index = 0, count = user.getWeightRefs().size(); index < count; ++index) {
    nn::WeightRef ref = user.getWeightRefs()[index];
    if (!ref.family)
      continue;
    Value layer = cast<nn::WeightUser>(op).getWeightRefs()[index].value();
    outline.arguments.push_back({kern::WeightAttr::get(copy->getContext(), ref.family, !!layer), layer});
    user.bindWeight(index, outline.kernel.getBody().front().addArgument(weightType(ref.family), copy->getLoc()));
  }
}

Outline Outliner::build(const KernelGroup &group) {
  Location loc = group.back()->getLoc();
  OpBuilder b(module.getContext());
  Outline outline;
  outline.kernel = kern::FuncOp::create(b, loc, nameFor(group), b.getFunctionType({}, group.back()->getResultTypes()));
  Block &body =
      outline.kernel.getBody().empty() ? outline.kernel.getBody().emplaceBlock() : outline.kernel.getBody().front();
  IRMapping mapping;
  for (Operation *op : group) {
    llvm::SmallPtrSet<OpOperand *, 4> weightOperands;
    if (auto user = dyn_cast<nn::WeightUser>(op))
      for (const nn::WeightRef &ref : user.getWeightRefs())
        if (ref.family)
          for (OpOperand &operand : ref.operand)
            weightOperands.insert(&operand);
    for (OpOperand &operand : op->getOpOperands())
      if (!weightOperands.contains(&operand))
        argumentFor(outline, mapping, operand.get());
    Operation *copy = OpBuilder::atBlockEnd(&body).clone(*op, mapping);
    bindWeights(outline, op, copy);
  }
  b.setInsertionPointToEnd(&body);
  SmallVector<Value> results =
      llvm::map_to_vector(group.back()->getResults(), [&](Value v) { return mapping.lookup(v); });
  kern::YieldOp::create(b, loc, results);
  outline.kernel.setFunctionType(b.getFunctionType(body.getArgumentTypes(), group.back()->getResultTypes()));
  return outline;
}

/// `kernel`, or the equal one that is in the module already.
kern::FuncOp Outliner::unique(kern::FuncOp kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << kernel.getFunctionType();
  for (Operation &op : kernel.getBody().front())
    op.print(os, OpPrintingFlags().useLocalScope());
  auto [entry, isNew] = kernels.try_emplace(text, kernel);
  if (!isNew) {
    kernel.erase();
    return entry->second;
  }
  symbols.insert(kernel, module.getBody()->end());
  return kernel;
}

kern::CallOp createCall(OpBuilder &b, Location loc, kern::FuncOp kernel, ArrayRef<kern::CallOp::Argument> arguments) {
  SmallVector<Value> operands;
  SmallVector<Attribute> bindings;
  for (const kern::CallOp::Argument &argument : arguments) {
    if (argument.value)
      operands.push_back(argument.value);
    bindings.push_back(argument.weight ? Attribute(argument.weight) : Attribute(b.getUnitAttr()));
  }
  return kern::CallOp::create(b, loc, kernel.getResultTypes(), FlatSymbolRefAttr::get(kernel.getSymNameAttr()),
                              operands, b.getArrayAttr(bindings), DenseI64ArrayAttr(), /*partials=*/IntegerAttr(),
                              UnitAttr());
}

void Outliner::outline(const KernelGroup &group) {
  Outline outline = build(group);
  kern::FuncOp kernel = unique(outline.kernel);
  Operation *last = group.back();
  OpBuilder b(last);
  auto call = createCall(b, last->getLoc(), kernel, outline.arguments);
  if (group.size() > 1)
    remark(last->getLoc(), "form-kernels", "fused",
           std::to_string(group.size()) + " ops are one kernel '" + kernel.getSymName().str() + "'",
           {{"ops", int64_t(group.size())}});
  last->replaceAllUsesWith(call.getOutputs());
  for (Operation *op : llvm::reverse(group))
    op->erase();
}

/// Views nobody reads any more.
void eraseDeadViews(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (nn::isView(&op) && op.use_empty())
      op.erase();
}

struct FormKernels : impl::FormKernelsBase<FormKernels> {
  using FormKernelsBase::FormKernelsBase;

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Distributed, Form::Scheduled)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    Outliner outliner(module);
    for (FunctionOpInterface function : kern::stepFunctions(module)) {
      SmallVector<Block *> blocks;
      function.walk<WalkOrder::PreOrder>([&](Block *block) { blocks.push_back(block); });
      for (Block *block : blocks) {
        for (const KernelGroup &group : groupKernels(*block, !isLeftOut(module, OptionalPass::Fusion)))
          outliner.outline(group);
        eraseDeadViews(*block);
      }
    }
    remark(module.getLoc(), "form-kernels", "kernels", std::to_string(outliner.kernelCount()) + " kernels",
           {{"kernels", outliner.kernelCount()}});
  }
};

} // namespace
} // namespace k2c
