//===- VerifyTest.cpp - Each rule of a description, broken once ---------------===//

#include "k2c/Kernels/Verify.h"
#include "Lists.h"

#include <gtest/gtest.h>

using namespace k2c;

namespace {

Rows rowsOf(int64_t width, RowSpace space = RowSpace::Token) { return {space, width, width, DType::F32}; }

std::string failure(const KernelBody &body) {
  Status status = verify({"k", body});
  return status ? "" : status.error().text();
}

LinearDesc linear() {
  LinearDesc d;
  d.x = rowsOf(96);
  d.y = rowsOf(64);
  d.w = {DType::BF16, 1, 64, 96, 1};
  d.order = {96, 1};
  return d;
}

TEST(Verify, AcceptsALinearAndNamesWhatIsWrongWithAnother) {
  EXPECT_EQ(failure(linear()), "");
  LinearDesc d = linear();
  d.w.k = 95;
  EXPECT_EQ(failure(d), "k: w k is 95, but the input width is 96");
  d = linear();
  d.y.stride = 63;
  EXPECT_EQ(failure(d), "k: y stride is 63, below its width 64");
  d = linear();
  d.order.leaves = 3;
  EXPECT_EQ(failure(d), "k: the leaves of a contraction are a power of two");
  d = linear();
  d.w.count = 2;
  EXPECT_EQ(failure(d), "k: w matrices is 2, but their number is 1");
  d = linear();
  d.slotsPerToken = 0;
  EXPECT_EQ(failure(d), "k: slots per token is 0, below 1");
  d = linear();
  d.epilogue = test::epilogueOf(DType::F32, {LinearDesc::Residual});
  d.residual = rowsOf(65);
  EXPECT_EQ(failure(d), "k: residual width is 65, but y width is 64");
}

TEST(Verify, GatedGroupedAndWeightedLinears) {
  LinearDesc d = linear();
  d.epilogue = test::epilogueOf(DType::F32, {LinearDesc::UpSum});
  EXPECT_EQ(failure(d), "k: w n is 64, but the output width is 128");
  d.y = rowsOf(32);
  EXPECT_EQ(failure(d), "k: gated epilogues and matrices of two parts come together");
  d.w.parts = 2;
  EXPECT_EQ(failure(d), "");
  d.epilogue = test::epilogueOf(DType::F32, {LinearDesc::UpSum, LinearDesc::SlotWeight});
  EXPECT_EQ(failure(d), "k: slot weights need a grouped linear");
  d.grouped = true;
  EXPECT_EQ(failure(d), "k: grouped linears work on slots");
  d.x.space = d.y.space = RowSpace::Slot;
  EXPECT_EQ(failure(d), "");
}

RoutingDesc eightOfSixteen() {
  RoutingDesc d;
  d.logits = rowsOf(16);
  d.experts = 16;
  d.topK = 8;
  return d;
}

TEST(Verify, RoutingKeepsEnoughExperts) {
  RoutingDesc d = eightOfSixteen();
  d.groups = 4;
  d.topkGroups = 2;
  EXPECT_EQ(failure(d), "");
  d.topkGroups = 1;
  EXPECT_EQ(failure(d), "k: chosen experts is 8, above those of the kept groups, 4");
  d.groups = 3;
  EXPECT_EQ(failure(d), "k: groups is 3, no divisor of experts, 16");
}

TEST(Verify, RoutingCountsOneOrTwoChoicesOfAGroup) {
  RoutingDesc d = eightOfSixteen();
  d.groupBest = 0;
  EXPECT_EQ(failure(d), "k: counted choices of a group is 0, below 1");
  d.groupBest = 3;
  EXPECT_EQ(failure(d), "k: counted choices of a group is 3, above two, 2");
  d.groupBest = 1;
  EXPECT_EQ(failure(d), "");
  d.experts = 15;
  EXPECT_EQ(failure(d), "k: logits width is 16, but experts is 15");
}

TEST(Verify, RoutingIsBoundToSomeOfTheNodes) {
  RoutingDesc d = eightOfSixteen();
  d.bound = {4, 4, 2, 0};
  EXPECT_EQ(failure(d), "");
  d.bound = {4, 4, 0, 0.5};
  EXPECT_EQ(failure(d), "");
  d.bound = {4, 3, 2, 0};
  EXPECT_EQ(failure(d), "k: experts is 16, above the slots of all nodes, 12");
  d.bound = {4, 4, 4, 0};
  EXPECT_EQ(failure(d), "k: nodes of a row is 4, above nodes but one, 3");
  d.bound = {4, 4, -1, 0.5};
  EXPECT_EQ(failure(d), "k: nodes of a row is -1, below 0");
  d.bound = {4, 4, 2, 1.5};
  EXPECT_EQ(failure(d), "k: a penalty is 0 to 1");
  d.bound = {4, 4, 0, 0};
  EXPECT_EQ(failure(d), "k: a bound has a limit or a penalty");
}

TEST(Verify, AttentionWidths) {
  GqaAttentionDesc d;
  d.shape.heads = 4;
  d.kvHeads = 2;
  d.keyDim = 8;
  d.valueDim = 6;
  d.q = rowsOf(32);
  d.o = rowsOf(24);
  EXPECT_EQ(failure(d), "");
  d.o = rowsOf(32);
  EXPECT_EQ(failure(d), "k: o width is 32, but heads * value is 24");
  d.kvHeads = 3;
  EXPECT_EQ(failure(d), "k: kv heads is 3, no divisor of heads, 4");
  d.shape.group = -1;
  EXPECT_EQ(failure(d), "k: cache group is -1, below 0");
}

TEST(Verify, AbsorbedAttentionReadsTheRotaryPartOfARow) {
  AbsorbedAttentionDesc d;
  d.shape.heads = 4;
  d.latent = 8;
  d.rope = 2;
  d.qRopeHeadStride = 6;
  d.qLatent = d.o = rowsOf(32);
  d.qRope = {RowSpace::Token, 2, 20, DType::F32};
  EXPECT_EQ(failure(d), "");
  d.qRopeHeadStride = 7;
  EXPECT_EQ(failure(d), "k: the end of the last q_rope head is 23, above its stride, 20");
  d.qLatent.width = 31;
  EXPECT_EQ(failure(d), "k: q_latent width is 31, but heads * latent is 32");
}

TEST(Verify, HeadsOfALinearLieInARow) {
  HeadLinearDesc d;
  d.x = rowsOf(40);
  d.y = rowsOf(24);
  d.heads = 4;
  d.xHeadStride = 10;
  d.w = {DType::BF16, 4, 6, 10, 1};
  d.order = {10, 1};
  EXPECT_EQ(failure(d), "");
  d.xHeadStride = 11;
  EXPECT_EQ(failure(d), "k: the end of the last head is 43, above x stride, 40");
}

TEST(Verify, RotaryTurnsPairsInsideAHead) {
  RotaryDesc d{rowsOf(32), rowsOf(32), 4, 8, 4, 4, 64};
  EXPECT_EQ(failure(d), "");
  d.first = 5;
  EXPECT_EQ(failure(d), "k: the end of the rotated elements is 9, above headDim, 8");
  d.count = 3;
  EXPECT_EQ(failure(d), "k: 2 is 2, no divisor of the rotated elements, 3");
}

TEST(Verify, AnAppendHasAPlaneForEachInput) {
  AppendDesc d{{rowsOf(8), rowsOf(4)}, {DType::BF16, DType::BF16}};
  EXPECT_EQ(failure(d), "");
  d.planes.pop_back();
  EXPECT_EQ(failure(d), "k: inputs is 2, but the number of planes is 1");
}

TEST(Verify, ElementWiseRowsHaveOneWidth) {
  RowwiseDesc d = test::addition(rowsOf(8), rowsOf(8), rowsOf(8));
  EXPECT_EQ(failure(d), "");
  d.inputs[1] = rowsOf(9);
  EXPECT_EQ(failure(d), "k: input width is 9, but y width is 8");
  d.inputs.clear();
  EXPECT_EQ(failure(d), "k: inputs is 0, below 1");
}

TEST(Verify, AListReadsWhatComesBeforeIt) {
  RowwiseDesc d = test::clip(rowsOf(8), rowsOf(8), 2.0);
  EXPECT_EQ(failure(d), "");
  d.list.steps[0].terms[1] = ElementTerm::input(1);
  EXPECT_EQ(failure(d), "k: a step takes inputs, earlier steps and constants");
  d.list.steps[0].terms[1] = ElementTerm::step(0);
  EXPECT_EQ(failure(d), "k: a step takes inputs, earlier steps and constants");
  LinearDesc fused = linear();
  fused.epilogue.append(ElementOp::Round, DType::F32, ElementTerm::input(LinearDesc::epilogueInputs));
  EXPECT_EQ(failure(fused), "k: a step takes inputs, earlier steps and constants");
}

TEST(Verify, AListEndsInTheTypeOfItsResult) {
  RowwiseDesc d = test::clip(rowsOf(8), rowsOf(8), 2.0);
  d.y.type = DType::BF16;
  EXPECT_EQ(failure(d), "k: the last step rounds to the type of y");
}

TEST(Verify, ActivationsAndCachesAreF32OrBf16) {
  LinearDesc d = linear();
  d.x.type = DType::F16;
  EXPECT_EQ(failure(d), "k: activations are f32 or bf16");
  GqaAttentionDesc attention;
  attention.shape.heads = 1;
  attention.shape.cache = DType::F16;
  EXPECT_EQ(failure(attention), "k: caches are f32 or bf16");
}

TEST(Verify, MatricesAreOfATypeThatKernelsRead) {
  LinearDesc d = linear();
  d.w.type = DType::F16;
  EXPECT_EQ(failure(d), "k: matrices are f32, bf16 or f8E4M3FN");
  d.w.type = DType::F8E4M3;
  EXPECT_EQ(failure(d), "k: f8E4M3FN matrices and scales come together");
  d.w.blockColumns = d.w.blockRows = 32;
  EXPECT_EQ(failure(d), "");
  d.w.type = DType::BF16;
  EXPECT_EQ(failure(d), "k: f8E4M3FN matrices and scales come together");
}

TEST(Verify, AScaleStaysInItsLeaf) {
  LinearDesc d = linear();
  d.w.type = DType::F8E4M3;
  d.w.blockColumns = 32;
  d.w.blockRows = 96;
  EXPECT_EQ(failure(d), "k: w rows of a scale is 96, no divisor of the unit of a leaf, 128");
}

TEST(Verify, AMatrixHasGateAndUpOrNeither) {
  LinearDesc d = linear();
  d.w.parts = 3;
  EXPECT_EQ(failure(d), "k: a matrix has one part, or two and an even n");
  d.w.parts = 2;
  d.y = rowsOf(63);
  d.w.n = 63;
  EXPECT_EQ(failure(d), "k: a matrix has one part, or two and an even n");
}

TEST(Verify, ACombineKeepsItsType) {
  UnpermuteDesc d{rowsOf(8, RowSpace::Slot), rowsOf(8), 12, 2, 4};
  d.y.type = DType::BF16;
  EXPECT_EQ(failure(d), "k: an unpermute keeps its type");
}

TEST(Verify, CombineLeavesDivideTheExperts) {
  UnpermuteDesc d{rowsOf(8, RowSpace::Slot), rowsOf(8), 12, 2, 8};
  EXPECT_EQ(failure(d), "k: leaves is 8, no divisor of experts, 12");
  d.leaves = 6;
  EXPECT_EQ(failure(d), "k: the leaves of an unpermute are a power of two");
  d.leaves = combineLeaves(12);
  EXPECT_EQ(failure(d), "");
}

TEST(Verify, PlansHaveMembersOfSomeSlots) {
  EXPECT_EQ(failure(LocateDesc{12, 2, 12, 6}), "");
  EXPECT_EQ(failure(LocateDesc{0, 2, 12, 6}), "k: experts is 0, below 1");
  EXPECT_EQ(failure(LocateDesc{12, 2, 12, 0}), "k: slots of a node is 0, below 1");
  EXPECT_EQ(failure(RoutePlanDesc{12, 2, 2, 5}), ""); // within a node
  EXPECT_EQ(failure(RoutePlanDesc{12, 2, 0, 6}), "k: members is 0, below 1");
  EXPECT_EQ(failure(ReturnPlanDesc{12, 2, 2, 0}), "k: slots is 0, below 1");
  EXPECT_EQ(failure(ReturnPlanDesc{12, 0, 2, 6}), "k: chosen experts is 0, below 1");
}

TEST(Verify, MessagesHaveChoices) {
  EXPECT_EQ(failure(PackDesc{rowsOf(8), 0}), "k: chosen experts is 0, below 1");
  EXPECT_EQ(failure(UnpackDesc{rowsOf(8), 0, 2}), "k: chosen experts is 0, below 1");
  EXPECT_EQ(failure(UnpackDesc{rowsOf(8), 2, 0}), "k: members is 0, below 1");
}

TEST(Verify, SharedRowsAreOfMembers) {
  EXPECT_EQ(failure(SharePlanDesc{RowSpace::Entering, 2}), "");
  EXPECT_EQ(failure(SharePlanDesc{RowSpace::Token, 0}), "k: members is 0, below 1");
  EXPECT_EQ(failure(SharePlanDesc{RowSpace::Slot, 2}), "k: slots are not shared");
  EXPECT_EQ(failure(CloseGapsDesc{rowsOf(8), 0}), "k: members is 0, below 1");
  EXPECT_EQ(failure(ShareReturnDesc{0}), "k: members is 0, below 1");
  EXPECT_EQ(failure(JoinColumnsDesc{rowsOf(4), rowsOf(8), 2}), "");
  EXPECT_EQ(failure(JoinColumnsDesc{rowsOf(4), rowsOf(9), 2}), "k: y width is 9, but members * x width is 8");
  EXPECT_EQ(failure(LookupDesc{0, DType::F32, rowsOf(8)}), "k: vocab is 0, below 1");
}

TEST(Verify, PartsOfOutputsAreOfAPowerOfTwoOfMembers) {
  EXPECT_EQ(failure(PartPlanDesc{2, 2}), "");
  EXPECT_EQ(failure(PartPlanDesc{0, 2}), "k: chosen experts is 0, below 1");
  EXPECT_EQ(failure(PartPlanDesc{2, 0}), "k: members is 0, below 1");
  EXPECT_EQ(failure(AddPartsDesc{rowsOf(8), Rows{RowSpace::Token, 8, 8, DType::BF16}, 2, 4}), "");
  EXPECT_EQ(failure(AddPartsDesc{rowsOf(8), rowsOf(9), 2, 4}), "k: y width is 9, but x width is 8");
  EXPECT_EQ(failure(AddPartsDesc{Rows{RowSpace::Token, 8, 8, DType::BF16}, rowsOf(8), 2, 4}),
            "k: parts of a sum are f32");
  EXPECT_EQ(failure(AddPartsDesc{rowsOf(8), rowsOf(8), 0, 4}), "k: chosen experts is 0, below 1");
  EXPECT_EQ(failure(AddPartsDesc{rowsOf(8), rowsOf(8), 2, 1}), "k: members is 1, below 2");
  EXPECT_EQ(failure(AddPartsDesc{rowsOf(8), rowsOf(8), 2, 3}),
            "k: members that have parts of a sum are a power of two");
}

TEST(Verify, PartsOfACombineKeepItsTypeAndTree) {
  MergeSubtreesDesc merge{rowsOf(8), rowsOf(8), 12, 2, 6, 4};
  EXPECT_EQ(failure(merge), "");
  merge.slots = 0;
  EXPECT_EQ(failure(merge), "k: slots is 0, below 1");
  ReduceSubtreesDesc reduce{rowsOf(8, RowSpace::Slot), rowsOf(8), 12, 2, 6, 4};
  EXPECT_EQ(failure(reduce), "");
  reduce.leaves = 8;
  EXPECT_EQ(failure(reduce), "k: leaves is 8, no divisor of experts, 12");
  CombineDesc combine{rowsOf(8), rowsOf(8), 12, 2, 6};
  EXPECT_EQ(failure(combine), "k: the leaves of a sum of experts are a power of two");
  combine.leaves = 4;
  combine.y.type = DType::BF16;
  EXPECT_EQ(failure(combine), "k: sums of experts keep their type");
}

TEST(Verify, GreedySamples) {
  const Rows logits = rowsOf(100, RowSpace::Output);
  EXPECT_EQ(failure(BlockArgmaxDesc{logits, 64}), "");
  EXPECT_EQ(failure(BlockArgmaxDesc{logits, 0}), "k: columns of a block is 0, below 1");
  EXPECT_EQ(failure(BlockArgmaxDesc{rowsOf(100), 64}), "k: samples are of output rows");
  EXPECT_EQ(failure(GreedySampleDesc{logits, 100}), "");
  EXPECT_EQ(failure(GreedySampleDesc{logits, 0}), "k: blocks is 0, below 1");
  EXPECT_EQ(failure(GreedySampleDesc{logits, 101}), "k: blocks is 101, above the logits of a row, 100");
  EXPECT_EQ(failure(GreedySampleDesc{{RowSpace::Output, 100, 100, DType::BF16}, 2}), "k: logits are f32");
}

} // namespace
