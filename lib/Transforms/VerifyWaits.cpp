//===- VerifyWaits.cpp - Each exchange is waited for ----------------------===//
//
// A site has one start and one wait in a program. From each entry on the program is followed through its calls, with
// the sites that are in flight, so that a wait may be in another function than its start. A branch or a loop leaves in
// flight what it found so: whatever path is taken, starts and waits alternate. Between them the communication thread
// has the buffers:
//
//   rt.collective_start @site0 layer %l source %m to %sent result %in from %came
//   rt.launch @shared grid(%g) args(%x, %w, %y)          other addresses: runs beside the exchange
//   rt.launch @unpack in @site0 grid(%n) args(%in, ..)   refused, twice: %in is in flight, and nobody knows how many
//   came rt.collective_wait @site0
//
// The two halves of a step have an arena each, so that a site is in flight for a half, and the other does as it likes.
// The runtime form has addresses, and no sizes: that bytes of two buffers are apart is for the scheduled form to prove
// (VerifyGroups.cpp). Here an address of the arena must not be one of those in flight, and other addresses are those of
// weights, planes and placements.
//
//===----------------------------------------------------------------------===//
#include "VerifyWaits.h"
#include "UniformControl.h"
#include "dialects/Rt/Rt.h"
#include "k2c/Transforms/PlanAttr.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include <map>
#include <set>

using namespace mlir;

namespace k2c {

namespace {

/// The ops of a site.
struct Site {
  rt::CollectiveOp facts;
  rt::CollectiveStartOp start;
  rt::CollectiveWaitOp wait;
};

/// Of one half: sites that were started and not waited for, those whose rows are known, and ends of stages that it has
/// come to.
struct HalfState {
  std::set<StringRef> inFlight, counted, forwarded;

  auto key() const { return std::tie(inFlight, counted, forwarded); }
  bool operator<(const HalfState &other) const { return key() < other.key(); }
};

/// Where a path has come to.
struct PathState {
  std::array<HalfState, 2> halves;
  bool isSecond = false, hasSecond = false;

  HalfState &half() { return halves[isSecond]; }
  bool operator<(const PathState &other) const {
    return std::tie(halves, isSecond, hasSecond) < std::tie(other.halves, other.isSecond, other.hasSecond);
  }
};

class Waits {
public:
  Waits(ModuleOp module, StringRef who) : module(module), who(who), symbols(module) {}

  LogicalResult verify();

private:
  LogicalResult collect();
  template <class Op> LogicalResult take(Op op, Op Site::*place);
  LogicalResult verifySite(Site &site);
  bool isInEntry(Operation *op);
  LogicalResult verifyStages(Site &site);
  LogicalResult verifyPair(rt::CollectiveOp facts);
  LogicalResult forward(rt::CollectiveStartOp op, rt::CollectiveOp facts, PathState &state);
  LogicalResult followEntry(func::FuncOp entry);
  LogicalResult follow(Block &block, PathState &state);
  LogicalResult followCall(func::CallOp call, PathState &state);
  LogicalResult followRegions(Operation *op, PathState &state);
  LogicalResult start(rt::CollectiveStartOp op, PathState &state);
  LogicalResult wait(rt::CollectiveWaitOp op, PathState &state);
  LogicalResult verifyBeside(Operation *op, PathState &state);
  LogicalResult verifyCounted(Operation *op, PathState &state);
  InFlightDiagnostic refuse(Operation *at) { return at->emitError() << who << ": "; }

  ModuleOp module;
  StringRef who;
  SymbolTable symbols;
  llvm::MapVector<StringRef, Site> sites; ///< by name, in the order of the table
  SmallVector<func::CallOp> calls;
  llvm::DenseSet<StringRef> entries; ///< of the program
  /// What a function makes of a path that comes to it.
  std::map<std::pair<Operation *, PathState>, PathState> followed;
  /// Bounds of time and of the stack, beyond any program that was compiled.
  static constexpr size_t maxStates = 256, maxDepth = 1024;
  llvm::DenseMap<Operation *, size_t> states; ///< that a function was followed from
  size_t depth = 0;
};

template <class Op> LogicalResult Waits::take(Op op, Op Site::*place) {
  Op &known = sites[op.getSite()].*place;
  if (known)
    return refuse(op) << "a second '" << op->getName() << "' is of @" << op.getSite()
                      << "; a site has one start and one wait";
  known = op;
  return success();
}

/// The table, whose entries the program knows by number, and who starts and waits. Only ops of functions: most of a
/// program is the code of kernels, in modules.
LogicalResult Waits::collect() {
  for (auto facts : module.getOps<rt::CollectiveOp>()) {
    const auto number = static_cast<int64_t>(sites.size());
    if (facts.getSite() != number)
      return refuse(facts) << "site " << facts.getSite() << " is entry " << number
                           << " of the table; list sites by number from 0 without gaps";
    sites[facts.getSymName()].facts = facts;
  }
  auto visit = [&](Operation *op) -> WalkResult {
    if (auto start = dyn_cast<rt::CollectiveStartOp>(op))
      return take(start, &Site::start);
    if (auto wait = dyn_cast<rt::CollectiveWaitOp>(op))
      return take(wait, &Site::wait);
    return success();
  };
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.walk(visit).wasInterrupted())
      return failure();
    function.walk([&](func::CallOp call) { calls.push_back(call); });
  }
  for (auto program : module.getOps<rt::ProgramOp>())
    for (NamedAttribute entry : program.getEntries())
      entries.insert(cast<FlatSymbolRefAttr>(entry.getValue()).getValue());
  return success();
}

LogicalResult Waits::verifySite(Site &site) {
  Operation *only = site.start ? site.start.getOperation() : site.wait.getOperation();
  if (!only)
    return refuse(site.facts) << "nothing starts @" << site.facts.getSymName()
                              << "; sites are those of the program, numbered without gaps";
  if (!site.start || !site.wait)
    return refuse(only) << "@" << site.facts.getSymName() << " has no " << (site.start ? "wait" : "start")
                        << "; a site has one start and one wait";
  for (Value buffer : site.start->getOperands())
    if (isa<rt::PtrType>(buffer.getType()) && !buffer.getDefiningOp<rt::ArenaOp>())
      return refuse(site.start) << "a buffer of @" << site.facts.getSymName()
                                << " is no address of the arena; exchange what assign-memory has placed";
  return site.facts.getAxis() == rt::Axis::Pp ? verifyStages(site) : success();
}

/// In an entry of the program, or in what it does for the second half.
bool Waits::isInEntry(Operation *op) {
  Operation *around = op->getParentOp();
  if (isa<rt::SecondHalfOp>(around))
    around = around->getParentOp();
  auto function = dyn_cast<func::FuncOp>(around);
  return function && entries.contains(function.getName());
}

/// Stages have other layers, but come to the same sites of stages: entries call those outside of loops over layers.
LogicalResult Waits::verifyStages(Site &site) {
  for (Operation *end : {site.start.getOperation(), site.wait.getOperation()}) {
    auto function = dyn_cast<func::FuncOp>(end->getParentOp());
    bool isOnce = function && !isInEntry(end);
    for (func::CallOp call : calls)
      isOnce &= !function || call.getCallee() != function.getName() || isInEntry(call);
    if (!isOnce)
      return refuse(end) << "'" << end->getName() << "' of @" << site.facts.getSymName()
                         << " is not in a function that entries of rt.program call, and stages forward rows once a "
                            "step; take it out of what layers do";
  }
  return verifyPair(site.facts);
}

/// Each end of a stage has one other end, and as many stages as the plan come to it.
LogicalResult Waits::verifyPair(rt::CollectiveOp facts) {
  if (ArrayRef<int64_t> bounds = stagesOf(module);
      !bounds.empty() && static_cast<size_t>(facts.getMembers()) + 1 != bounds.size())
    return refuse(facts) << "@" << facts.getSymName() << " has " << facts.getMembers() << " members, and the plan "
                         << bounds.size() - 1 << " stages; have a member for each stage";
  const bool sends = facts.getOp() == rt::Collective::Send;
  int64_t others = 0;
  for (auto &[name, other] : sites) {
    const bool isOther = sends ? *facts.getTo() == other.facts.getSite() &&
                                     other.facts.getOp() == rt::Collective::Receive &&
                                     other.facts.getRowBytes() == facts.getRowBytes()
                               : other.facts.getTo() == facts.getSite();
    others += isOther;
  }
  if (sends && others == 0)
    return refuse(facts) << "@" << facts.getSymName() << " sends rows of " << facts.getRowBytes() << " bytes to site "
                         << *facts.getTo()
                         << ", which does not receive such rows; send to the site where the next stage takes them";
  if (others != 1)
    return refuse(facts) << others << " sites send to @" << facts.getSymName() << "; have one send for each receive";
  return success();
}

/// Stages receive once, and then send once, in each half of a step: what is sent was made of what came.
LogicalResult Waits::forward(rt::CollectiveStartOp op, rt::CollectiveOp facts, PathState &state) {
  HalfState &half = state.half();
  if (!state.isSecond && state.halves[1].forwarded.count(op.getSite()) > 0)
    return refuse(op) << "@" << op.getSite()
                      << " was started for the second half before, and stages match rows by their order; forward the "
                         "first half first";
  if (!half.forwarded.insert(op.getSite()).second)
    return refuse(op) << "@" << op.getSite() << " was started before in this half of the step; forward rows once";
  for (auto &[name, other] : sites)
    if (facts.getTo() == other.facts.getSite() && half.counted.count(name) == 0)
      return refuse(op) << "@" << op.getSite() << " sends before rows came to @" << name << "; wait for these first";
  return success();
}

LogicalResult Waits::start(rt::CollectiveStartOp op, PathState &state) {
  if (state.half().inFlight.count(op.getSite()) > 0)
    return refuse(op) << "@" << op.getSite() << " is in flight here; wait for it before it starts again";
  if (failed(verifyBeside(op, state)))
    return failure();
  if (rt::CollectiveOp facts = sites[op.getSite()].facts;
      facts.getAxis() == rt::Axis::Pp && failed(forward(op, facts, state)))
    return failure();
  state.half().inFlight.insert(op.getSite());
  state.half().counted.erase(op.getSite());
  return success();
}

LogicalResult Waits::wait(rt::CollectiveWaitOp op, PathState &state) {
  if (state.half().inFlight.erase(op.getSite()) == 0)
    return refuse(op) << "the wait for @" << op.getSite()
                      << " is not behind its start on every path; wait once, where the start has been";
  state.half().counted.insert(op.getSite());
  return success();
}

/// `op` runs while sites of its half are in flight.
LogicalResult Waits::verifyBeside(Operation *op, PathState &state) {
  if (isMemoryEffectFree(op))
    return success(); // an address is no access
  for (StringRef name : state.half().inFlight) {
    auto touches = [&](const Twine &what) {
      return refuse(op) << "'" << op->getName() << "' " << what.str() << " while @" << name
                        << " is in flight; wait for it first";
    };
    for (Value value : op->getOperands()) {
      if (!isa<rt::PtrType>(value.getType()))
        continue;
      auto arena = value.getDefiningOp<rt::ArenaOp>();
      const bool isNamed = value.getDefiningOp() && isa<rt::RtDialect>(value.getDefiningOp()->getDialect());
      if (!isNamed && !isa<rt::PrefetchOp>(op)) // which reads nothing that counts
        return touches("takes an address that may be one of the arena");
      for (Value buffer : sites[name].start->getOperands())
        if (auto held = buffer.getDefiningOp<rt::ArenaOp>(); arena && held && arena.getOffset() == held.getOffset())
          return touches("takes address " + Twine(arena.getOffset()) + " of the arena");
    }
  }
  return success();
}

/// Rows that came to a site are known when it was waited for.
LogicalResult Waits::verifyCounted(Operation *op, PathState &state) {
  FlatSymbolRefAttr name;
  if (auto arrived = dyn_cast<rt::ArrivedOp>(op))
    name = arrived.getSiteAttr();
  else if (auto launch = dyn_cast<rt::LaunchOp>(op))
    name = launch.getArrivedAttr();
  if (!name || state.half().counted.count(name.getValue()) > 0)
    return success();
  return refuse(op) << "'" << op->getName() << "' counts rows of " << name
                    << " where nothing has waited for them; count behind the wait";
}

/// Paths through regions of `op`: none, or one of them, once or more. All of them find what was counted before.
LogicalResult Waits::followRegions(Operation *op, PathState &state) {
  const PathState before = state;
  for (Region &region : op->getRegions()) {
    if (region.empty())
      continue;
    PathState inside = before;
    if (failed(follow(region.front(), inside)))
      return failure();
    for (auto [found, left] : llvm::zip_equal(before.halves, inside.halves)) {
      const bool waits = !llvm::includes(left.inFlight, found.inFlight);
      const HalfState &more = waits ? found : left, &less = waits ? left : found;
      for (StringRef name : more.inFlight)
        if (less.inFlight.count(name) == 0)
          return refuse(op) << "'" << op->getName() << "' " << (waits ? "waits for" : "starts") << " @" << name
                            << " on some path alone; start and wait on both sides of it, or within";
    }
  }
  return success();
}

LogicalResult Waits::followCall(func::CallOp call, PathState &state) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!callee || callee.isExternal()) {
    for (StringRef name : state.half().inFlight)
      return refuse(call) << "'" << call->getName() << "' may touch any buffer while @" << name
                          << " is in flight; wait for it first";
    return success();
  }
  auto [found, isNew] = followed.try_emplace({callee, state}, state);
  if (isNew) {
    if (++states[callee] > maxStates || depth == maxDepth)
      return refuse(call) << "@" << callee.getName() << " is called with more than " << maxStates
                          << " sets of sites in flight, or in a chain of more than " << maxDepth
                          << " calls; exchange in fewer functions";
    ++depth;
    PathState behind = state;
    if (failed(follow(callee.front(), behind)))
      return failure();
    --depth;
    found->second = behind;
  }
  state = found->second;
  return success();
}

LogicalResult Waits::follow(Block &block, PathState &state) {
  for (Operation &op : block) {
    LogicalResult done = success();
    if (auto started = dyn_cast<rt::CollectiveStartOp>(op)) {
      done = start(started, state);
    } else if (auto waited = dyn_cast<rt::CollectiveWaitOp>(op)) {
      done = wait(waited, state);
    } else if (auto call = dyn_cast<func::CallOp>(op)) {
      done = followCall(call, state);
    } else if (auto second = dyn_cast<rt::SecondHalfOp>(op)) {
      if (state.isSecond)
        return refuse(&op) << "this is done for the second half already; a step has two";
      state.isSecond = state.hasSecond = true;
      done = follow(second.getBody().front(), state);
      state.isSecond = false;
    } else if (op.getNumRegions() > 0) {
      done = followRegions(&op, state);
    } else {
      done = success(succeeded(verifyBeside(&op, state)) && succeeded(verifyCounted(&op, state)));
    }
    if (failed(done))
      return failure();
  }
  return success();
}

LogicalResult Waits::followEntry(func::FuncOp entry) {
  PathState state;
  if (failed(follow(entry.front(), state)))
    return failure();
  for (const HalfState &half : state.halves)
    for (StringRef name : half.inFlight)
      return refuse(sites[name].start) << "nothing waits for @" << name << " before @" << entry.getName()
                                       << " ends; wait on every path";
  for (auto &[name, site] : sites)
    for (size_t half = 0; entries.contains(entry.getName()) && half < 1 + size_t(state.hasSecond); ++half)
      if (site.facts.getAxis() == rt::Axis::Pp && state.halves[half].forwarded.count(name) == 0)
        return refuse(entry) << "@" << entry.getName() << " does not come to @" << name
                             << (state.hasSecond ? " in each half of a step" : "")
                             << ", where other stages wait for it; receive and send in every entry";
  return success();
}

LogicalResult Waits::verify() {
  auto isCollective = [](Operation *op) { return isa<rt::CollectiveStartOp, rt::CollectiveWaitOp>(op); };
  if (failed(collect()) || failed(verifyUniformControl(module, isCollective, who)))
    return failure();
  for (auto &entry : sites)
    if (failed(verifySite(entry.second)))
      return failure();
  llvm::DenseSet<StringRef> called;
  for (func::CallOp call : calls)
    called.insert(call.getCallee());
  for (auto function : module.getOps<func::FuncOp>()) // entries, and what nobody calls
    if (!called.contains(function.getName()) && !function.isExternal() && failed(followEntry(function)))
      return failure();
  return success();
}

} // namespace

LogicalResult verifyWaits(ModuleOp module, StringRef who) { return Waits(module, who).verify(); }

} // namespace k2c
