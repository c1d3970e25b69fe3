//===- VerifyWaits.cpp - Each exchange is waited for ----------------------===//
//
// A site has one start and one wait in a program, in one block, so that a path that takes one takes the other. Between
// them the communication thread has the buffers:
//
//   rt.collective_start @site0 layer %l source %m to %sent result %in from %came
//   rt.launch @shared grid(%g) args(%x, %w, %y)          other addresses: runs beside the exchange
//   rt.launch @unpack in @site0 grid(%n) args(%in, ..)   refused, twice: %in is in flight, and nobody knows how many
//   came rt.collective_wait @site0
//
// The runtime form has addresses, and no sizes: that bytes of two buffers are apart is for the scheduled form to prove
// (VerifyGroups.cpp). Here an address of the arena must not be one of those in flight, other addresses are those of
// weights, planes and placements, and calls are refused.
//
//===----------------------------------------------------------------------===//
#include "VerifyWaits.h"
#include "UniformControl.h"
#include "dialects/Rt/Rt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace k2c {

namespace {

/// The ops of a site.
struct Site {
  rt::CollectiveOp facts;
  rt::CollectiveStartOp start;
  rt::CollectiveWaitOp wait;
};

class Waits {
public:
  Waits(ModuleOp module, StringRef who) : module(module), who(who) {}

  LogicalResult verify();

private:
  LogicalResult collect();
  template <class Op> LogicalResult take(Op op, Op Site::*place);
  LogicalResult verifyPair(Site &site);
  LogicalResult verifyBeside(Site &site, Operation *op);
  LogicalResult verifyCounted(Operation *op);
  LogicalResult forEach(llvm::function_ref<LogicalResult(Operation *)> visit);
  InFlightDiagnostic refuse(Operation *at) { return at->emitError() << who << ": "; }

  ModuleOp module;
  StringRef who;
  llvm::MapVector<StringRef, Site> sites; ///< by name, in the order of the table
};

/// Ops of functions: most of a program is the code of kernels, in modules.
LogicalResult Waits::forEach(llvm::function_ref<LogicalResult(Operation *)> visit) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function.walk([&](Operation *op) { return WalkResult(visit(op)); }).wasInterrupted())
      return failure();
  return success();
}

template <class Op> LogicalResult Waits::take(Op op, Op Site::*place) {
  Op &known = sites[op.getSite()].*place;
  if (known)
    return refuse(op) << "a second '" << op->getName() << "' is of @" << op.getSite()
                      << "; a site has one start and one wait";
  known = op;
  return success();
}

/// The table, whose entries the program knows by number, and who starts and waits.
LogicalResult Waits::collect() {
  for (auto facts : module.getOps<rt::CollectiveOp>()) {
    const auto number = static_cast<int64_t>(sites.size());
    if (facts.getSite() != number)
      return refuse(facts) << "site " << facts.getSite() << " is entry " << number
                           << " of the table; list sites by number from 0 without gaps";
    sites[facts.getSymName()].facts = facts;
  }
  return forEach([&](Operation *op) -> LogicalResult {
    if (auto start = dyn_cast<rt::CollectiveStartOp>(op))
      return take(start, &Site::start);
    if (auto wait = dyn_cast<rt::CollectiveWaitOp>(op))
      return take(wait, &Site::wait);
    return success();
  });
}

/// `op` runs behind `wait`, in each turn of a loop behind that of the turn.
bool isBehind(Operation *op, rt::CollectiveWaitOp wait) {
  Operation *beside = wait ? wait->getBlock()->findAncestorOpInBlock(*op) : nullptr;
  return beside && wait->isBeforeInBlock(beside);
}

LogicalResult Waits::verifyPair(Site &site) {
  Operation *only = site.start ? site.start.getOperation() : site.wait.getOperation();
  if (!only)
    return refuse(site.facts) << "nothing starts @" << site.facts.getSymName()
                              << "; sites are those of the program, numbered without gaps";
  if (!site.start || !site.wait)
    return refuse(only) << "@" << site.facts.getSymName() << " has no " << (site.start ? "wait" : "start")
                        << "; a site has one start and one wait";
  if (site.start->getBlock() != site.wait->getBlock() || !site.start->isBeforeInBlock(site.wait))
    return refuse(site.wait) << "the wait for @" << site.facts.getSymName()
                             << " is not behind its start on every path; wait in the block of the start";
  for (Value buffer : site.start->getOperands())
    if (isa<rt::PtrType>(buffer.getType()) && !buffer.getDefiningOp<rt::ArenaOp>())
      return refuse(site.start) << "a buffer of @" << site.facts.getSymName()
                                << " is no address of the arena; exchange what assign-memory has placed";
  for (Operation *op = site.start->getNextNode(); op != site.wait; op = op->getNextNode())
    if (op->walk([&](Operation *inner) { return WalkResult(verifyBeside(site, inner)); }).wasInterrupted())
      return failure();
  return success();
}

/// `op` runs between the start and the wait of `site`.
LogicalResult Waits::verifyBeside(Site &site, Operation *op) {
  auto touches = [&](const Twine &what) {
    return refuse(op) << "'" << op->getName() << "' " << what.str() << " while @" << site.facts.getSymName()
                      << " is in flight; wait for it first";
  };
  if (isa<func::CallOp>(op))
    return touches("may touch any buffer");
  if (isMemoryEffectFree(op))
    return success(); // an address is no access
  for (Value value : op->getOperands()) {
    if (!isa<rt::PtrType>(value.getType()))
      continue;
    auto arena = value.getDefiningOp<rt::ArenaOp>();
    if (!arena && (!value.getDefiningOp() || !isa<rt::RtDialect>(value.getDefiningOp()->getDialect())))
      return touches("takes an address that may be one of the arena");
    for (Value buffer : site.start->getOperands())
      if (auto held = buffer.getDefiningOp<rt::ArenaOp>(); arena && held && arena.getOffset() == held.getOffset())
        return touches("takes address " + Twine(arena.getOffset()) + " of the arena");
  }
  return success();
}

/// Rows that came to a site are known when it was waited for.
LogicalResult Waits::verifyCounted(Operation *op) {
  FlatSymbolRefAttr name;
  if (auto arrived = dyn_cast<rt::ArrivedOp>(op))
    name = arrived.getSiteAttr();
  else if (auto launch = dyn_cast<rt::LaunchOp>(op))
    name = launch.getArrivedAttr();
  if (!name || isBehind(op, sites[name.getValue()].wait))
    return success();
  return refuse(op) << "'" << op->getName() << "' counts rows of " << name
                    << " where nothing has waited for them; count behind the wait, in its block";
}

LogicalResult Waits::verify() {
  auto isCollective = [](Operation *op) { return isa<rt::CollectiveStartOp, rt::CollectiveWaitOp>(op); };
  if (failed(collect()) || failed(verifyUniformControl(module, isCollective, who)))
    return failure();
  for (auto &entry : sites)
    if (failed(verifyPair(entry.second)))
      return failure();
  return forEach([&](Operation *op) { return verifyCounted(op); });
}

} // namespace

LogicalResult verifyWaits(ModuleOp module, StringRef who) { return Waits(module, who).verify(); }

} // namespace k2c
