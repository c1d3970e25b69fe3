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
//   rt.collective_wait @site0 layer %l
//
// The two halves of a step have an arena each, so that a site is in flight for a half, and the other does as it likes.
// An address of the arena has the bytes of its value, none of which may be of those in flight; other addresses are
// those of weights, planes and placements. What goes on behind a wait is of the layer of the start: a layer that a
// function is given is known there by its argument, whatever it is of the caller, so that a function is followed once
// for all of them.
//
//===----------------------------------------------------------------------===//
#include "VerifyWaits.h"
#include "CallEffects.h"
#include "EqualValues.h"
#include "UniformControl.h"
#include "VerifySites.h"
#include "dialects/Rt/Rt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"
#include <map>
#include <set>

using namespace mlir;

namespace k2c {

namespace {

/// The layer of an exchange: the first value that was found to be it; null where it is of none.
using Layer = const void *;

/// Of one half: sites that were started and not waited for, those whose rows are known, and ends of stages that it has
/// come to.
struct HalfState {
  std::map<StringRef, Layer> inFlight;
  std::set<StringRef> counted, forwarded;

  auto key() const { return std::tie(inFlight, counted, forwarded); }
  bool operator<(const HalfState &other) const { return key() < other.key(); }
};

/// Where a path has come to.
struct PathState {
  std::array<HalfState, 2> halves;
  bool isSecond = false, hasSecond = false;

  HalfState &half() { return halves[isSecond]; }
  void renameLayers(function_ref<Layer(Layer)> renamed) {
    for (HalfState &half : halves)
      for (auto &[site, layer] : half.inFlight)
        layer = renamed(layer);
  }
  bool operator<(const PathState &other) const {
    return std::tie(halves, isSecond, hasSecond) < std::tie(other.halves, other.isSecond, other.hasSecond);
  }
};

class Waits {
public:
  Waits(ModuleOp module, StringRef who, SiteTable &sites)
      : module(module), who(who), symbols(module), sites(sites), entries(entriesOf(module)) {}

  LogicalResult verify();

private:
  LogicalResult forward(rt::CollectiveStartOp op, rt::CollectiveOp facts, PathState &state);
  LogicalResult followEntry(func::FuncOp entry);
  LogicalResult follow(Block &block, PathState &state);
  LogicalResult followCall(func::CallOp call, PathState &state);
  LogicalResult followCallee(func::CallOp call, func::FuncOp callee, PathState &state);
  Layer layerOf(Value layer);
  LogicalResult followRegions(Operation *op, PathState &state);
  LogicalResult start(rt::CollectiveStartOp op, PathState &state);
  LogicalResult wait(rt::CollectiveWaitOp op, PathState &state);
  LogicalResult verifyBeside(Operation *op, PathState &state);
  LogicalResult verifyCounted(Operation *op, PathState &state);
  InFlightDiagnostic refuse(Operation *at) { return at->emitError() << who << ": "; }

  ModuleOp module;
  StringRef who;
  SymbolTable symbols;
  SiteTable &sites;
  llvm::DenseSet<StringRef> entries; ///< of the program
  /// What a function makes of a path that comes to it.
  std::map<std::pair<Operation *, PathState>, PathState> followed;
  /// Bounds of time and of the stack, beyond any program that was compiled.
  static constexpr size_t maxStates = 256, maxDepth = 1024;
  llvm::DenseMap<Operation *, size_t> states; ///< that a function was followed from
  size_t depth = 0;
  SmallVector<Value> layers; ///< each computed otherwise than those before it
};

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

Layer Waits::layerOf(Value layer) {
  if (!layer)
    return nullptr;
  auto known = llvm::find_if(layers, [&](Value other) { return areSame(layer, other); });
  if (known == layers.end())
    known = layers.insert(known, layer);
  return known->getAsOpaquePointer();
}

LogicalResult Waits::start(rt::CollectiveStartOp op, PathState &state) {
  if (state.half().inFlight.count(op.getSite()) > 0)
    return refuse(op) << "@" << op.getSite() << " is in flight here; wait for it before it starts again";
  if (failed(verifyBeside(op, state)))
    return failure();
  if (rt::CollectiveOp facts = sites[op.getSite()].facts;
      facts.getAxis() == rt::Axis::Pp && failed(forward(op, facts, state)))
    return failure();
  state.half().inFlight.insert({op.getSite(), layerOf(op.getLayer())});
  state.half().counted.erase(op.getSite());
  return success();
}

LogicalResult Waits::wait(rt::CollectiveWaitOp op, PathState &state) {
  auto started = state.half().inFlight.find(op.getSite());
  if (started == state.half().inFlight.end())
    return refuse(op) << "the wait for @" << op.getSite()
                      << " is not behind its start on every path; wait once, where the start has been";
  if (started->second != layerOf(op.getLayer()))
    return refuse(op) << "the wait for @" << op.getSite()
                      << " is of another layer than its start; go on with the layer that has begun it";
  state.half().inFlight.erase(started);
  state.half().counted.insert(op.getSite());
  return success();
}

std::string textOf(rt::ArenaOp address) {
  return "bytes [" + std::to_string(address.getOffset()) + ", " +
         std::to_string(address.getOffset() + address.getBytes()) + ")";
}

/// `op` runs while sites of its half are in flight.
LogicalResult Waits::verifyBeside(Operation *op, PathState &state) {
  if (isMemoryEffectFree(op))
    return success(); // an address is no access
  for (auto [site, layer] : state.half().inFlight) {
    const StringRef name = site;
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
        if (auto held = buffer.getDefiningOp<rt::ArenaOp>(); arena && held && overlapOf(arena, held) != Overlap::None)
          return touches("takes " + textOf(arena) + " of the arena, of which the exchange has " + textOf(held) + ",");
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

constexpr StringLiteral onSomePath = " on some path alone; start and wait on both sides of it, or within";

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
      for (const auto &one : found.inFlight)
        if (left.inFlight.count(one.first) == 0)
          return refuse(op) << "'" << op->getName() << "' waits for @" << one.first << onSomePath;
      for (const auto &one : left.inFlight)
        if (auto before = found.inFlight.find(one.first); before == found.inFlight.end() || *before != one)
          return refuse(op) << "'" << op->getName() << "' starts @" << one.first << onSomePath;
    }
  }
  return success();
}

LogicalResult Waits::followCall(func::CallOp call, PathState &state) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!callee || callee.isExternal()) {
    for (const auto &one : state.half().inFlight)
      return refuse(call) << "'" << call->getName() << "' may touch any buffer while @" << one.first
                          << " is in flight; wait for it first";
    return success();
  }
  auto given = llvm::zip_equal(call.getOperands(), callee.getArguments());
  state.renameLayers([&](Layer layer) {
    for (auto [operand, argument] : given)
      if (operand.getType().isIndex() && layer == layerOf(operand))
        return layerOf(argument);
    return layer;
  });
  if (failed(followCallee(call, callee, state)))
    return failure();
  state.renameLayers([&](Layer layer) {
    for (auto [operand, argument] : given)
      if (operand.getType().isIndex() && layer == layerOf(argument))
        return layerOf(operand);
    return layer;
  });
  return success();
}

/// What is in flight is named in `callee`'s words.
LogicalResult Waits::followCallee(func::CallOp call, func::FuncOp callee, PathState &state) {
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
    for (const auto &one : half.inFlight)
      return refuse(sites[one.first].start)
             << "nothing waits for @" << one.first << " before @" << entry.getName() << " ends; wait on every path";
  for (auto &[name, site] : sites)
    for (size_t half = 0; entries.contains(entry.getName()) && half < 1 + size_t(state.hasSecond); ++half)
      if (site.facts.getAxis() == rt::Axis::Pp && state.halves[half].forwarded.count(name) == 0)
        return refuse(entry) << "@" << entry.getName() << " does not come to @" << name
                             << (state.hasSecond ? " in each half of a step" : "")
                             << ", where other stages wait for it; receive and send in every entry";
  return success();
}

LogicalResult Waits::verify() {
  llvm::DenseSet<StringRef> called;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](func::CallOp call) { called.insert(call.getCallee()); });
  for (auto function : module.getOps<func::FuncOp>()) // entries, and what nobody calls
    if (!called.contains(function.getName()) && !function.isExternal() && failed(followEntry(function)))
      return failure();
  return success();
}

} // namespace

LogicalResult verifyWaits(ModuleOp module, StringRef who) {
  auto isCollective = [](Operation *op) { return isa<rt::CollectiveStartOp, rt::CollectiveWaitOp>(op); };
  FailureOr<SiteTable> sites = collectSites(module, who);
  return failure(failed(sites) || failed(verifyUniformControl(module, isCollective, who)) ||
                 failed(verifySites(module, *sites, who)) || failed(Waits(module, who, *sites).verify()));
}

} // namespace k2c
