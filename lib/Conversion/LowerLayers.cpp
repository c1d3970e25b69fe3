//===- LowerLayers.cpp - Lists of layers, and what ranks exchange ---------===//
//
// A run of layers is a loop over whole turns of its functions with the rest of the last turn behind it. Where ranks are
// stages it is a loop over the layers of the run that the rank's stage has, which may begin and end within a turn.
//
//   nn.layers %x, %b [@a[0 to 1], (@b, @c)[1 to 6]]     call @a(0); scf.for 1 to 5 step 2 { @b, @c }; call @b(5)
//   the same, of_stage                                  %f, %e = rt.stage_layers 1 to 6;  scf.for %f to %e { .. }
//
// An exchange is a start and its wait. Outside of layers it stands in a function of its own, since entries that do a
// step by halves come to it twice, and a site has one start and one wait.
//
//===----------------------------------------------------------------------===//
#include "LowerFunction.h"
#include "dialects/Mem/Mem.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace k2c {

/// Calls a function of its own, which has the only start and wait of a site, whoever calls it; builds in it.
static OpBuilder inOwnFunction(OpBuilder &b, Location loc, const Twine &name) {
  auto function = func::FuncOp::create(loc, name.str(), b.getFunctionType({}, {}));
  function.setPrivate();
  Operation *caller = b.getInsertionBlock()->getParentOp();
  while (!isa<func::FuncOp>(caller))
    caller = caller->getParentOp();
  OpBuilder(caller).insert(function);
  OpBuilder body = OpBuilder::atBlockEnd(function.addEntryBlock());
  body.setInsertionPoint(func::ReturnOp::create(body, loc));
  func::CallOp::create(b, loc, function);
  return body;
}

/// Counts of what came are the last result; where the program knows them, an operand.
void FunctionLowering::lowerCollective(OpBuilder &around, dist::AllToAllOp op) {
  Location loc = op.getLoc();
  OpBuilder b = layer ? around : inOwnFunction(around, loc, "exchange" + Twine(op.getSite()));
  auto site = FlatSymbolRefAttr::get(b.getContext(), siteName(op.getSite()));
  Value source = bufferAddress(b, op.getInput(), 0), to = bufferAddress(b, op.getTo(), 0);
  Value result = bufferAddress(b, op.getResult(), 0);
  Value from = bufferAddress(b, op.getFrom() ? op.getFrom() : op.getCame(), 0);
  rt::CollectiveStartOp::create(b, loc, site, layer, source, to, result, from, /*rows=*/Value(),
                                /*slices=*/ValueRange());
  rt::CollectiveWaitOp::create(b, loc, site, layer);
}

/// The step counts: rows of all slices, or what all have of this rank's.
void FunctionLowering::lowerSlices(OpBuilder &b, Operation *op) {
  auto site = FlatSymbolRefAttr::get(b.getContext(), siteName(*dist::siteOf(op)));
  Value source = bufferAddress(b, op->getOperand(0), 0);
  SmallVector<Value> slices =
      llvm::map_to_vector(op->getResults(), [&](Value result) { return bufferAddress(b, result, 0); });
  rt::CollectiveStartOp::create(b, op->getLoc(), site, layer, source, /*to=*/Value(), /*result=*/Value(),
                                /*from=*/Value(), /*rows=*/Value(), slices);
  rt::CollectiveWaitOp::create(b, op->getLoc(), site, layer);
}

/// Rows of the step, to the next stage or from the one before.
void FunctionLowering::lowerStage(OpBuilder &b, StringRef name, int64_t number, Value rows) {
  Location loc = rows.getLoc();
  OpBuilder body = inOwnFunction(b, loc, name + Twine(number));
  auto site = FlatSymbolRefAttr::get(b.getContext(), siteName(number));
  Value at = bufferAddress(body, rows, 0);
  rt::CollectiveStartOp::create(body, loc, site, /*layer=*/Value(), /*source=*/Value(), /*to=*/Value(),
                                /*result=*/Value(), /*from=*/Value(), at, /*slices=*/ValueRange());
  rt::CollectiveWaitOp::create(body, loc, site, /*layer=*/Value());
}

/// Calls the run's functions for all whole turns in a loop, then for what is left of the last one. Layers are called in
/// ascending order.
static void lowerRun(OpBuilder &b, Location loc, nn::LayerRunAttr run) {
  auto number = [&](OpBuilder &at, int64_t value) {
    return arith::ConstantIndexOp::create(at, loc, value).getResult();
  };
  auto call = [&](OpBuilder &at, size_t turn, Value index) {
    func::CallOp::create(at, loc, run.getCallees()[turn], TypeRange(), ValueRange(index));
  };
  auto period = static_cast<int64_t>(run.getCallees().size());
  int64_t looped = run.getTo() - run.getFrom() > 1 ? (run.getTo() - run.getFrom()) / period * period : 0;
  if (looped) {
    Value step = number(b, period), from = number(b, run.getFrom()), to = number(b, run.getFrom() + looped);
    scf::ForOp::create(b, loc, from, to, step, ValueRange(), [&](OpBuilder &body, Location, Value index, ValueRange) {
      call(body, 0, index);
      for (int64_t turn = 1; turn < period; ++turn)
        call(body, turn, arith::AddIOp::create(body, loc, index, number(body, turn)));
      scf::YieldOp::create(body, loc);
    });
  }
  for (int64_t layer = run.getFrom() + looped; layer < run.getTo(); ++layer)
    call(b, (layer - run.getFrom()) % period, number(b, layer));
}

/// Calls those layers of the run that are of the stage. A stage may begin and end within a turn.
static void lowerStageRun(OpBuilder &b, Location loc, nn::LayerRunAttr run) {
  auto layers = rt::StageLayersOp::create(b, loc, b.getIndexType(), b.getIndexType(), run.getFrom(), run.getTo());
  Value step = arith::ConstantIndexOp::create(b, loc, 1);
  auto loop = scf::ForOp::create(b, loc, layers.getFrom(), layers.getEnd(), step);
  OpBuilder body = OpBuilder::atBlockBegin(loop.getBody());
  Value layer = loop.getInductionVar();
  ArrayRef<FlatSymbolRefAttr> callees = run.getCallees();
  auto number = [&](int64_t value) { return arith::ConstantIndexOp::create(body, loc, value).getResult(); };
  if (callees.size() == 1) {
    func::CallOp::create(body, loc, callees.front(), TypeRange(), ValueRange(layer));
    return;
  }
  Value turn = arith::RemSIOp::create(body, loc, arith::SubIOp::create(body, loc, layer, number(run.getFrom())),
                                      number(static_cast<int64_t>(callees.size())));
  for (auto [index, callee] : llvm::enumerate(callees)) {
    Value isTurn = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::eq, turn, number(int64_t(index)));
    auto branch = scf::IfOp::create(body, loc, isTurn, /*withElseRegion=*/false);
    OpBuilder inner(branch.getThenRegion().front().getTerminator());
    func::CallOp::create(inner, loc, callee, TypeRange(), ValueRange(layer));
  }
}

void FunctionLowering::lowerLayers(OpBuilder &b, nn::LayersOp op) {
  for (nn::LayerRunAttr run : op.getRuns().getAsRange<nn::LayerRunAttr>())
    op.getOfStage() ? lowerStageRun(b, op.getLoc(), run) : lowerRun(b, op.getLoc(), run);
}

} // namespace k2c
