//===- OverlapCommunication.cpp - Halves of a step by turns ---------------===//
//
// A step in two halves runs the program twice, each time on half of the rows and in an arena of its own. Functions are
// cut where they wait for an exchange, and the halves take turns at the cuts:
//
//   first    | attention .. start |                   | wait, experts, start |                  | wait, ..
//   second   |                    | attention, start  |                      | wait, experts .. |
//   links                         | rows of the first | rows of the second   | sums of the first
//
// So a half waits for rows that crossed while the other one computed. In each layer the first half has put its keys
// into the cache before the second attends: a prompt may be in both. Whatever else a half touches is its own, so that
// what was proven of one step holds for both.
//
// Which functions have an exchange is known from what they call. A wait within a branch or a loop of a function cuts
// nothing: such a function runs for the first half, then for the second.
//
//===----------------------------------------------------------------------===//
#include "dialects/Rt/Rt.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/Remark.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace k2c {
#define GEN_PASS_DEF_OVERLAPCOMMUNICATION
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// Behind the name of an entry: that of steps in two halves.
constexpr StringRef halvesSuffix = "_halves";

/// `value` where `b` inserts: what computes it is copied there, down to what `mapping` knows and to arguments.
Value copied(OpBuilder &b, Value value, IRMapping &mapping) {
  Operation *op = value.getDefiningOp();
  if (!op || mapping.contains(value))
    return mapping.lookupOrDefault(value);
  for (Value operand : op->getOperands())
    copied(b, operand, mapping);
  b.clone(*op, mapping);
  return mapping.lookup(value);
}

/// `op` where `b` inserts, with what computes its operands.
void copy(OpBuilder &b, Operation &op, IRMapping &mapping) {
  op.walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!op.isAncestor(operand.getParentRegion()->getParentOp()))
        copied(b, operand, mapping);
  });
  b.clone(op, mapping);
}

class Halves {
public:
  Halves(ModuleOp module, rt::ProgramOp program) : module(module), program(program), symbols(module) {}

  LogicalResult run();
  /// What a function with exchanges has become.
  size_t segmentCount() const { return most; }

private:
  void cut(func::FuncOp function);
  void callSegments(func::CallOp call);
  FailureOr<StringAttr> writeEntry(StringAttr name, func::FuncOp entry);
  bool exchanges(Operation *op);
  LogicalResult takeTurns(OpBuilder &b, Block &block, IRMapping &mapping);
  void forBoth(OpBuilder &b, ArrayRef<Operation *> ops, const IRMapping &mapping);

  ModuleOp module;
  rt::ProgramOp program;
  SymbolTable symbols;
  llvm::DenseMap<Operation *, SmallVector<func::FuncOp>> segments; ///< of functions that are cut, themselves first
  size_t most = 0;
};

/// Moves what begins with a wait into a function of its own, the last first.
void Halves::cut(func::FuncOp function) {
  SmallVector<Operation *> waits(function.front().getOps<rt::CollectiveWaitOp>());
  SmallVector<func::FuncOp> behind;
  for (size_t number = waits.size(); number > 0; --number) {
    Operation *wait = waits[number - 1];
    OpBuilder b(module.getContext());
    b.setInsertionPointAfter(function);
    const std::string name = (function.getName() + "_" + Twine(number)).str();
    auto segment = func::FuncOp::create(b, wait->getLoc(), name, function.getFunctionType());
    segment.setPrivate();
    symbols.insert(segment, std::next(function->getIterator()));
    IRMapping mapping;
    b.setInsertionPointToStart(segment.addEntryBlock());
    mapping.map(function.getArguments(), segment.getArguments());
    SmallVector<Operation *> moved;
    for (Operation &op : llvm::make_range(wait->getIterator(), function.front().end()))
      moved.push_back(&op);
    for (Operation *op : moved)
      if (!isMemoryEffectFree(op) || op->hasTrait<OpTrait::IsTerminator>())
        copy(b, *op, mapping);
    for (Operation *op : llvm::reverse(moved))
      if (!op->hasTrait<OpTrait::IsTerminator>())
        op->erase();
    behind.push_back(segment);
  }
  SmallVector<func::FuncOp> &all = segments[function];
  all.push_back(function);
  llvm::append_range(all, llvm::reverse(behind));
  most = std::max(most, all.size());
}

/// A call of a function that was cut becomes calls of its segments.
void Halves::callSegments(func::CallOp call) {
  auto found = segments.find(symbols.lookup(call.getCallee()));
  if (found == segments.end())
    return;
  OpBuilder b(call);
  b.setInsertionPointAfter(call);
  for (func::FuncOp segment : ArrayRef(found->second).drop_front())
    func::CallOp::create(b, call.getLoc(), segment, call.getOperands());
}

/// `ops`, of one block, for the first half and then for the second.
void Halves::forBoth(OpBuilder &b, ArrayRef<Operation *> ops, const IRMapping &mapping) {
  if (ops.empty())
    return;
  IRMapping first = mapping, second = mapping;
  for (Operation *op : ops)
    copy(b, *op, first);
  auto half = rt::SecondHalfOp::create(b, ops.front()->getLoc());
  OpBuilder inner = OpBuilder::atBlockBegin(&half.getBody().emplaceBlock());
  for (Operation *op : ops)
    copy(inner, *op, second);
}

/// `op`, or what it contains or calls, has an exchange.
bool Halves::exchanges(Operation *op) {
  auto found = [&](Operation *inner) {
    auto call = dyn_cast<func::CallOp>(inner);
    return isa<rt::CollectiveStartOp, rt::CollectiveWaitOp>(inner) ||
                   (call && exchanges(symbols.lookup(call.getCallee())))
               ? WalkResult::interrupt()
               : WalkResult::advance();
  };
  return op->walk(found).wasInterrupted();
}

/// What `block` does, for both halves: each segment, and each run of other ops, by turns. Loops and branches with an
/// exchange are those of both halves, as they are of all ranks; others may go by the rows of a half.
LogicalResult Halves::takeTurns(OpBuilder &b, Block &block, IRMapping &mapping) {
  SmallVector<Operation *> run;
  auto end = [&] {
    forBoth(b, run, mapping);
    run.clear();
  };
  for (Operation &op : block.without_terminator()) {
    if (isa<rt::CollectiveStartOp, rt::CollectiveWaitOp>(op))
      return op.emitError() << "overlap-communication: an entry exchanges rows itself, and halves take turns between "
                               "functions; exchange in a function that the entry calls";
    if (isa<scf::ForOp, scf::IfOp>(op) && exchanges(&op)) {
      end();
      IRMapping outer = mapping;
      for (Value operand : op.getOperands())
        copied(b, operand, outer);
      Operation *both = b.cloneWithoutRegions(op, outer);
      for (auto [from, to] : llvm::zip_equal(op.getRegions(), both->getRegions())) {
        if (from.empty())
          continue;
        IRMapping inside = mapping;
        to.emplaceBlock();
        for (BlockArgument argument : from.getArguments())
          inside.map(argument, to.addArgument(argument.getType(), argument.getLoc()));
        OpBuilder body = OpBuilder::atBlockBegin(&to.front());
        if (failed(takeTurns(body, from.front(), inside)))
          return failure();
        body.clone(*from.front().getTerminator(), inside);
      }
    } else if (isa<func::CallOp>(op)) {
      end();
      forBoth(b, {&op}, mapping);
    } else if (!isMemoryEffectFree(&op)) {
      run.push_back(&op);
    }
  }
  end();
  return success();
}

FailureOr<StringAttr> Halves::writeEntry(StringAttr name, func::FuncOp entry) {
  OpBuilder b(module.getContext());
  b.setInsertionPointAfter(entry);
  auto halves =
      func::FuncOp::create(b, entry.getLoc(), (entry.getName() + halvesSuffix).str(), entry.getFunctionType());
  symbols.insert(halves, std::next(entry->getIterator()));
  b.setInsertionPointToStart(halves.addEntryBlock());
  IRMapping mapping;
  if (failed(takeTurns(b, entry.front(), mapping)))
    return failure();
  func::ReturnOp::create(b, entry.getLoc());
  return halves.getSymNameAttr();
}

LogicalResult Halves::run() {
  SmallVector<func::FuncOp> entries;
  for (NamedAttribute entry : program.getEntries())
    entries.push_back(symbols.lookup<func::FuncOp>(cast<FlatSymbolRefAttr>(entry.getValue()).getValue()));
  for (auto function : llvm::to_vector(module.getOps<func::FuncOp>()))
    if (!llvm::is_contained(entries, function) && !function.front().getOps<rt::CollectiveWaitOp>().empty())
      cut(function);
  SmallVector<func::CallOp> calls;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](func::CallOp call) { calls.push_back(call); });
  for (func::CallOp call : calls)
    callSegments(call);
  Builder b(module.getContext());
  NamedAttrList listed(program.getEntries());
  for (auto [entry, function] : llvm::zip_equal(program.getEntries(), entries)) {
    const std::string name = (entry.getName().getValue() + halvesSuffix).str();
    if (program.getEntries().contains(name))
      return program.emitError() << "overlap-communication: entry '" << name
                                 << "' is there, and is to be that of halves; give it another name";
    FailureOr<StringAttr> written = writeEntry(entry.getName(), function);
    if (failed(written))
      return failure();
    listed.append(name, FlatSymbolRefAttr::get(*written));
  }
  program.setEntriesAttr(listed.getDictionary(module.getContext()));
  program.setSecond(program.getArenaBytes() / 2); // the certificate has counted both
  return success();
}

struct OverlapCommunication : impl::OverlapCommunicationBase<OverlapCommunication> {
  using OverlapCommunicationBase::OverlapCommunicationBase;

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Runtime, Form::Runtime)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    if (!hasHalves(module))
      return markAllAnalysesPreserved();
    const int64_t from = planOf(module).getHalvesFrom();
    for (auto program : llvm::to_vector(module.getOps<rt::ProgramOp>())) {
      if (module.getOps<rt::CollectiveOp>().empty()) {
        program.emitError() << "overlap-communication: the plan's halves_from is " << from
                            << ", and the program exchanges nothing; leave it out";
        return signalPassFailure();
      }
      if (program.getSecond())
        continue; // halves are there
      Halves halves(module, program);
      if (failed(halves.run()))
        return signalPassFailure();
      remark(program.getLoc(), "overlap-communication", "halves",
             "steps of " + std::to_string(from) +
                 " token rows of a rank and more go in two halves, which take turns at " +
                 std::to_string(halves.segmentCount() - 1) + " exchanges of a layer",
             {{"halves_from", from}});
    }
  }
};

} // namespace
} // namespace k2c
