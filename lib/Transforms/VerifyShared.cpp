//===- VerifyShared.cpp - Rows that all ranks of a stage work on ----------===//
//
// A rank shares as many rows as it has, and gets as many back from each member, so that both sides agree if what is
// counted is what goes:
//
//   %sent, %returned = dist.share_plan %x                        P: of the rows that go
//   %in, %came = dist.all_to_all %x to %sent                     D: by quota
//   %all = dist.close_gaps %in, %came                            what came to D
//   %part = nn.linear %all, @head                                columns of a weight of which each member has a part
//   %back = dist.share_return %all, %came                        of the rows of D
//   %parts = dist.all_to_all %part to %back from %returned       as many as came, and those of P
//   %y = dist.join_columns %parts, %returned                     rows of P
//
//===----------------------------------------------------------------------===//
#include "VerifyShared.h"
#include "dialects/Nn/NnVerify.h"
#include "k2c/Transforms/PlanAttr.h"

using namespace mlir;

namespace k2c {

bool sharesRows(dist::AllToAllOp op, Origins &origins) {
  return isa_and_nonnull<dist::SharePlanOp, dist::ShareReturnOp>(origins.of(op.getTo(), {}).op());
}

namespace {

/// One site, and what it takes its rows and counts from.
class SharedSite {
public:
  SharedSite(ModuleOp module, Origins &origins, StringRef who)
      : stage(stageRanksOf(module)), origins(origins), who(who) {}

  LogicalResult verifySent(dist::AllToAllOp op);
  LogicalResult verifyReturned(dist::AllToAllOp op);
  /// The site at which `value`, its rows or counts of what came, arrived.
  FailureOr<dist::AllToAllOp> siteOf(Operation *at, Value value, kern::CallOp call);
  /// The plan by which `op` counts what it sends, or what comes back.
  FailureOr<Run<dist::SharePlanOp>> planOf(dist::AllToAllOp op);
  InFlightDiagnostic refuse(Operation *at) { return at->emitError() << who << ": "; }

private:
  LogicalResult verifyPart(dist::AllToAllOp op, const Made &rows);

  const StageRanks stage;
  Origins &origins;
  StringRef who;
};

FailureOr<dist::AllToAllOp> SharedSite::siteOf(Operation *at, Value value, kern::CallOp call) {
  const Made made = origins.of(value, call);
  if (auto site = dyn_cast_or_null<dist::AllToAllOp>(made.op()))
    return site;
  return refuse(at) << "takes " << made.name() << " for rows that are shared, expected those of 'dist.all_to_all'; "
                    << "share rows as shard-vocabulary does";
}

FailureOr<Run<dist::SharePlanOp>> SharedSite::planOf(dist::AllToAllOp op) {
  const Made counts = origins.of(op.getFrom() ? op.getFrom() : op.getTo(), {});
  auto plan = dyn_cast_or_null<dist::SharePlanOp>(counts.op());
  if (plan && counts.value == (op.getFrom() ? plan.getReturned() : plan.getSent()))
    return Run<dist::SharePlanOp>{plan, counts.call};
  return refuse(op) << "shared rows are counted by " << counts.name() << ", expected '"
                    << (op.getFrom() ? "returned" : "sent")
                    << "' of 'dist.share_plan'; share rows as shard-vocabulary does";
}

/// What goes to all that have parts is what was counted.
LogicalResult SharedSite::verifySent(dist::AllToAllOp op) {
  if (const int64_t members = op.getTo().getType().getMembers();
      op.getAxis() != dist::Axis::Stage || members != stage.ofVocabulary)
    return refuse(op) << "shares rows with " << members << " members of group " << stringifyAxis(op.getAxis())
                      << ", and the plan's layout has vocab=" << stage.ofVocabulary
                      << "; share them with all ranks of the stage";
  FailureOr<Run<dist::SharePlanOp>> plan = planOf(op);
  if (failed(plan))
    return failure();
  const Made rows = origins.of(op.getInput(), {}), counted = origins.of(plan->op.getInput(), plan->call);
  if (!(rows == counted))
    return refuse(op) << "shares " << rows.name() << ", and its counts are of " << counted.name()
                      << "; count what is shared";
  const nn::RowsAttr result = nn::rowsOf(op.getResult().getType());
  if (result.getKind() != nn::RowKind::Message || result.getSite() != int64_t(op.getSite()))
    return refuse(op) << "site " << op.getSite() << " makes " << result << ", expected messages of its number";
  return success();
}

/// The rows are columns of a weight, of all that was shared. Which part of it they are VerifySlices.cpp holds.
LogicalResult SharedSite::verifyPart(dist::AllToAllOp op, const Made &rows) {
  if (isa_and_nonnull<nn::LinearOp, nn::LookupOp>(rows.op()))
    return success();
  return refuse(op) << "returns " << rows.name()
                    << ", expected a part of the embedding or of the logits; return what ranks have parts of";
}

/// As many rows go back to each member as it has sent, and as many come back as this rank has.
LogicalResult SharedSite::verifyReturned(dist::AllToAllOp op) {
  Made counts = origins.of(op.getTo(), {});
  auto back = dyn_cast<dist::ShareReturnOp>(counts.op());
  if (!back)
    return refuse(op) << "shared rows go back by " << counts.name()
                      << ", expected the counts of 'dist.share_return'; let them go back as they came";
  Operation *place = counts.call ? counts.call.getOperation() : back.getOperation();
  FailureOr<Run<dist::SharePlanOp>> plan = planOf(op);
  FailureOr<dist::AllToAllOp> sent = siteOf(place, back.getCame(), counts.call);
  if (failed(plan) || failed(sent))
    return failure();
  FailureOr<Run<dist::SharePlanOp>> before = planOf(*sent);
  if (failed(before))
    return failure();
  if (before->op != plan->op || before->call != plan->call || sent->getAxis() != op.getAxis())
    return refuse(op) << "shared rows come back by another plan, or over another group, than they went at site "
                      << sent->getSite() << "; let them go back as they came";
  const nn::RowsAttr in = nn::rowsOf(op.getInput().getType()), out = nn::rowsOf(op.getResult().getType());
  if (in.getKind() != nn::RowKind::Recv || in.getSite() != int64_t(sent->getSite()) ||
      out.getKind() != nn::RowKind::Subtree || out.getSite() != int64_t(op.getSite()))
    return refuse(op) << "site " << op.getSite() << " is given " << in << " and makes " << out
                      << ", expected what arrived at site " << sent->getSite() << ", and rows of its own number";
  return verifyPart(op, origins.of(op.getInput(), {}));
}

} // namespace

LogicalResult verifyShared(dist::AllToAllOp op, Origins &origins, StringRef who) {
  SharedSite site(op->getParentOfType<ModuleOp>(), origins, who);
  return op.getFrom() ? site.verifyReturned(op) : site.verifySent(op);
}

LogicalResult verifyGaps(Run<dist::CloseGapsOp> gaps, Origins &origins, StringRef who) {
  SharedSite site(gaps.place()->getParentOfType<ModuleOp>(), origins, who);
  FailureOr<dist::AllToAllOp> rows = site.siteOf(gaps.place(), gaps.op.getInput(), gaps.call);
  FailureOr<dist::AllToAllOp> came = site.siteOf(gaps.place(), gaps.op.getCame(), gaps.call);
  if (failed(rows) || failed(came))
    return failure();
  if (*rows != *came || rows->getFrom())
    return site.refuse(gaps.place()) << "rows of site " << rows->getSite() << " are read by counts of site "
                                     << came->getSite() << "; read them by how many came";
  const int64_t room = nn::rowsOf(gaps.op.getResult().getType()).getMax();
  if (const int64_t most = nn::rowsOf(rows->getResult().getType()).getMax(); room < most)
    return site.refuse(gaps.place()) << "what arrived has a capacity of " << room << " rows, and a step may bring "
                                     << most << "; bound it by nn.limits, as shard-vocabulary does";
  return success();
}

LogicalResult verifyJoined(Run<dist::JoinColumnsOp> joined, Origins &origins, StringRef who) {
  SharedSite site(joined.place()->getParentOfType<ModuleOp>(), origins, who);
  FailureOr<dist::AllToAllOp> parts = site.siteOf(joined.place(), joined.op.getInput(), joined.call);
  if (failed(parts))
    return failure();
  if (!parts->getFrom() || !sharesRows(*parts, origins))
    return site.refuse(joined.place()) << "puts together what arrived at site " << parts->getSite()
                                       << ", where nothing comes back that was shared; share it first";
  FailureOr<Run<dist::SharePlanOp>> plan = site.planOf(*parts);
  if (failed(plan))
    return failure();
  const Made returned = origins.of(joined.op.getReturned(), joined.call);
  const nn::RowsAttr rows = nn::rowsOf(joined.op.getResult().getType());
  if (!(returned == Made{plan->op.getReturned(), plan->call}) || rows != nn::rowsOf(plan->op.getInput().getType()))
    return site.refuse(joined.place()) << "makes " << rows << " by " << returned.name() << " of what was shared as "
                                       << nn::rowsOf(plan->op.getInput().getType())
                                       << "; put it together by the plan of its site";
  return success();
}

} // namespace k2c
