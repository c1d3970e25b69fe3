//===- AssignMemory.cpp - Every buffer has an offset ----------------------===//
//
// The arena of a step is known before any step runs: a row space has a bound, a value a first and a last reader.
// Buffers are placed first fit in program order:
//
//   offset ^      | a      |
//          |      |--------+--------|
//          | x    | x      | c (where a and x lay)        time ->
//
// A layer lies above what is live where it is called, once for all its indices. What it carries it yields in the same
// place, so layers need no second copy of the rows; so do loops. What it only reads lies where its caller has it.
//
//   list     %z:2 = nn.layers %x, %y reads %t, %b [@two[0 to 4]]      %x at 0, %y at 64, %t at 128
//   layer    @two(%layer, %x, %y, %read, %b) .. nn.yield %u, %v       %x and %u at 0, %y and %v at 64, %read at 128
//
// Calls of one group live at the same time, and what asynchronous work touches lives until its wait (Timeline.h).
// Without `reuse` no two buffers share a byte but these. `mem.peak` of the module is the arena of the certificate;
// remarks name the largest buffers that it holds when it is fullest.
//
//===----------------------------------------------------------------------===//
#include "PeakBuffers.h"
#include "dialects/Kern/Kern.h"
#include "dialects/Mem/Mem.h"
#include "k2c/Kernels/Describe.h"
#include "k2c/Kernels/TileAttr.h"
#include "k2c/Support/Units.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/Remark.h"

namespace k2c {
#define GEN_PASS_DEF_ASSIGNMEMORY
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// Buffers start on cache lines; vector loads never straddle two because of the arena.
constexpr int64_t alignment = 64;

int64_t alignUp(int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// The lowest offset >= base where `bytes` fit beside the buffers that live at the same time.
int64_t firstFit(ArrayRef<Buffer> buffers, const Buffer &wanted, int64_t base, bool reuse) {
  SmallVector<std::pair<int64_t, int64_t>> taken;
  for (const Buffer &other : buffers)
    if (other.offset >= 0 && (!reuse || (other.first <= wanted.last && wanted.first <= other.last)))
      taken.push_back({other.offset, other.offset + alignUp(other.bytes)});
  llvm::sort(taken);
  int64_t offset = base;
  for (auto [begin, end] : taken) {
    if (offset + wanted.bytes <= begin)
      break;
    offset = std::max(offset, end);
  }
  return offset;
}

/// Places functions from the entry down.
class Placer {
public:
  Placer(ModuleOp module, nn::LimitsAttr limits, bool reuse) : symbols(module), limits(limits), reuse(reuse) {}

  /// Places `function`'s buffers from `base` up; the rows that a layer takes lie at `arguments`. Returns the peak.
  FailureOr<int64_t> place(FunctionOpInterface function, int64_t base, ArrayRef<int64_t> arguments);
  /// What lies below the highest byte of a placed entry.
  SmallVector<PeakBuffer> atPeak(FunctionOpInterface entry) { return buffersAtPeak(entry, timelines, symbols, reuse); }

private:
  LogicalResult pinRows(nn::LayerOp layer, Timeline &timeline, ArrayRef<int64_t> offsets);
  bool mayReplace(Value result, ArrayRef<Value> values, int64_t from, const Timeline &timeline);
  LogicalResult checkForwards(RegionBranchOpInterface branch, const Timeline &timeline);
  LogicalResult checkRows(nn::LayersOp op, const Timeline &timeline);
  FailureOr<int64_t> placeLayers(nn::LayersOp op, const Timeline &timeline, int64_t base);
  void writeOffsets(FunctionOpInterface function, const Timeline &timeline);

  SymbolTable symbols;
  nn::LimitsAttr limits;
  bool reuse;
  llvm::DenseMap<nn::LayerOp, nn::LayersOp> placed; ///< by the list that placed them
  PlacedTimelines timelines;
};

/// True if `call` reads `value` only element by element, so that its result may take the value's place.
bool readsInPlace(kern::CallOp call, Value value, SymbolTable &symbols) {
  auto callee = symbols.lookup<kern::FuncOp>(call.getCallee());
  for (auto [argument, formal] : llvm::zip_equal(call.getCallArguments(), callee.getBody().getArguments()))
    if (argument.value == value &&
        llvm::any_of(formal.getUsers(), [](Operation *user) { return !isa<nn::AddOp>(user); }))
      return false;
  return true;
}

/// `result` may lie where `values` lie, if a call writes it that reads them element by element, and no other op reads
/// them from the point `from` on.
bool Placer::mayReplace(Value result, ArrayRef<Value> values, int64_t from, const Timeline &timeline) {
  auto producer = result.getDefiningOp<kern::CallOp>();
  auto isRead = [&](Value value) {
    auto reads = [&](Operation *user) { return user != producer && timeline.useOf(value, user) >= from; };
    return llvm::any_of(value.getUsers(), reads) || !readsInPlace(producer, value, symbols);
  };
  return producer && llvm::none_of(values, isRead);
}

/// Layers pass rows in the arena: `op` may not take or yield what lies in the step.
static LogicalResult checkInArena(Operation *op, ValueRange rows, const Timeline &timeline) {
  for (Value value : rows)
    if (timeline.bufferOf(value) < 0)
      return op->emitError()
             << "assign-memory: rows that layers take and yield lie in the arena, and these do not: they "
                "are sampled, or have no columns";
  return success();
}

/// The rows that a layer takes lie at `offsets`, and what it yields where it took what it carries.
LogicalResult Placer::pinRows(nn::LayerOp layer, Timeline &timeline, ArrayRef<int64_t> offsets) {
  if (failed(checkInArena(layer, layer.getYielded(), timeline)) ||
      failed(checkInArena(layer, layer.getRows(), timeline)))
    return failure();
  for (auto [rows, offset] : llvm::zip_equal(layer.getRows(), offsets))
    timeline.buffers[timeline.bufferOf(rows)].offset = offset;
  for (auto [place, carried, yielded] : llvm::enumerate(layer.getCarried(), layer.getYielded())) {
    Buffer &in = timeline.buffers[timeline.bufferOf(carried)], &out = timeline.buffers[timeline.bufferOf(yielded)];
    if (&in == &out)
      continue;
    if (out.offset >= 0)
      return layer.emitError() << "assign-memory: layer '" << layer.getSymName() << "' yields for place " << place
                               << " what lies in place " << llvm::find(offsets, out.offset) - offsets.begin()
                               << "; rows do not change places, so add to what is carried in each";
    if (!mayReplace(yielded, in.values, out.first, timeline))
      return layer.emitError() << "assign-memory: layer '" << layer.getSymName()
                               << "' still reads what it carries in place " << place
                               << " when it writes the next; add the residual last";
    out.offset = offsets[place];
  }
  return success();
}

/// `op` writes over `argument`, which `taker` (`op`, or a terminator in it) forwards, and over all that was there
/// before it and lies with it: nothing may read any of it after it.
static LogicalResult checkArgument(Operation *op, Value argument, Operation *taker, const Timeline &timeline) {
  for (Value value : timeline.buffers[timeline.bufferOf(argument)].values)
    for (Operation *user : value.getUsers())
      if (timeline.definitionOf(value) < timeline.positionOf(op) &&
          timeline.useOf(value, user) > timeline.positionOf(op) && (user != taker || user == op))
        return user->emitError() << "assign-memory: reads the argument of '" << op->getName()
                                 << "' after its result took the place; read it before";
  return success();
}

/// What control flow forwards lies in one place. It comes from one value around `branch`, and from one of each of its
/// ends; what lay there is not read any more once the next is written.
LogicalResult Placer::checkForwards(RegionBranchOpInterface branch, const Timeline &timeline) {
  auto isInside = [&](Value value) { return branch->isAncestor(value.getParentRegion()->getParentOp()); };
  llvm::DenseMap<std::pair<Operation *, int64_t>, OpOperand *> from; // by who forwards, and the buffer
  llvm::DenseMap<int64_t, Value> around;
  auto forwards = nn::forwardsOf(branch);
  for (auto [operand, input] : forwards) {
    Value value = operand->get();
    int64_t buffer = timeline.bufferOf(value);
    if (buffer < 0)
      continue;
    bool isAlone = from.try_emplace({operand->getOwner(), buffer}, operand).first->second == operand &&
                   (isInside(value) || around.try_emplace(buffer, value).first->second == value);
    if (!isAlone)
      return branch->emitError() << "assign-memory: '" << branch->getName()
                                 << "' forwards two values that would lie in one place; add to one of them first";
  }
  for (auto [operand, input] : forwards) {
    Value value = operand->get();
    int64_t buffer = timeline.bufferOf(value);
    if (buffer < 0 || value == input)
      continue;
    if (!isInside(value) && failed(checkArgument(branch, value, operand->getOwner(), timeline)))
      return failure();
    if (operand->getOwner() == branch || !isa<BlockArgument>(input) || !branch.hasLoop())
      continue;
    Operation *producer = value.getDefiningOp();
    auto others = llvm::make_filter_range(timeline.buffers[buffer].values,
                                          [&](Value other) { return other != value && isInside(other); });
    if (!producer || !mayReplace(value, llvm::to_vector(others), timeline.positionOf(producer), timeline))
      return branch->emitError() << "assign-memory: '" << branch->getName()
                                 << "' still reads what it carries when it writes the next; add to it last";
  }
  return success();
}

/// What lay where `op` carries values is not read after it, and nothing else that `op` takes lies there.
LogicalResult Placer::checkRows(nn::LayersOp op, const Timeline &timeline) {
  if (failed(checkInArena(op, op.getRows(), timeline)))
    return failure();
  llvm::SmallDenseSet<int64_t> written;
  for (auto [number, value] : llvm::enumerate(op.getRows())) {
    const int64_t buffer = timeline.bufferOf(value);
    const bool isCarried = number < op.getCarried().size();
    if (isCarried ? !written.insert(buffer).second : written.contains(buffer))
      return op.emitError()
             << "assign-memory: '" << op->getName()
             << "' takes two values that would lie in one place, and writes it; add to one of them first";
    if (isCarried && failed(checkArgument(op, value, op, timeline)))
      return failure();
  }
  return success();
}

FailureOr<int64_t> Placer::placeLayers(nn::LayersOp op, const Timeline &timeline, int64_t base) {
  if (failed(checkRows(op, timeline)))
    return failure();
  int64_t at = timeline.positionOf(op), floor = base;
  for (const Buffer &buffer : timeline.buffers)
    if (buffer.first <= at && at <= buffer.last)
      floor = std::max(floor, buffer.offset + alignUp(buffer.bytes));
  int64_t peak = floor;
  SmallVector<int64_t> arguments =
      llvm::map_to_vector(op.getRows(), [&](Value value) { return timeline.buffers[timeline.bufferOf(value)].offset; });
  for (FlatSymbolRefAttr callee : op.getCallees()) {
    auto layer = symbols.lookup<nn::LayerOp>(callee.getValue());
    auto [known, isNew] = placed.try_emplace(layer, op);
    if (!isNew && known->second == op)
      continue;
    if (!isNew)
      return op.emitError()
             << "assign-memory: layer '" << layer.getSymName()
             << "' is in two lists of layers, and has one set of offsets; give each list its own function";
    FailureOr<int64_t> end = place(layer, reuse ? floor : peak, arguments);
    if (failed(end))
      return failure();
    peak = std::max(peak, *end);
  }
  return peak;
}

void Placer::writeOffsets(FunctionOpInterface function, const Timeline &timeline) {
  function.walk([&](nn::PlacedOp op) {
    SmallVector<int64_t> offsets;
    for (Value result : op->getResults()) {
      int64_t buffer = timeline.bufferOf(result);
      offsets.push_back(buffer < 0 ? 0 : timeline.buffers[buffer].offset);
    }
    op.setOffsets(offsets);
  });
}

FailureOr<int64_t> Placer::place(FunctionOpInterface function, int64_t base, ArrayRef<int64_t> arguments) {
  if (!function.getFunctionBody().hasOneBlock())
    return function.emitError() << "assign-memory: the function has several blocks; loops and branches are ops with "
                                   "regions";
  Timeline &timeline = *(timelines[function] = std::make_unique<Timeline>(function, limits));
  if (auto layer = dyn_cast<nn::LayerOp>(*function)) {
    if (failed(pinRows(layer, timeline, arguments)))
      return failure();
    mem::setArguments(layer, arguments);
  }
  auto isSound = [&](RegionBranchOpInterface branch) { return WalkResult(checkForwards(branch, timeline)); };
  if (function.walk(isSound).wasInterrupted())
    return failure();
  int64_t peak = base;
  for (Buffer &buffer : timeline.buffers) {
    if (buffer.offset < 0)
      buffer.offset = firstFit(timeline.buffers, buffer, base, reuse);
    peak = std::max(peak, buffer.offset + alignUp(buffer.bytes));
  }
  SmallVector<nn::LayersOp> layers;
  function.walk([&](nn::LayersOp op) { layers.push_back(op); });
  for (nn::LayersOp op : layers) {
    FailureOr<int64_t> end = placeLayers(op, timeline, reuse ? base : peak);
    if (failed(end))
      return failure();
    peak = std::max(peak, *end);
  }
  writeOffsets(function, timeline);
  mem::setPeak(function, peak);
  remark(function.getLoc(), "assign-memory", function.getName(),
         "function '" + function.getName().str() + "': " + std::to_string(timeline.count()) + " buffers, peak " +
             format(Bytes(peak)),
         {{"buffers", timeline.count()}, {"peak_bytes", peak}});
  return peak;
}

/// The largest buffers of the fullest moment, and the rest, so that all of them are `peak`: bytes between buffers that
/// none of them takes, and the partials behind them.
void remarkPeak(FunctionOpInterface entry, ArrayRef<PeakBuffer> buffers, int64_t peak, int64_t partials) {
  constexpr size_t most = 6;
  int64_t rest = 0, all = 0;
  for (auto [i, buffer] : llvm::enumerate(buffers)) {
    all += buffer.bytes;
    if (i < most)
      remark(buffer.value.getLoc(), "assign-memory", "peak",
             "arena at its peak: " + format(Bytes(buffer.bytes)) + ", " + nameOf(buffer.value),
             {{"bytes", buffer.bytes}, {"offset", buffer.offset}});
    else
      rest += buffer.bytes;
  }
  const int64_t unused = peak - partials - all, others = std::max<int64_t>(0, int64_t(buffers.size()) - int64_t(most));
  remark(entry.getLoc(), "assign-memory", "peak",
         "arena at its peak: " + format(Bytes(rest)) + " of " + std::to_string(others) + " other buffers, " +
             format(Bytes(unused)) + " between buffers, " + format(Bytes(partials)) +
             " of split-KV attention; in all " + format(Bytes(peak)),
         {{"other_bytes", rest}, {"unused_bytes", unused}, {"partial_bytes", partials}, {"peak_bytes", peak}});
}

struct AssignMemory : impl::AssignMemoryBase<AssignMemory> {
  using AssignMemoryBase::AssignMemoryBase;

  /// Partials of split-KV attentions lie behind all buffers, from `peak` on; returns the new peak.
  FailureOr<int64_t> placePartials(ModuleOp module, int64_t peak) {
    for (auto kernel : module.getOps<kern::FuncOp>()) {
      if (!kernel.getTile() || kernel.getTileAttr().getSplitTokens() == 0)
        continue;
      const DescribedKernel *described = getAnalysis<KernelDescriptions>().find(kernel);
      if (!described)
        return failure();
      int64_t offset = alignUp(peak);
      peak = offset + partialBytes(described->desc, tileConfig(kernel.getTileAttr()));
      module.walk([&](kern::CallOp call) {
        if (call.getCallee() == kernel.getSymName())
          call.setPartials(offset);
      });
    }
    return peak;
  }

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Scheduled, Form::Scheduled)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    auto limits = nn::limitsOf(module);
    if (!limits) {
      module.emitError() << "assign-memory: the module has no nn.limits, so no buffer has a bound";
      return signalPassFailure();
    }
    Placer placer(module, limits, !isLeftOut(module, OptionalPass::BufferReuse));
    int64_t peak = 0;
    FunctionOpInterface largest;
    for (FunctionOpInterface function : kern::stepFunctions(module)) {
      if (!nn::isEntry(function))
        continue;
      FailureOr<int64_t> end = placer.place(function, 0, {});
      if (failed(end))
        return signalPassFailure();
      if (!largest || *end > peak)
        largest = function;
      peak = std::max(peak, *end);
    }
    FailureOr<int64_t> end = placePartials(module, peak);
    if (failed(end))
      return signalPassFailure();
    if (largest)
      remarkPeak(largest, placer.atPeak(largest), *end, *end - peak);
    mem::setPeak(module, *end);
    markAnalysesPreserved<KernelDescriptions>();
  }
};

} // namespace
} // namespace k2c
