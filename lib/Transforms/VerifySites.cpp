//===- VerifySites.cpp - The sites of a program in the runtime form -------===//
//
// What does not depend on the path that a program takes: each site is one start and one wait, its group is one of the
// plan, and a stage receives and sends once a step, outside of the layers, of which it has other ones than the next.
//
//===----------------------------------------------------------------------===//
#include "VerifySites.h"
#include "k2c/Transforms/PlanAttr.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace k2c {

llvm::DenseSet<StringRef> entriesOf(ModuleOp module) {
  llvm::DenseSet<StringRef> entries;
  for (auto program : module.getOps<rt::ProgramOp>())
    for (NamedAttribute entry : program.getEntries())
      entries.insert(cast<FlatSymbolRefAttr>(entry.getValue()).getValue());
  return entries;
}

template <class Op> static LogicalResult take(Op op, Op &known, StringRef who) {
  if (known)
    return op->emitError() << who << ": a second '" << op->getName() << "' is of @" << op.getSite()
                           << "; a site has one start and one wait";
  known = op;
  return success();
}

/// Entries of the table, which the program knows by number, and who starts and waits. Only ops of functions: most of a
/// program is the code of kernels, in modules.
FailureOr<SiteTable> collectSites(ModuleOp module, StringRef who) {
  SiteTable sites;
  for (auto facts : module.getOps<rt::CollectiveOp>()) {
    const auto number = static_cast<int64_t>(sites.size());
    if (facts.getSite() != number)
      return facts.emitError() << who << ": site " << facts.getSite() << " is entry " << number
                               << " of the table; list sites by number from 0 without gaps";
    sites[facts.getSymName()].facts = facts;
  }
  auto visit = [&](Operation *op) -> WalkResult {
    if (auto start = dyn_cast<rt::CollectiveStartOp>(op))
      return take(start, sites[start.getSite()].start, who);
    if (auto wait = dyn_cast<rt::CollectiveWaitOp>(op))
      return take(wait, sites[wait.getSite()].wait, who);
    return success();
  };
  for (auto function : module.getOps<func::FuncOp>())
    if (function.walk(visit).wasInterrupted())
      return failure();
  return sites;
}

namespace {

class Sites {
public:
  Sites(ModuleOp module, SiteTable &sites, StringRef who)
      : module(module), sites(sites), who(who), entries(entriesOf(module)) {
    for (auto function : module.getOps<func::FuncOp>())
      function.walk([&](func::CallOp call) { calls.push_back(call); });
  }

  LogicalResult verifySite(Site &site);

private:
  LogicalResult verifyGroup(rt::CollectiveOp facts);
  bool isInEntry(Operation *op);
  LogicalResult verifyStages(Site &site);
  LogicalResult verifyPair(rt::CollectiveOp facts);
  InFlightDiagnostic refuse(Operation *at) { return at->emitError() << who << ": "; }

  ModuleOp module;
  SiteTable &sites;
  StringRef who;
  llvm::DenseSet<StringRef> entries;
  SmallVector<func::CallOp> calls;
};

LogicalResult Sites::verifySite(Site &site) {
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
  return site.facts.getAxis() == rt::Axis::Pp ? verifyStages(site) : verifyGroup(site.facts);
}

/// A group has as many members as the plan, on its topology, has of what it joins.
LogicalResult Sites::verifyGroup(rt::CollectiveOp facts) {
  if (!module->hasAttr(dist::DistDialect::topologyAttrName))
    return success();
  const StageRanks stage = stageRanksOf(module);
  const int64_t wanted =
      facts.getAxis() == rt::Axis::Tp ? stage.ofGroup : stage.membersOf(static_cast<dist::Axis>(facts.getAxis()));
  if (facts.getMembers() == wanted)
    return success();
  return refuse(facts) << "@" << facts.getSymName() << " has " << facts.getMembers() << " members, and group "
                       << stringifyAxis(facts.getAxis()) << " of the plan " << wanted << "; have all of the group";
}

/// In an entry of the program, or in what it does for the second half.
bool Sites::isInEntry(Operation *op) {
  Operation *around = op->getParentOp();
  if (isa<rt::SecondHalfOp>(around))
    around = around->getParentOp();
  auto function = dyn_cast<func::FuncOp>(around);
  return function && entries.contains(function.getName());
}

/// Stages have other layers, but come to the same sites of stages: entries call those outside of loops over layers.
LogicalResult Sites::verifyStages(Site &site) {
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
LogicalResult Sites::verifyPair(rt::CollectiveOp facts) {
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

} // namespace

LogicalResult verifySites(ModuleOp module, SiteTable &sites, StringRef who) {
  Sites checker(module, sites, who);
  for (auto &entry : sites)
    if (failed(checker.verifySite(entry.second)))
      return failure();
  return success();
}

} // namespace k2c
