//===- Others.cpp - Norms, rotary, cache, routing, copies -----------------===//
//
// One function for each op that is neither a contraction nor attention nor element-wise. All have the same two steps:
// sizes and constants are read off the op and the types of its operands, then the sources are added in the order in
// which operands() lists the kernel's arguments. The chain of && is therefore the argument list, and the first error
// ends it.
//
// An append of keys and values and one of latent and rotary part are the same kernel, two planes each. The layer that
// a router reports is its ordinal among the layers with experts; that of a captured hidden state is its index plus
// one, as row 0 of the buffer is the embedding. An op that is not listed is left to the other readers; one that is
// listed but has a form without a kernel (an unpermute without a declared order) is an error at the op.
//
//===----------------------------------------------------------------------===//
#include "Builder.h"
#include "dialects/Mla/Mla.h"
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/Nn.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace k2c {

namespace {

using Described = FailureOr<DescribedKernel>;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

Described describeEmbed(DescBuilder b, nn::EmbedOp op) {
  EmbedDesc desc;
  desc.vocab = typeOf(op.getWeightOperand()).getDimSize(0);
  desc.hidden = typeOf(op.getWeightOperand()).getDimSize(1);
  desc.table = elementOf(op.getWeightOperand());
  bool ok = b.addArgument(op.getWeightOperand()) && b.addArgument(op.getBatch()) && b.addResult(op.getResult(), desc.y);
  return b.finish(ok, desc);
}

Described describeTokenIds(DescBuilder b, nn::TokenIdsOp op) {
  bool ok = b.addArgument(op.getBatch()) && b.addResult(op.getResult());
  return b.finish(ok, TokenIdsDesc());
}

Described describeLookup(DescBuilder b, nn::LookupOp op) {
  LookupDesc desc;
  desc.vocab = typeOf(op.getWeightOperand()).getDimSize(0);
  desc.table = elementOf(op.getWeightOperand());
  bool ok = b.addArgument(op.getIds()) && b.addArgument(op.getWeightOperand()) && b.addResult(op.getResult(), desc.y);
  return b.finish(ok, desc);
}

Described describeNorm(DescBuilder b, nn::RmsNormOp op) {
  RmsNormDesc desc;
  RankedTensorType input = typeOf(op.getInput());
  desc.heads = input.getRank() == 3 ? input.getDimSize(1) : 1;
  desc.eps = op.getEps().convertToDouble();
  desc.weight = elementOf(op.getWeightOperand());
  bool ok =
      b.addRows(op.getInput(), desc.x) && b.addArgument(op.getWeightOperand()) && b.addResult(op.getResult(), desc.y);
  return b.finish(ok, desc);
}

Described describeRotary(DescBuilder b, nn::RotaryOp op) {
  RotaryDesc desc;
  RankedTensorType input = typeOf(op.getInput());
  desc.heads = input.getRank() == 3 ? input.getDimSize(1) : 1;
  desc.headDim = input.getShape().back();
  desc.first = op.getFirst();
  desc.count = op.getCount();
  desc.positions = typeOf(op.getTableOperand()).getDimSize(0);
  desc.interleaved = op.getPairing() == nn::Pairing::Interleaved;
  bool ok = b.addRows(op.getInput(), desc.x) && b.addArgument(op.getTableOperand()) && b.addArgument(op.getBatch()) &&
            b.addResult(op.getResult(), desc.y);
  return b.finish(ok, desc);
}

/// nn.append and mla.append: two planes each.
template <class Op> Described describeAppend(DescBuilder b, Op op, Value first, Value second) {
  AppendDesc desc;
  desc.x.resize(2);
  desc.planes.assign(2, *dtypeOf(op.getView().getType().getElement()));
  desc.group = op.getView().getType().getGroup();
  bool ok = b.addRows(first, desc.x[0]) && b.addRows(second, desc.x[1]) && b.addPlane(op.getView(), 0) &&
            b.addPlane(op.getView(), 1) && b.addArgument(op.getBatch());
  return b.finish(ok, desc);
}

Described describeRouting(DescBuilder b, moe::RoutingOp op) {
  RoutingDesc desc;
  desc.experts = typeOf(op.getScores()).getDimSize(1);
  desc.topK = op.getTop();
  desc.groups = op.getGroups();
  desc.topkGroups = op.getKept();
  desc.groupBest = op.getGroupScore() == moe::GroupScore::Max ? 1 : 2;
  desc.scoring = op.getScore() == moe::Scoring::Sigmoid ? Scoring::Sigmoid : Scoring::Softmax;
  desc.bias = !!op.getBiasOperand();
  desc.normalize = op.getNormalize();
  desc.scale = op.getScale().convertToDouble();
  if (moe::BoundAttr bound = op.getBoundAttr())
    desc.bound = {bound.getNodes(), bound.getSlots(), bound.getMax(),
                  bound.getPenalty() ? bound.getPenalty().getValueAsDouble() : 0};
  bool ok = b.addRows(op.getScores(), desc.logits) && (!desc.bias || b.addArgument(op.getBiasOperand())) &&
            b.addArgument(op.getBatch()) && b.addOrdinal(op.getLayer(), op.getAmong()) &&
            (!desc.bound.isBound() || b.addAllHeld(op)) && b.addResult(op.getExperts()) && b.addResult(op.getWeights());
  return b.finish(ok, desc);
}

Described describePermutation(DescBuilder b, moe::PermutationOp op) {
  PermutationDesc desc{static_cast<int64_t>(op.getPermutation().getType().getExperts()),
                       op.getPermutation().getType().getTop()};
  bool ok = b.addArgument(op.getExperts()) && b.addResult(op.getPermutation());
  return b.finish(ok, desc);
}

Described describePermute(DescBuilder b, moe::PermuteOp op) {
  PermuteDesc desc;
  desc.experts = op.getPermutation().getType().getExperts();
  desc.topK = op.getPermutation().getType().getTop();
  bool ok =
      b.addRows(op.getInput(), desc.x) && b.addArgument(op.getPermutation()) && b.addResult(op.getResult(), desc.y);
  return b.finish(ok, desc);
}

Described describeUnpermute(DescBuilder b, moe::UnpermuteOp op) {
  if (!op.getOrderAttr())
    return op.emitOpError("has no declared order");
  UnpermuteDesc desc;
  desc.experts = op.getPermutation().getType().getExperts();
  desc.topK = op.getPermutation().getType().getTop();
  desc.leaves = op.getOrderAttr().getLeaves();
  bool ok = b.addRows(op.getInput(), desc.x) && b.addArgument(op.getPermutation()) && b.addArgument(op.getExperts()) &&
            b.addResult(op.getResult(), desc.y);
  return b.finish(ok, desc);
}

Described describeOutputRows(DescBuilder b, nn::OutputRowsOp op) {
  OutputRowsDesc desc;
  bool ok = b.addRows(op.getInput(), desc.x) && b.addArgument(op.getBatch()) && b.addResult(op.getResult(), desc.y);
  return b.finish(ok, desc);
}

Described describeCapture(DescBuilder b, nn::CaptureOp op) {
  CaptureDesc desc;
  // Row 0 of the capture buffer is the embedding, row l + 1 what leaves layer l.
  bool ok = b.addRows(op.getInput(), desc.x) && b.addArgument(op.getBatch()) &&
            b.addLayer(op.getLayer(), op.getLayer() ? 1 : 0);
  return b.finish(ok, desc);
}

Described describeBlockArgmax(DescBuilder b, nn::BlockArgmaxOp op) {
  BlockArgmaxDesc desc;
  desc.block = op.getBlock();
  bool ok = b.addRows(op.getLogits(), desc.logits) && b.addResult(op.getResult());
  return b.finish(ok, desc);
}

Described describeGreedySample(DescBuilder b, nn::GreedySampleOp op) {
  GreedySampleDesc desc;
  desc.blocks = typeOf(op.getBest()).getDimSize(1);
  bool ok = b.addArgument(op.getBest()) && b.addRows(op.getLogits(), desc.logits) && b.addArgument(op.getBatch());
  return b.finish(ok, desc);
}

} // namespace

MaybeDescribed describeOther(kern::FuncOp kernel, Operation *op) {
  DescBuilder b(kernel);
  return TypeSwitch<Operation *, MaybeDescribed>(op)
      .Case([&](nn::EmbedOp o) { return describeEmbed(b, o); })
      .Case([&](nn::TokenIdsOp o) { return describeTokenIds(b, o); })
      .Case([&](nn::LookupOp o) { return describeLookup(b, o); })
      .Case([&](nn::RmsNormOp o) { return describeNorm(b, o); })
      .Case([&](nn::RotaryOp o) { return describeRotary(b, o); })
      .Case([&](nn::AppendOp o) { return describeAppend(b, o, o.getKeys(), o.getValues()); })
      .Case([&](mla::AppendOp o) { return describeAppend(b, o, o.getLatent(), o.getRope()); })
      .Case([&](moe::RoutingOp o) { return describeRouting(b, o); })
      .Case([&](moe::PermutationOp o) { return describePermutation(b, o); })
      .Case([&](moe::PermuteOp o) { return describePermute(b, o); })
      .Case([&](moe::UnpermuteOp o) { return describeUnpermute(b, o); })
      .Case([&](nn::OutputRowsOp o) { return describeOutputRows(b, o); })
      .Case([&](nn::CaptureOp o) { return describeCapture(b, o); })
      .Case([&](nn::BlockArgmaxOp o) { return describeBlockArgmax(b, o); })
      .Case([&](nn::GreedySampleOp o) { return describeGreedySample(b, o); })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace k2c
