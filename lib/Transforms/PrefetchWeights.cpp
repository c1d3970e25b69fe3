//===- PrefetchWeights.cpp - What waiting workers fetch -------------------===//
//
// A step that decodes is bound by memory, and memory idles while workers wait for one another. What each reads next is
// known: before a launch that streams a weight, rt.prefetch names the worker's part of the weight that is streamed
// after it; of a group of launches, which ends with one wait, only the last that streams does so. A layer is told by
// its caller what follows it. After the step comes the next step.
//
// What follows is found along the paths of control flow. Where they part, it is what all of them stream first; where
// that differs, or an op comes first of which nothing is known, no bytes are named. A loop goes on to its next
// iteration: the last one of all layers leaves it, and behind a stage's last one, which nobody knows, the next is named
// in vain.
//
//   rt.launch @linear_qa grid(%g) args(%x, %qa, %y)
//   rt.launch @linear_qb grid(%h) args(%y, %qb, %z)
// ->
//   %f, %e = rt.share %qb grid(%h) items 48 bytes 24576 max 262144
//   rt.prefetch %f, %e
//   rt.launch @linear_qa ..
//
//===----------------------------------------------------------------------===//
#include "EqualValues.h"
#include "dialects/Nn/Nn.h"
#include "dialects/Rt/Rt.h"
#include "k2c/Support/Units.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/Remark.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace k2c {
#define GEN_PASS_DEF_PREFETCHWEIGHTS
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// The addresses that an rt.prefetch takes.
struct Part {
  Value from, end;
};

/// What is streamed first on the paths through some ops.
struct Next {
  bool isKnown = true;      ///< the same on all of them that stream
  std::optional<Part> part; ///< none: nothing is streamed
  bool leaves = true;       ///< a path leaves the ops before anything is streamed

  void merge(const Next &other);
};

/// It differs, or nobody knows.
const Next unknown = {false, std::nullopt, false};

class Reader {
public:
  Reader(ModuleOp module, rt::ProgramOp program, int64_t most) : module(module), symbols(module), most(most) {
    for (NamedAttribute entry : program.getEntries())
      entries.insert(symbols.lookup<func::FuncOp>(cast<FlatSymbolRefAttr>(entry.getValue()).getValue()));
  }

  void run();

private:
  rt::KernelOp streamingKernel(Operation *op);
  bool streams(Operation *op);
  bool waitsBeforeStreaming(rt::LaunchOp launch);
  void peelLast(scf::ForOp loop);
  Value copy(OpBuilder &b, Value value, IRMapping &mapping);
  Next share(OpBuilder &b, rt::LaunchOp launch, rt::KernelOp kernel, IRMapping &mapping);
  void enter(OpBuilder &b, RegionBranchOpInterface branch, Operation *from, Region &region, IRMapping &mapping);
  Next through(OpBuilder &b, Block::iterator from, Block::iterator end, IRMapping &mapping);
  Next through(OpBuilder &b, Block &block, IRMapping &mapping) {
    return through(b, block.begin(), block.end(), mapping);
  }
  Next throughOp(OpBuilder &b, Operation &op, IRMapping &mapping);
  Next throughRegions(OpBuilder &b, RegionBranchOpInterface branch, Operation *from, const IRMapping &mapping);
  Next behind(OpBuilder &b, func::FuncOp function);
  Next following(OpBuilder &b, Operation *op);
  void addArguments();
  Part partOf(OpBuilder &b, Location loc, const Next &next);

  ModuleOp module;
  SymbolTable symbols;
  llvm::SmallSetVector<func::FuncOp, 2> entries;
  llvm::SetVector<Operation *> peeled; ///< loops that are followed by their last iteration
  int64_t most;
};

/// The paths of `other`, too.
void Next::merge(const Next &other) {
  isKnown &= other.isKnown &&
             (!part || !other.part || (areSame(part->from, other.part->from) && areSame(part->end, other.part->end)));
  if (!part)
    part = other.part;
}

/// The kernel that `op` launches, if it streams an argument; else null.
rt::KernelOp Reader::streamingKernel(Operation *op) {
  auto launch = dyn_cast<rt::LaunchOp>(op);
  auto kernel = launch ? symbols.lookup<rt::KernelOp>(launch.getKernel()) : rt::KernelOp();
  return kernel && kernel.getStreams() ? kernel : rt::KernelOp();
}

/// `op`, or what it contains or calls, streams a weight.
bool Reader::streams(Operation *op) {
  return op
      ->walk([&](Operation *inner) {
        auto call = dyn_cast<func::CallOp>(inner);
        bool found = streamingKernel(inner) || (call && streams(symbols.lookup(call.getCallee())));
        return found ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Workers wait for one another after `launch` and before the next launch of its group that streams.
bool Reader::waitsBeforeStreaming(rt::LaunchOp launch) {
  for (Operation *op = launch; op; op = op->getNextNode())
    if (auto next = dyn_cast<rt::LaunchOp>(op)) {
      if (next != launch && streamingKernel(next))
        return false;
      if (!next.getNowait())
        return true;
    }
  return true;
}

/// Of which `op` runs those of the rank's stage; null: of none.
static rt::StageLayersOp stageLayersOf(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  return loop ? loop.getUpperBound().getDefiningOp<rt::StageLayersOp>() : rt::StageLayersOp();
}

/// The last iteration of a loop of constant bounds that runs whole steps becomes ops behind it.
void Reader::peelLast(scf::ForOp loop) {
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> upper = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  int64_t count = 0;
  if (!lower || !upper || !step || *step < 1 || *lower >= *upper || llvm::SubOverflow(*upper, *lower, count) ||
      count % *step || loop.getNumResults() > 0)
    return;
  OpBuilder b(loop);
  IntegerAttr index = b.getIntegerAttr(loop.getInductionVar().getType(), *upper - *step);
  Value last = arith::ConstantOp::create(b, loop.getLoc(), index.getType(), index);
  loop.setUpperBound(last);
  b.setInsertionPointAfter(loop);
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), last);
  for (Operation &op : loop.getBody()->without_terminator())
    b.clone(op, mapping);
  for (Operation *inner : llvm::to_vector(peeled))
    if (Operation *clone = mapping.lookupOrNull(inner))
      peeled.insert(clone);
  peeled.insert(loop);
}

/// `value` at `b`, from copies of the ops that make it: addresses, row counts and arithmetic on the layer's index. Null
/// if it is not known there, as rows are not that have still to arrive.
Value Reader::copy(OpBuilder &b, Value value, IRMapping &mapping) {
  if (mapping.contains(value))
    return mapping.lookupOrNull(value);
  Operation *op = value.getDefiningOp();
  if (!op)
    return value; // of what is around `b`
  if (op->getNumRegions() > 0 || !isPure(op) || isa<rt::ArrivedOp>(op))
    return {};
  for (Value operand : op->getOperands()) {
    Value copied = copy(b, operand, mapping);
    if (!copied)
      return {};
    mapping.map(operand, copied);
  }
  return b.clone(*op, mapping)->getResult(cast<OpResult>(value).getResultNumber());
}

Next Reader::share(OpBuilder &b, rt::LaunchOp launch, rt::KernelOp kernel, IRMapping &mapping) {
  Value weight = copy(b, launch.getArgs()[*kernel.getStreams()], mapping);
  Value grid = weight ? copy(b, launch.getGrid(), mapping) : Value();
  if (!grid)
    return unknown;
  auto pointer = rt::PtrType::get(module.getContext());
  auto op = rt::ShareOp::create(b, launch.getLoc(), pointer, pointer, weight, grid, *kernel.getItems(),
                                *kernel.getBytes(), most);
  return {true, Part{op.getFrom(), op.getEnd()}, false};
}

/// Maps the arguments of a region of `branch` that control enters from it or from a terminator in it. What a terminator
/// forwards is not known: behind the branch, where its path may go as well, nothing that is computed of it is the same.
void Reader::enter(OpBuilder &b, RegionBranchOpInterface branch, Operation *from, Region &region, IRMapping &mapping) {
  for (BlockArgument argument : region.getArguments())
    mapping.map(argument, Value());
  if (from == branch)
    for (auto [operand, input] : nn::forwardsOf(branch))
      if (operand->getOwner() == from && input.getParentRegion() == &region)
        mapping.map(input, copy(b, operand->get(), mapping));
  if (auto loop = dyn_cast<scf::ForOp>(*branch)) {
    Location at = b.getInsertionPoint()->getLoc();
    Value index = from == loop ? copy(b, loop.getLowerBound(), mapping)
                               : arith::AddIOp::create(b, at, loop.getInductionVar(), loop.getStep()).getResult();
    if (rt::StageLayersOp layers = stageLayersOf(loop)) // a stage may have none of them
      index = arith::MinSIOp::create(b, at, index, arith::ConstantIndexOp::create(b, at, layers.getLast() - 1));
    mapping.map(loop.getInductionVar(), index);
  }
}

/// What is streamed from `from`, `branch` or a terminator in it, up to the end of `branch`.
Next Reader::throughRegions(OpBuilder &b, RegionBranchOpInterface branch, Operation *from, const IRMapping &mapping) {
  Next all;
  all.leaves = false;
  llvm::SmallPtrSet<Region *, 2> entered;
  SmallVector<std::pair<Operation *, IRMapping>> ends{{from, mapping}};
  while (!ends.empty()) {
    auto [at, known] = ends.pop_back_val();
    SmallVector<RegionSuccessor> successors;
    if (at == branch)
      branch.getSuccessorRegions(RegionBranchPoint::parent(), successors);
    else
      branch.getSuccessorRegions(*at->getParentRegion(), successors);
    for (const RegionSuccessor &successor : successors) {
      Region *region = successor.getSuccessor();
      if (!region) {
        all.leaves |= !peeled.contains(branch) && !(at != branch && stageLayersOf(branch));
        continue;
      }
      const bool isFirst = entered.insert(region).second;
      if (!isFirst || !region->hasOneBlock()) {
        all.isKnown &= !isFirst && !streams(branch); // what a later iteration streams first has another index
        continue;
      }
      IRMapping inner = known;
      enter(b, branch, at, *region, inner);
      Next next = through(b, region->front(), inner);
      all.merge(next);
      if (next.leaves)
        ends.push_back({region->front().getTerminator(), inner});
    }
  }
  return all;
}

/// What is streamed in `op`, of which `mapping` says what the arguments of its function and regions are at `b`.
Next Reader::throughOp(OpBuilder &b, Operation &op, IRMapping &mapping) {
  if (rt::KernelOp kernel = streamingKernel(&op))
    return share(b, cast<rt::LaunchOp>(op), kernel, mapping);
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    IRMapping inner;
    for (auto [argument, operand] : llvm::zip(callee.getArguments(), call.getOperands()))
      inner.map(argument, argument.getType().isIndex() ? copy(b, operand, mapping) : Value());
    return through(b, callee.front(), inner);
  }
  if (auto branch = dyn_cast<RegionBranchOpInterface>(op))
    return throughRegions(b, branch, &op, mapping);
  const bool isKnown = isa<rt::LaunchOp>(op) || op.hasTrait<OpTrait::IsTerminator>() ||
                       (op.getNumRegions() == 0 && !hasUnknownEffects(&op));
  return isKnown ? Next() : unknown;
}

Next Reader::through(OpBuilder &b, Block::iterator from, Block::iterator end, IRMapping &mapping) {
  Next all;
  for (auto op = from; op != end && all.leaves; ++op) {
    Next next = throughOp(b, *op, mapping);
    all.merge(next);
    all.leaves = next.leaves;
  }
  return all;
}

/// What follows `function`: the next step, or what its caller says in the last two arguments.
Next Reader::behind(OpBuilder &b, func::FuncOp function) {
  if (!entries.contains(function)) {
    auto arguments = function.getArguments().take_back(2);
    return {true, Part{arguments[0], arguments[1]}, false};
  }
  IRMapping mapping;
  return through(b, function.front(), mapping);
}

/// What is streamed after `op`: in its block, then in or behind the op around it, then behind the function.
Next Reader::following(OpBuilder &b, Operation *op) {
  Next all;
  for (Operation *from = op; all.leaves; from = from->getParentOp()) {
    IRMapping mapping;
    Next next = through(b, std::next(from->getIterator()), from->getBlock()->end(), mapping);
    all.merge(next);
    all.leaves = next.leaves;
    if (!all.leaves)
      break;
    auto branch = dyn_cast<RegionBranchOpInterface>(from->getParentOp());
    auto function = dyn_cast<func::FuncOp>(from->getParentOp());
    Next out = function ? behind(b, function)
               : branch ? throughRegions(b, branch, from->getBlock()->getTerminator(), IRMapping())
                        : unknown;
    all.merge(out);
    all.leaves = !function && out.leaves;
  }
  return all;
}

/// Functions that stream take the part that follows them.
void Reader::addArguments() {
  auto pointer = rt::PtrType::get(module.getContext());
  for (auto function : module.getOps<func::FuncOp>())
    if (!entries.contains(function) && streams(function)) {
      function.front().addArguments({pointer, pointer}, {function.getLoc(), function.getLoc()});
      function.setFunctionType(FunctionType::get(module.getContext(), function.front().getArgumentTypes(), {}));
    }
}

/// The addresses to name; no bytes where what is next is not known.
Part Reader::partOf(OpBuilder &b, Location loc, const Next &next) {
  if (next.isKnown && next.part)
    return *next.part;
  Value none = rt::ArenaOp::create(b, loc, rt::PtrType::get(module.getContext()), 0, 0, IntegerAttr());
  return {none, none};
}

/// Erases what is not used between `before`, or null for the beginning of the block, and `end`.
void eraseUnused(Operation *before, Operation *end) {
  for (Operation *op = end->getPrevNode(); op != before;) {
    Operation *previous = op->getPrevNode();
    if (isOpTriviallyDead(op))
      op->erase();
    op = previous;
  }
}

void Reader::run() {
  if (llvm::none_of(entries, [&](func::FuncOp entry) { return streams(entry); }))
    return;
  SmallVector<scf::ForOp> loops;
  module.walk([&](scf::ForOp loop) {
    if (streams(loop))
      loops.push_back(loop);
  });
  llvm::for_each(loops, [&](scf::ForOp loop) { peelLast(loop); });

  llvm::SetVector<Operation *> users; // launches, and calls of functions that need to know what follows them
  module.walk([&](Operation *op) {
    bool waits = streamingKernel(op) && waitsBeforeStreaming(cast<rt::LaunchOp>(op));
    if (waits || (isa<func::CallOp>(op) && streams(op)))
      users.insert(op);
  });
  addArguments();
  int64_t launches = 0;
  for (Operation *op : users) {
    Operation *before = op->getPrevNode();
    OpBuilder b(op);
    Next next = following(b, op);
    Part part = partOf(b, op->getLoc(), next);
    if (isa<func::CallOp>(op))
      op->insertOperands(op->getNumOperands(), {part.from, part.end});
    else
      rt::PrefetchOp::create(b, op->getLoc(), part.from, part.end), launches += next.isKnown;
    eraseUnused(before, op);
  }
  for (func::FuncOp entry : entries) {
    Operation *first = &entry.front().front();
    OpBuilder b(first);
    Part part = partOf(b, entry.getLoc(), behind(b, entry));
    rt::PrefetchOp::create(b, entry.getLoc(), part.from, part.end);
    eraseUnused(nullptr, first);
  }
  remark(module.getLoc(), "prefetch-weights", "launches",
         std::to_string(launches) + " launches name what their workers read next, at most " + format(Bytes(most)),
         {{"launches", launches}, {"max_bytes", most}});
}

struct PrefetchWeights : impl::PrefetchWeightsBase<PrefetchWeights> {
  using PrefetchWeightsBase::PrefetchWeightsBase;

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Runtime, Form::Runtime)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    auto programs = llvm::to_vector(module.getOps<rt::ProgramOp>());
    bool known = module.walk([](rt::PrefetchOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (programs.empty() || known || isLeftOut(module, OptionalPass::PrefetchWeights))
      return;
    FailureOr<Attribute> target = targetOf(module, "prefetch-weights");
    if (failed(target))
      return signalPassFailure();
    if (auto cpu = dyn_cast<kern::CpuAttr>(*target)) // on a GPU nobody waits at a barrier
      Reader(module, programs.front(), cpu.getL2() / 4).run();
  }
};

} // namespace
} // namespace k2c
