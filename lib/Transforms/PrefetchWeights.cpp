//===- PrefetchWeights.cpp - What waiting workers fetch -------------------===//
//
// A step that decodes is bound by memory, and memory idles while workers wait for one another. What each reads next is
// known: before a launch that streams a weight, rt.prefetch names the worker's part of the weight that is streamed
// after it; of a group of launches, which ends with one wait, only the last that streams does so. A layer is told by
// its caller what follows it; the last call of a list of layers leaves the loop, as something else follows it. After
// the step comes the next step. Launches stand in functions and in scf.for that carries no value; what other regions do
// next nobody knows, and they are refused by name.
//
//   rt.launch @linear_qa grid(%g) args(%x, %qa, %y)
//   rt.launch @linear_qb grid(%h) args(%y, %qb, %z)
// ->
//   %f, %e = rt.share %qb grid(%h) items 48 bytes 24576 max 262144
//   rt.prefetch %f, %e
//   rt.launch @linear_qa ..
//
//===----------------------------------------------------------------------===//
#include "dialects/Rt/Rt.h"
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

class Reader {
public:
  Reader(ModuleOp module, rt::ProgramOp program, int64_t most) : module(module), symbols(module), most(most) {
    for (NamedAttribute entry : program.getEntries())
      entries.insert(symbols.lookup<func::FuncOp>(cast<FlatSymbolRefAttr>(entry.getValue()).getValue()));
  }

  LogicalResult run();

private:
  rt::KernelOp streamingKernel(Operation *op);
  bool streams(Operation *op);
  bool waitsBeforeStreaming(rt::LaunchOp launch);
  LogicalResult checkRegions();
  LogicalResult peelLast(scf::ForOp loop);
  Value copy(OpBuilder &b, Value value, IRMapping &mapping);
  Part share(OpBuilder &b, rt::LaunchOp launch, rt::KernelOp kernel, IRMapping &mapping);
  std::optional<Part> first(OpBuilder &b, Block::iterator from, Block::iterator end, IRMapping &mapping);
  std::optional<Part> firstOf(OpBuilder &b, Block &block, IRMapping &mapping) {
    return first(b, block.begin(), block.end(), mapping);
  }
  Part following(OpBuilder &b, Operation *op);

  ModuleOp module;
  SymbolTable symbols;
  llvm::SmallSetVector<func::FuncOp, 2> entries;
  int64_t most;
};

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

/// What streams stands in a function or a loop, of which it is known what comes next.
LogicalResult Reader::checkRegions() {
  WalkResult known = module.walk([&](Operation *op) -> WalkResult {
    Operation *parent = op->getParentOp();
    if (!(isa<func::CallOp>(op) && streams(op)) && !streamingKernel(op))
      return WalkResult::advance();
    for (; !isa<func::FuncOp>(parent); parent = parent->getParentOp())
      if (!isa<scf::ForOp>(parent) || parent->getNumResults() > 0)
        return parent->emitError() << "prefetch-weights: '" << parent->getName()
                                   << "' contains what streams a weight, and it is not known what is streamed after "
                                      "it; only functions and scf.for without results may";
    return WalkResult::advance();
  });
  return failure(known.wasInterrupted());
}

/// The last iteration of `loop` becomes ops behind it.
LogicalResult Reader::peelLast(scf::ForOp loop) {
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> upper = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (!lower || !upper || !step || *step < 1 || *lower >= *upper || (*upper - *lower) % *step)
    return loop.emitError("prefetch-weights: the loop has no constant bounds, does not run, or ends within a step; run "
                          "lower-to-rt first, which writes whole turns of layers");
  OpBuilder b(loop);
  Value last = arith::ConstantIndexOp::create(b, loop.getLoc(), *upper - *step);
  loop.setUpperBound(last);
  b.setInsertionPointAfter(loop);
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), last);
  for (Operation &op : loop.getBody()->without_terminator())
    b.clone(op, mapping);
  return success();
}

/// `value` at `b`, from copies of the ops that make it: addresses, row counts and arithmetic on the layer's index.
Value Reader::copy(OpBuilder &b, Value value, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op)
    return value;
  for (Value operand : op->getOperands())
    mapping.map(operand, copy(b, operand, mapping));
  return b.clone(*op, mapping)->getResult(cast<OpResult>(value).getResultNumber());
}

Part Reader::share(OpBuilder &b, rt::LaunchOp launch, rt::KernelOp kernel, IRMapping &mapping) {
  Value weight = copy(b, launch.getArgs()[*kernel.getStreams()], mapping);
  Value grid = copy(b, launch.getGrid(), mapping);
  auto pointer = rt::PtrType::get(module.getContext());
  auto op = rt::ShareOp::create(b, launch.getLoc(), pointer, pointer, weight, grid, *kernel.getItems(),
                                *kernel.getBytes(), most);
  return {op.getFrom(), op.getEnd()};
}

/// What the first of the ops [from, end) that streams a weight reads of it, as values at `b`. `mapping` says what the
/// arguments of their function and loops are there.
std::optional<Part> Reader::first(OpBuilder &b, Block::iterator from, Block::iterator end, IRMapping &mapping) {
  for (Operation &op : llvm::make_range(from, end)) {
    if (rt::KernelOp kernel = streamingKernel(&op))
      return share(b, cast<rt::LaunchOp>(op), kernel, mapping);
    IRMapping inner;
    Block *block = nullptr;
    if (auto call = dyn_cast<func::CallOp>(op)) {
      block = &symbols.lookup<func::FuncOp>(call.getCallee()).front();
      for (auto [argument, operand] : llvm::zip(block->getArguments(), call.getOperands()))
        if (isa<IndexType>(argument.getType()))
          inner.map(argument, copy(b, operand, mapping));
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      block = loop.getBody();
      inner = mapping;
      inner.map(loop.getInductionVar(), copy(b, loop.getLowerBound(), mapping));
    }
    if (!block)
      continue;
    if (std::optional<Part> part = firstOf(b, *block, inner))
      return part;
  }
  return std::nullopt;
}

/// What is streamed after `op`: in its block, in the next iteration of its loop, in the caller (the last two
/// arguments), in the next step.
Part Reader::following(OpBuilder &b, Operation *op) {
  IRMapping mapping;
  if (std::optional<Part> part = first(b, std::next(op->getIterator()), op->getBlock()->end(), mapping))
    return *part;
  if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp())) {
    Value next = arith::AddIOp::create(b, op->getLoc(), loop.getInductionVar(), loop.getStep());
    mapping.map(loop.getInductionVar(), next);
    return *firstOf(b, *loop.getBody(), mapping);
  }
  if (auto entry = dyn_cast<func::FuncOp>(op->getParentOp()); entries.contains(entry))
    return *firstOf(b, entry.front(), mapping);
  auto arguments = op->getBlock()->getArguments().take_back(2);
  return {arguments[0], arguments[1]};
}

LogicalResult Reader::run() {
  if (llvm::none_of(entries, [&](func::FuncOp entry) { return streams(entry); }))
    return success();
  if (failed(checkRegions()))
    return failure();
  SmallVector<scf::ForOp> loops;
  module.walk([&](scf::ForOp loop) {
    if (streams(loop))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops)
    if (failed(peelLast(loop)))
      return failure();

  llvm::SetVector<Operation *> users; // launches, and calls of functions that need to know what follows them
  module.walk([&](Operation *op) {
    bool waits = streamingKernel(op) && waitsBeforeStreaming(cast<rt::LaunchOp>(op));
    if (waits || (isa<func::CallOp>(op) && streams(op)))
      users.insert(op);
  });
  auto pointer = rt::PtrType::get(module.getContext());
  for (auto function : module.getOps<func::FuncOp>())
    if (!entries.contains(function) && streams(function)) {
      function.front().addArguments({pointer, pointer}, {function.getLoc(), function.getLoc()});
      function.setFunctionType(FunctionType::get(module.getContext(), function.front().getArgumentTypes(), {}));
    }
  int64_t launches = 0;
  for (Operation *op : users) {
    OpBuilder b(op);
    Part part = following(b, op);
    if (isa<func::CallOp>(op))
      op->insertOperands(op->getNumOperands(), {part.from, part.end});
    else
      rt::PrefetchOp::create(b, op->getLoc(), part.from, part.end), ++launches;
  }
  for (func::FuncOp entry : entries) {
    OpBuilder b = OpBuilder::atBlockBegin(&entry.front());
    IRMapping mapping;
    if (std::optional<Part> part = firstOf(b, entry.front(), mapping))
      rt::PrefetchOp::create(b, entry.getLoc(), part->from, part->end);
  }
  remark(module.getLoc(), "prefetch-weights", "launches",
         std::to_string(launches) + " launches name what their workers read next, at most " + std::to_string(most) +
             " bytes",
         {{"launches", launches}, {"max_bytes", most}});
  return success();
}

struct PrefetchWeights : impl::PrefetchWeightsBase<PrefetchWeights> {
  using PrefetchWeightsBase::PrefetchWeightsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto programs = llvm::to_vector(module.getOps<rt::ProgramOp>());
    bool known = module.walk([](rt::PrefetchOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (programs.empty() || known || isLeftOut(module, OptionalPass::PrefetchWeights))
      return;
    FailureOr<kern::CpuAttr> target = targetOf(module, "prefetch-weights");
    if (failed(target))
      return signalPassFailure();
    Reader reader(module, programs.front(), target->getL2() / 4);
    if (failed(reader.run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace k2c
