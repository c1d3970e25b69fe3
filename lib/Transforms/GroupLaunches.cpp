//===- GroupLaunches.cpp - Calls that need no barrier between them --------===//
//
// Workers meet after a call because the next may read what others wrote, or write what they read. Calls between which
// nothing of the sort happens (CallEffects.h) form a group, with one barrier at its end:
//
//   %q  = kern.call @q_a(%n)             %q  = kern.call nowait @q_a(%n)
//   %r  = kern.call @q_b(%q)        ->   %kv = kern.call @kv_a(%n)
//   %kv = kern.call @kv_a(%n)            %r  = kern.call @q_b(%q)
//
// A call's level is the largest number of barriers on a path to it; no schedule has fewer groups than levels. A call
// that several levels could take goes to the first of them that has calls of its kind and no choice, so that what
// streams weights is beside what streams weights: static shares add up, and little work hides behind no other. Within a
// level the order of the program stays. Each block has its own groups, and no call moves across an op that is none.
//
// On a GPU the launches of a group run beside each other, so none may read what another writes.
//
//===----------------------------------------------------------------------===//
#include "CallEffects.h"
#include "Timeline.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/Remark.h"

namespace k2c {
#define GEN_PASS_DEF_GROUPLAUNCHES
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// What a call mostly does.
enum class Kind : uint8_t { Rows, Weights, Attention };

Kind kindOf(const KernelDesc &desc) {
  if (std::holds_alternative<LinearDesc>(desc.body) || std::holds_alternative<HeadLinearDesc>(desc.body))
    return Kind::Weights;
  if (std::holds_alternative<GqaAttentionDesc>(desc.body) || std::holds_alternative<AbsorbedAttentionDesc>(desc.body) ||
      std::holds_alternative<ExpandedAttentionDesc>(desc.body))
    return Kind::Attention;
  return Kind::Rows;
}

/// Calls and joins between two ops that are neither, and the op behind them.
struct Interval {
  SmallVector<kern::CallOp> calls;
  SmallVector<Operation *> joins;
  Operation *end = nullptr;
};

SmallVector<Interval> intervalsOf(Block &block) {
  SmallVector<Interval> intervals(1);
  for (Operation &op : block) {
    if (auto call = dyn_cast<kern::CallOp>(op)) {
      intervals.back().calls.push_back(call);
    } else if (isJoin(&op)) {
      intervals.back().joins.push_back(&op);
    } else {
      intervals.back().end = &op;
      intervals.emplace_back();
    }
  }
  intervals.pop_back(); // behind the terminator
  return intervals;
}

/// An order between two calls of an interval: how many barriers lie between them at least.
struct Edge {
  size_t from, to;
  int64_t barriers;
};

/// The groups of one interval.
class Schedule {
public:
  /// `effects`: of each call, in the order of the program.
  Schedule(ArrayRef<CallEffects> effects, ArrayRef<Edge> edges) : effects(effects), edges(edges) {}

  /// The level of each call.
  SmallVector<int64_t> levels();

private:
  SmallVector<int64_t> earliest();
  SmallVector<int64_t> latest(int64_t last);

  ArrayRef<CallEffects> effects;
  ArrayRef<Edge> edges; ///< by rising `to`, and all go forward
};

SmallVector<int64_t> Schedule::earliest() {
  SmallVector<int64_t> level(effects.size(), 0);
  for (const Edge &edge : edges)
    level[edge.to] = std::max(level[edge.to], level[edge.from] + edge.barriers);
  return level;
}

SmallVector<int64_t> Schedule::latest(int64_t last) {
  SmallVector<int64_t> level(effects.size(), last);
  for (const Edge &edge : llvm::reverse(edges))
    level[edge.from] = std::min(level[edge.from], level[edge.to] - edge.barriers);
  return level;
}

SmallVector<int64_t> Schedule::levels() {
  SmallVector<int64_t> first = earliest();
  SmallVector<int64_t> last = latest(*llvm::max_element(first));
  auto hasFixed = [&](int64_t level, Kind kind) {
    return llvm::any_of(llvm::seq(effects.size()), [&](size_t other) {
      return first[other] == level && last[other] == level && kindOf(effects[other].desc) == kind;
    });
  };
  SmallVector<int64_t> chosen(effects.size(), 0);
  auto edge = edges.begin();
  for (size_t call = 0; call < effects.size(); ++call) {
    for (; edge != edges.end() && edge->to == call; ++edge)
      chosen[call] = std::max(chosen[call], chosen[edge->from] + edge->barriers);
    for (int64_t level = chosen[call]; level <= last[call]; ++level)
      if (hasFixed(level, kindOf(effects[call].desc))) {
        chosen[call] = level;
        break;
      }
  }
  return chosen;
}

/// Groups the calls of one function.
class Grouper {
public:
  Grouper(FunctionOpInterface function, SymbolTable &symbols, KernelDescriptions &descriptions, nn::LimitsAttr limits,
          bool isOnGpu)
      : function(function), symbols(symbols), descriptions(descriptions), isOnGpu(isOnGpu), timeline(function, limits) {
  }

  LogicalResult run();

private:
  FailureOr<int64_t> group(const Interval &interval);
  Overlap overlap(Value a, Value b);
  void place(const Interval &interval, ArrayRef<int64_t> levels);

  FunctionOpInterface function;
  SymbolTable &symbols;
  KernelDescriptions &descriptions;
  const bool isOnGpu;
  Timeline timeline;
};

/// What a layer yields takes the place of what it carried.
Overlap Grouper::overlap(Value a, Value b) {
  int64_t first = timeline.bufferOf(a), second = timeline.bufferOf(b);
  if (a == b || (first >= 0 && first == second))
    return Overlap::Same;
  auto layer = dyn_cast<nn::LayerOp>(*function);
  if (!layer)
    return Overlap::None;
  for (auto [carried, yielded] : llvm::zip_equal(layer.getCarried(), layer.getYielded())) {
    int64_t in = timeline.bufferOf(carried), out = timeline.bufferOf(yielded);
    if ((first == in && second == out) || (first == out && second == in))
      return Overlap::Partial;
  }
  return Overlap::None;
}

/// Calls move to their levels; a join stands before the first op that reads it.
void Grouper::place(const Interval &interval, ArrayRef<int64_t> levels) {
  SmallVector<size_t> order = llvm::to_vector(llvm::seq(levels.size()));
  llvm::stable_sort(order, [&](size_t a, size_t b) { return levels[a] < levels[b]; });
  for (auto [at, index] : llvm::enumerate(order)) {
    kern::CallOp call = interval.calls[index];
    call.setNowait(at + 1 < order.size() && levels[order[at + 1]] == levels[index]);
    call->moveBefore(interval.end);
  }
  for (Operation *join : interval.joins) {
    Operation *reader = interval.end;
    for (Operation *user : join->getUsers())
      if (Operation *inBlock = join->getBlock()->findAncestorOpInBlock(*user); inBlock->isBeforeInBlock(reader))
        reader = inBlock;
    join->moveBefore(reader);
  }
}

/// The number of groups.
FailureOr<int64_t> Grouper::group(const Interval &interval) {
  std::vector<CallEffects> effects;
  for (kern::CallOp call : interval.calls) {
    FailureOr<CallEffects> touched = effectsOf(call, symbols, descriptions);
    if (failed(touched))
      return failure();
    effects.push_back(std::move(*touched));
  }
  if (effects.empty())
    return 0;
  SmallVector<Edge> edges;
  for (size_t to = 0; to < effects.size(); ++to)
    for (size_t from = 0; from < to; ++from)
      if (CallOrder order = orderOf(effects[from], effects[to], [&](Value a, Value b) { return overlap(a, b); });
          order != CallOrder::Free)
        edges.push_back({from, to, needsBarrier(order, isOnGpu)});
  SmallVector<int64_t> levels = Schedule(effects, edges).levels();
  place(interval, levels);
  return *llvm::max_element(levels) + 1;
}

LogicalResult Grouper::run() {
  int64_t calls = 0, groups = 0;
  WalkResult done = function.walk<WalkOrder::PreOrder>([&](Block *block) {
    for (const Interval &interval : intervalsOf(*block)) {
      FailureOr<int64_t> formed = group(interval);
      if (failed(formed))
        return WalkResult::interrupt();
      calls += int64_t(interval.calls.size());
      groups += *formed;
    }
    return WalkResult::advance();
  });
  if (done.wasInterrupted())
    return failure();
  remark(function.getLoc(), "group-launches", function.getName(),
         "function '" + function.getName().str() + "': " + std::to_string(calls) + " calls, " + std::to_string(groups) +
             " barriers",
         {{"calls", calls}, {"barriers", groups}});
  return success();
}

struct GroupLaunches : impl::GroupLaunchesBase<GroupLaunches> {
  using GroupLaunchesBase::GroupLaunchesBase;

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Scheduled, Form::Scheduled)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    if (isLeftOut(module, OptionalPass::LaunchGroups))
      return;
    auto limits = nn::limitsOf(module);
    if (!limits) {
      module.emitError() << "group-launches: the module has no nn.limits, so no buffer has a bound";
      return signalPassFailure();
    }
    SymbolTable symbols(module);
    for (FunctionOpInterface function : kern::stepFunctions(module))
      if (failed(Grouper(function, symbols, getAnalysis<KernelDescriptions>(), limits, isOnGpu(module)).run()))
        return signalPassFailure();
    markAnalysesPreserved<KernelDescriptions>();
  }
};

} // namespace
} // namespace k2c
