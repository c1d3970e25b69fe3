//===- Exchange.cpp - What ranks divide -----------------------------------===//
//
// A placement is that of a layer, and its address is found by the layer's ordinal among those with experts.
//
//===----------------------------------------------------------------------===//
#include "Builder.h"
#include "dialects/Moe/Moe.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace k2c {

namespace {

using Described = FailureOr<DescribedKernel>;

int64_t widthOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape().back(); }

Described describeLocate(DescBuilder b, moe::LocateOp op) {
  LocateDesc desc{static_cast<int64_t>(op.getCount()), widthOf(op.getExperts()), static_cast<int64_t>(op.getSlots()),
                  static_cast<int64_t>(op.getHeld())};
  bool ok = b.addArgument(op.getExperts()) && b.addPlaces(op) && b.addResult(op.getResult());
  return b.finish(ok, desc);
}

Described describeRoutePlan(DescBuilder b, moe::RoutePlanOp op) {
  if (op.getTo() == dist::Holder::Part) {
    bool ok = b.addArgument(op.getChosen()) && b.addResult(op.getRoutes()) && b.addResult(op.getSent()) &&
              b.addResult(op.getReturned());
    return b.finish(ok, PartPlanDesc{widthOf(op.getChosen()), op.getSent().getType().getMembers()});
  }
  RoutePlanDesc desc{static_cast<int64_t>(op.getCount()), widthOf(op.getChosen()), op.getSent().getType().getMembers(),
                     static_cast<int64_t>(op.getHeld())};
  bool ok = b.addArgument(op.getChosen()) && b.addHeld(op, op.getWithin(), op.getTo()) && b.addResult(op.getRoutes()) &&
            b.addResult(op.getSent()) && b.addResult(op.getReturned());
  return b.finish(ok, desc);
}

Described describePack(DescBuilder b, moe::PackOp op) {
  PackDesc desc;
  desc.topK = widthOf(op.getWeights());
  bool ok = b.addRows(op.getInput(), desc.x) && b.addArgument(op.getWeights()) && b.addArgument(op.getRoutes()) &&
            b.addResult(op.getResult());
  return b.finish(ok, desc);
}

Described describeUnpack(DescBuilder b, moe::UnpackOp op) {
  UnpackDesc desc;
  desc.topK = widthOf(op.getSlots());
  desc.members = op.getCame().getType().getMembers();
  bool ok = b.addArgument(op.getInput()) && b.addArgument(op.getCame()) && b.addResult(op.getRows(), desc.y) &&
            b.addResult(op.getSlots()) && b.addResult(op.getWeights());
  return b.finish(ok, desc);
}

Described describeReturnPlan(DescBuilder b, moe::ReturnPlanOp op) {
  ReturnPlanDesc desc{static_cast<int64_t>(op.getCount()), widthOf(op.getChosen()), op.getCame().getType().getMembers(),
                      static_cast<int64_t>(op.getHeld())};
  bool ok = b.addArgument(op.getChosen()) && b.addArgument(op.getCame()) &&
            b.addHeld(op, op.getHolder(), op.getHolder()) && b.addResult(op.getSums()) && b.addResult(op.getBack());
  return b.finish(ok, desc);
}

/// Sums of the subtrees that a holder has whole in `slots` slots, of rows that lie by `places`, a permutation or
/// routes.
template <class Desc, class Op> Described describeSubtrees(DescBuilder b, Op op, Value places, int64_t slots) {
  if (!op.getOrderAttr())
    return op.emitOpError("has no declared order");
  Desc desc;
  desc.experts = op.getCount();
  desc.topK = widthOf(op.getChosen());
  desc.slots = slots;
  desc.leaves = op.getOrderAttr().getLeaves();
  bool ok = b.addRows(op.getInput(), desc.x) && b.addArgument(places) && b.addArgument(op.getChosen()) &&
            b.addArgument(op.getSums()) && b.addHeld(op, op.getHolder(), op.getHolder()) &&
            b.addResult(op.getResult(), desc.y);
  return b.finish(ok, desc);
}

Described describeAddParts(DescBuilder b, moe::AddPartsOp op) {
  AddPartsDesc desc;
  desc.topK = widthOf(op.getWeights());
  desc.members = op.getReturned().getType().getMembers();
  bool ok = b.addRows(op.getInput(), desc.x) && b.addArgument(op.getReturned()) && b.addArgument(op.getRoutes()) &&
            b.addArgument(op.getWeights()) && b.addResult(op.getResult(), desc.y);
  return b.finish(ok, desc);
}

Described describeCombine(DescBuilder b, moe::CombineOp op) {
  if (!op.getOrderAttr())
    return op.emitOpError("has no declared order");
  CombineDesc desc;
  desc.experts = op.getCount();
  desc.topK = widthOf(op.getExperts());
  desc.leaves = op.getOrderAttr().getLeaves();
  bool ok = b.addRows(op.getInput(), desc.x) && b.addArgument(op.getRoutes()) && b.addArgument(op.getExperts()) &&
            b.addResult(op.getResult(), desc.y);
  return b.finish(ok, desc);
}

Described describeSharePlan(DescBuilder b, dist::SharePlanOp op) {
  const nn::RowKind kind = nn::rowsOf(op.getInput().getType()).getKind();
  SharePlanDesc desc{kind == nn::RowKind::Output     ? RowSpace::Output
                     : kind == nn::RowKind::Entering ? RowSpace::Entering
                                                     : RowSpace::Token,
                     op.getSent().getType().getMembers()};
  bool ok = b.addResult(op.getSent()) && b.addResult(op.getReturned());
  return b.finish(ok, desc);
}

Described describeCloseGaps(DescBuilder b, dist::CloseGapsOp op) {
  CloseGapsDesc desc;
  desc.members = op.getCame().getType().getMembers();
  bool ok = b.addArgument(op.getInput()) && b.addArgument(op.getCame()) && b.addResult(op.getResult(), desc.y);
  if (desc.y.type == DType::I32)
    desc.y.type = DType::F32; // rows are copied, not read
  return b.finish(ok, desc);
}

Described describeShareReturn(DescBuilder b, dist::ShareReturnOp op) {
  bool ok = b.addArgument(op.getCame()) && b.addResult(op.getBack());
  return b.finish(ok, ShareReturnDesc{op.getCame().getType().getMembers()});
}

Described describeJoinColumns(DescBuilder b, dist::JoinColumnsOp op) {
  JoinColumnsDesc desc;
  desc.members = op.getReturned().getType().getMembers();
  bool ok = b.addRows(op.getInput(), desc.x) && b.addArgument(op.getReturned()) && b.addResult(op.getResult(), desc.y);
  return b.finish(ok, desc);
}

} // namespace

MaybeDescribed describeExchange(kern::FuncOp kernel, Operation *op) {
  DescBuilder b(kernel);
  return TypeSwitch<Operation *, MaybeDescribed>(op)
      .Case([&](moe::LocateOp o) { return describeLocate(b, o); })
      .Case([&](moe::RoutePlanOp o) { return describeRoutePlan(b, o); })
      .Case([&](moe::PackOp o) { return describePack(b, o); })
      .Case([&](moe::UnpackOp o) { return describeUnpack(b, o); })
      .Case([&](moe::ReturnPlanOp o) { return describeReturnPlan(b, o); })
      .Case([&](moe::ReduceSubtreesOp o) {
        return describeSubtrees<ReduceSubtreesDesc>(b, o, o.getPermutation(),
                                                    o.getPermutation().getType().getExperts());
      })
      .Case(
          [&](moe::MergeSubtreesOp o) { return describeSubtrees<MergeSubtreesDesc>(b, o, o.getRoutes(), o.getHeld()); })
      .Case([&](moe::AddPartsOp o) { return describeAddParts(b, o); })
      .Case([&](moe::CombineOp o) { return describeCombine(b, o); })
      .Case([&](dist::SharePlanOp o) { return describeSharePlan(b, o); })
      .Case([&](dist::CloseGapsOp o) { return describeCloseGaps(b, o); })
      .Case([&](dist::ShareReturnOp o) { return describeShareReturn(b, o); })
      .Case([&](dist::JoinColumnsOp o) { return describeJoinColumns(b, o); })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace k2c
