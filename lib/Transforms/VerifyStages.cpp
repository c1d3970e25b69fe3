//===- VerifyStages.cpp - Stages forward rows in one order ----------------===//
//
// A rank receives from the stage before and sends to the next one, so no ring of ranks can wait for one another if each
// receives before it sends. What decides that it comes to both is equal on all stages: they stand in an entry, outside
// of branches and loops.
//
//   %x = dist.receive %e site 2        R
//   %y = nn.layers %x, %b [..] of_stage
//   dist.send %y site 3 to 2           behind R, of rows that its layers have carried from R: they are as long
//
//===----------------------------------------------------------------------===//
#include "VerifyStages.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Kern/Kern.h"
#include "k2c/Transforms/PlanAttr.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace k2c {

namespace {

/// `op` runs once in each step of each rank.
LogicalResult verifyOnce(Operation *op, StringRef who) {
  if (nn::isEntry(op->getParentOp()))
    return success();
  return op->emitError() << who << ": '" << op->getName() << "' is in '" << op->getParentOp()->getName()
                         << "', and stages forward rows in an entry, once a step; take it out";
}

} // namespace

LogicalResult verifyStages(ModuleOp module, StringRef who) {
  SmallVector<dist::SendOp> sends;
  llvm::DenseMap<int64_t, dist::ReceiveOp> receives;
  SmallVector<nn::LayersOp> lists;
  for (FunctionOpInterface function : kern::stepFunctions(module))
    function->walk([&](Operation *op) {
      if (auto send = dyn_cast<dist::SendOp>(op))
        sends.push_back(send);
      else if (auto receive = dyn_cast<dist::ReceiveOp>(op))
        receives[receive.getSite()] = receive;
      else if (auto layers = dyn_cast<nn::LayersOp>(op))
        lists.push_back(layers);
    });
  const bool areStages = !stagesOf(module).empty();
  for (nn::LayersOp layers : lists)
    if (layers.getOfStage() != areStages)
      return layers.emitError() << who << ": the list is " << (areStages ? "of all layers" : "of a stage")
                                << ", and the plan has " << (areStages ? "stages" : "none")
                                << "; run partition-stages on a plan of both";
  for (dist::SendOp send : sends) {
    dist::ReceiveOp receive = receives.lookup(send.getTo());
    if (!receive)
      return send.emitError() << who << ": rows go to site " << send.getTo()
                              << ", where nothing receives them; name a dist.receive, one for each dist.send";
    receives.erase(send.getTo());
    if (failed(verifyOnce(send, who)) || failed(verifyOnce(receive, who)))
      return failure();
    auto layers = send.getInput().getDefiningOp<nn::LayersOp>();
    if (!layers || !layers.getOfStage() || layers.getCarried().front() != receive.getResult())
      return send.emitError() << who << ": what is sent to site " << send.getTo()
                              << " is not what the stage's layers make of what came there; send the result of the list "
                                 "that takes it";
  }
  for (auto [site, receive] : receives)
    return receive.emitError() << who << ": nothing sends to site " << site
                               << "; name it in a dist.send, one for each dist.receive";
  for (nn::LayersOp layers : lists)
    if (layers.getOfStage() && !layers.getCarried().front().getDefiningOp<dist::ReceiveOp>())
      return layers.emitError() << who << ": a stage's layers take rows that no dist.receive has brought; run "
                                << "partition-stages";
  return success();
}

} // namespace k2c
