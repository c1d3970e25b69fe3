//===- UniformControl.cpp - All ranks take the same path ------------------===//
//
// Ranks run one program, each on rows of its own. They come to the same collectives if what decides whether an op runs,
// and how often, is equal on all: made by arithmetic from constants and the index of the layer.
//
//   %deep = arith.cmpi sge, %layer, %c3        uniform
//   scf.if %deep { dist.all_to_all .. }        all ranks, or none
//   %t = rt.rows token                         each rank has tokens of its own
//   scf.if %few { dist.all_to_all .. }         refused, as some ranks would wait for others
//
// Layers of a stage are those of all ranks that share a layer's exchanges; what goes from stage to stage stands outside
// of every branch and loop (VerifyStages.h, VerifyWaits.h).
//
// The rules know neither the ops that count rows nor those that exchange them: what is not proven uniform is not, and
// what refers to a function that has a collective is one, too. So they are the same in every form.
//
//===----------------------------------------------------------------------===//
#include "UniformControl.h"
#include "dialects/Nn/Nn.h"
#include "dialects/Rt/Rt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace k2c {

namespace {

class Uniformity {
public:
  explicit Uniformity(ModuleOp module);

  /// What makes `value` differ between ranks, or nothing.
  std::string varying(Value value);
  /// The ops that refer to `function`.
  ArrayRef<Operation *> callersOf(Operation *function) { return callers[function]; }

private:
  std::string varyingArgument(BlockArgument argument);
  std::string varyingResult(Operation *op);

  llvm::DenseMap<Operation *, SmallVector<Operation *>> callers;
  llvm::SmallPtrSet<Operation *, 8> asked; ///< functions whose arguments are being looked at
  llvm::DenseMap<Value, std::string> known;
};

Uniformity::Uniformity(ModuleOp module) {
  SymbolTable symbols(module);
  for (auto function : module.getOps<FunctionOpInterface>())
    function->walk([&](Operation *op) {
      op->getAttrDictionary().walk([&](SymbolRefAttr name) {
        if (auto callee = symbols.lookup<FunctionOpInterface>(name.getRootReference()))
          callers[callee].push_back(op);
      });
    });
}

/// The list of layers gives a layer its index, calls give functions their arguments; a step gives its own.
std::string Uniformity::varyingArgument(BlockArgument argument) {
  Operation *owner = argument.getOwner()->getParentOp();
  const unsigned number = argument.getArgNumber();
  if (auto layer = dyn_cast<nn::LayerOp>(owner); layer && layer.getIndex() == argument)
    return {};
  if (auto loop = dyn_cast<scf::ForOp>(owner); loop && loop.getInductionVar() == argument) {
    for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      if (std::string why = varying(bound); !why.empty())
        return why;
    return {};
  }
  const std::string own = "argument " + std::to_string(number) + " of '" + owner->getName().getStringRef().str() + "'";
  if (!isa<FunctionOpInterface>(owner) || nn::isEntry(owner) || callersOf(owner).empty() || !asked.insert(owner).second)
    return own;
  std::string why;
  for (Operation *caller : callersOf(owner)) {
    auto call = dyn_cast<CallOpInterface>(caller);
    if (why.empty())
      why = call ? varying(call.getArgOperands()[number]) : own;
  }
  asked.erase(owner);
  return why;
}

/// Ranks that exchange in a layer are of one stage, and have the same layers.
std::string Uniformity::varyingResult(Operation *op) {
  if (isa_and_nonnull<rt::StageLayersOp>(op))
    return {};
  if (!isa_and_nonnull<arith::ArithDialect>(op->getDialect()) || !isMemoryEffectFree(op))
    return "'" + op->getName().getStringRef().str() + "'";
  for (Value operand : op->getOperands())
    if (std::string why = varying(operand); !why.empty())
      return why;
  return {};
}

std::string Uniformity::varying(Value value) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  auto argument = dyn_cast<BlockArgument>(value);
  return known[value] = argument ? varyingArgument(argument) : varyingResult(value.getDefiningOp());
}

/// What decides whether and how often regions of `op` run; none: nobody knows.
std::optional<SmallVector<Value>> decisionsOf(Operation *op) {
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return SmallVector<Value>{branch.getCondition()};
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return SmallVector<Value>{loop.getLowerBound(), loop.getUpperBound(), loop.getStep()};
  if (isa<rt::SecondHalfOp>(op)) // on all ranks, once
    return SmallVector<Value>{};
  return std::nullopt;
}

/// All that is around `op` in its function.
LogicalResult verifyAround(Operation *op, Uniformity &uniformity, StringRef who) {
  auto refuse = [&] { return op->emitError() << who << ": '" << op->getName() << "' is an exchange or has one, and "; };
  for (Operation *inner = op; !isa<FunctionOpInterface>(inner); inner = inner->getParentOp()) {
    if (const size_t blocks = inner->getParentRegion()->getBlocks().size(); blocks != 1)
      return refuse() << "is in one of " << blocks
                      << " blocks, of which ranks may take different ones; branch by scf.if and scf.for";
    Operation *around = inner->getParentOp();
    if (isa<FunctionOpInterface>(around))
      return success();
    std::optional<SmallVector<Value>> decisions = decisionsOf(around);
    if (!decisions)
      return refuse() << "is in '" << around->getName()
                      << "', which may run on some ranks and not on others; branch by scf.if and scf.for";
    for (Value decision : *decisions)
      if (std::string why = uniformity.varying(decision); !why.empty())
        return refuse()
               << "is in '" << around->getName() << "', which is decided by " << why
               << ", and that may differ between ranks; decide by constants and the layer, or exchange outside";
  }
  return success();
}

} // namespace

LogicalResult verifyUniformControl(ModuleOp module, llvm::function_ref<bool(Operation *)> isCollective, StringRef who) {
  Uniformity uniformity(module);
  llvm::SetVector<Operation *> exchanges;                    // collectives, then what refers to functions that have one
  for (auto function : module.getOps<FunctionOpInterface>()) // most of a program is the code of kernels, in modules
    function->walk([&](Operation *op) {
      if (isCollective(op))
        exchanges.insert(op);
    });
  for (size_t i = 0; i < exchanges.size(); ++i) {
    auto function = exchanges[i]->getParentOfType<FunctionOpInterface>();
    if (failed(verifyAround(exchanges[i], uniformity, who)))
      return failure();
    exchanges.insert_range(uniformity.callersOf(function));
  }
  return success();
}

} // namespace k2c
