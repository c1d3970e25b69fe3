//===- VerifySlices.cpp - Ranks of a group agree on slices of a step ------===//
//
// Ranks of a tensor-parallel group have one step, so that each knows which rows the others carry, and nobody counts.
// What is left to hold is that all of it has room, that the plan has such groups, that attention, which caches what it
// sees, is of the rows of all, and that what ranks have of a sum is added up in their order:
//
//   %p = nn.linear %o, @o[%l]                        @o has parts along the contraction; nothing else reads %p
//   %0, %1 = dist.scatter_slices %p                  as many results as a group has ranks
//   %y = nn.add_partials %0, %1                      these, all, in this order; nothing else reads them
//
// Other parts are rows of heads or columns, which ops read that compute each by itself. Parts of embedding and head are
// for rows that are shared with all ranks of a stage, and make columns that go back. Who reads what is looked at
// before kernels are formed, which changes none of it.
//
//===----------------------------------------------------------------------===//
#include "VerifySlices.h"
#include "Origins.h"
#include "VerifyParts.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Mla/Mla.h"
#include "dialects/Nn/NnVerify.h"
#include "k2c/Transforms/PlanAttr.h"

using namespace mlir;

namespace k2c {

/// Partials are those of one site.
static LogicalResult verifySum(nn::AddPartialsOp sum, kern::CallOp call, Origins &origins, StringRef who) {
  Operation *place = call ? call.getOperation() : sum.getOperation();
  const Made first = origins.of(sum.getPartials().front(), call);
  auto site = dyn_cast_or_null<dist::ScatterSlicesOp>(first.op());
  bool areAll = site && site.getParts().size() == sum.getPartials().size();
  for (auto [number, partial] : llvm::enumerate(sum.getPartials()))
    areAll = areAll && origins.of(partial, call).value == site.getParts()[number];
  if (areAll)
    return success();
  return place->emitError() << who << ": adds partial sums of which the first is " << first.name()
                            << ", expected all results of one 'dist.scatter_slices' in their order; add what ranks "
                               "have of one sum";
}

/// `op` puts rows into the cache that one rank carries.
static bool cachesSlice(Operation *op) {
  return isa<nn::StateOp>(op) && llvm::any_of(op->getOperandTypes(), [](Type type) {
           nn::RowsAttr rows = nn::rowsOf(type);
           return rows && rows.getKind() == nn::RowKind::Token;
         });
}

namespace {

/// What is done with parts, in the distributed form.
class Parts {
public:
  Parts(ModuleOp module, StringRef who) : module(module), symbols(module), who(who), stage(stageRanksOf(module)) {}

  LogicalResult verify() {
    WalkResult result = module.walk([&](Operation *op) -> WalkResult {
      auto scatter = dyn_cast<dist::ScatterSlicesOp>(op);
      auto user = dyn_cast<nn::WeightUser>(op);
      return failure((scatter && failed(verifyScatter(scatter))) || (user && failed(verifyUser(user))));
    });
    return failure(result.wasInterrupted());
  }

private:
  InFlightDiagnostic refuse(Operation *at) { return at->emitError() << who << ": "; }
  nn::WeightsOp dividedOf(const nn::WeightRef &ref) {
    auto family = ref.family ? symbols.lookup<nn::WeightsOp>(ref.family.getValue()) : nn::WeightsOp();
    return family && family.getParts() ? family : nn::WeightsOp();
  }
  /// `op` contracts over a part.
  bool isPartial(Operation *op) {
    auto linear = dyn_cast_or_null<nn::LinearOp>(op);
    nn::WeightsOp family = linear ? dividedOf(linear.getWeightRefs()[0]) : nn::WeightsOp();
    return family && int64_t(*family.getAlong()) + 1 == family.getTensorType().getRank();
  }
  LogicalResult verifyScatter(dist::ScatterSlicesOp op);
  LogicalResult verifyRows(Operation *op, nn::WeightsOp family);
  LogicalResult verifyUser(nn::WeightUser user);

  ModuleOp module;
  SymbolTable symbols;
  StringRef who;
  const StageRanks stage;
};

LogicalResult Parts::verifyScatter(dist::ScatterSlicesOp op) {
  Operation *maker = op.getInput().getDefiningOp();
  if (!isPartial(maker) || cast<nn::LinearOp>(maker).getBias() || cast<nn::LinearOp>(maker).getBiasOperand())
    return refuse(op)
           << "scatters what is no part of a sum; scatter what a linear makes that has no bias, and of whose "
              "weight each rank has a part along the contraction";
  for (Value part : op.getParts())
    for (Operation *reader : part.getUsers())
      if (!isa<nn::AddPartialsOp>(reader))
        return refuse(reader) << "'" << reader->getName()
                              << "' reads a part of a sum; let nn.add_partials add all parts";
  return success();
}

/// A part of heads or of an MLP is for the rows of a group's step, one of embedding or head for what ranks share; those
/// have the columns of their part.
LogicalResult Parts::verifyRows(Operation *op, nn::WeightsOp family) {
  if (auto grouped = dyn_cast<moe::GroupedLinearOp>(op))
    return verifyGrouped(grouped, family, stage.ofExpert, who);
  const nn::RowsAttr rows = op->getNumResults() > 0 ? nn::rowsOf(op->getResult(0).getType()) : nn::RowsAttr();
  const bool isShared = isa<nn::LinearOp, nn::LookupOp>(op) && op->getOperand(0).getDefiningOp<dist::CloseGapsOp>();
  const bool isOfGroup = rows && rows.getKind() == nn::RowKind::Gathered;
  const int64_t parts = family.getParts().value_or(1), last = family.getTensorType().getRank() - 1;
  const int64_t columns = isa<nn::LookupOp>(op) ? last : 0;
  if (isShared ? parts == stage.ofVocabulary && parts > 1 && int64_t(*family.getAlong()) == columns
               : parts == 1 || (isOfGroup && parts == stage.ofGroup))
    return success();
  return refuse(op) << "'" << op->getName() << "' of rows " << rows << " reads @" << family.getSymName()
                    << ", of which there are " << parts << " parts; with tp=" << stage.ofGroup
                    << " these are for rows that are gathered, with vocab=" << stage.ofVocabulary
                    << " for rows that are shared, which need the part of their columns";
}

LogicalResult Parts::verifyUser(nn::WeightUser user) {
  Operation *op = user.getOperation();
  for (const nn::WeightRef &ref : user.getWeightRefs())
    if (nn::WeightsOp family = dividedOf(ref);
        family && !isa<nn::LinearOp, nn::LookupOp, moe::GroupedLinearOp, mla::AbsorbQueryOp, mla::ExpandOutputOp,
                       mla::AttentionExpandedOp>(op))
      return refuse(op) << "'" << op->getName() << "' reads a part of @" << family.getSymName()
                        << ", and computes with all of it; parts are of linears and of heads";
  for (const nn::WeightRef &ref : user.getWeightRefs())
    if (auto family = ref.family ? symbols.lookup<nn::WeightsOp>(ref.family.getValue()) : nn::WeightsOp();
        family && failed(verifyRows(op, family)))
      return failure();
  const bool makesColumns = isa<nn::LinearOp, nn::LookupOp>(op) && nn::rowsOf(op->getResult(0).getType()) &&
                            nn::rowsOf(op->getResult(0).getType()).getKind() == nn::RowKind::Recv;
  for (Operation *reader : op->getUsers())
    if (makesColumns && !isa<dist::AllToAllOp, dist::ShareReturnOp>(reader))
      return refuse(reader) << "'" << reader->getName()
                            << "' reads what a rank has of the columns; return it to who puts them together";
  for (Operation *reader : op->getUsers())
    if (isPartial(op) && !isa<dist::ScatterSlicesOp>(reader))
      return refuse(reader) << "'" << reader->getName()
                            << "' reads what a rank has of a sum; scatter it to who adds up";
  return success();
}

} // namespace

LogicalResult verifySlices(ModuleOp module, StringRef who, bool hasKernels) {
  Origins origins(module);
  const int64_t ranks = stageRanksOf(module).ofGroup;
  nn::LimitsAttr limits = nn::limitsOf(module);
  auto check = [&](Operation *op, kern::CallOp call) -> LogicalResult {
    if (ranks > 1 && cachesSlice(op))
      return (call ? call.getOperation() : op)->emitError()
             << who << ": caches rows of a slice, and the plan's layout has tp=" << ranks
             << ", where each rank caches those of the step; gather them, as shard-attention does";
    if (auto sum = dyn_cast<nn::AddPartialsOp>(op))
      return verifySum(sum, call, origins, who);
    auto scatter = dyn_cast<dist::ScatterSlicesOp>(op);
    if (!scatter && !isa<dist::GatherSlicesOp>(op))
      return success();
    if (const auto parts = scatter ? static_cast<int64_t>(scatter.getParts().size()) : ranks;
        ranks == 1 || parts != ranks)
      return op->emitError() << who << ": slices of a step travel among "
                             << (scatter ? std::to_string(scatter.getParts().size()) + " ranks" : "ranks")
                             << ", and the plan's layout has tp=" << ranks << "; plan and program have to agree";
    if (const int64_t room = limits.getToken() * ranks; room < limits.getStepRows())
      return op->emitError() << who << ": slices of " << ranks << " ranks have a capacity of " << room
                             << " rows, and a step may bring " << limits.getStepRows()
                             << "; bound them by nn.limits, as shard-attention does";
    return success();
  };
  if (failed(origins.forEach(check)))
    return failure();
  const StageRanks stage = stageRanksOf(module);
  for (auto family : module.getOps<nn::WeightsOp>())
    if (const int64_t parts = family.getParts().value_or(ranks);
        parts != ranks && parts != stage.ofVocabulary && parts != stage.ofExpert)
      return family.emitError() << who << ": @" << family.getSymName() << " has " << parts
                                << " parts, and the plan's layout has tp=" << ranks
                                << (stage.ofVocabulary > 1 ? ", vocab=" + std::to_string(stage.ofVocabulary) : "")
                                << (stage.ofExpert > 1 ? ", etp=" + std::to_string(stage.ofExpert) : "")
                                << "; have one for each rank";
  return hasKernels ? success() : Parts(module, who).verify();
}

} // namespace k2c
