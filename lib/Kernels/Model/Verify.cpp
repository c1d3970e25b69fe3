//===- Verify.cpp - How the fields of a description hang together -------------===//
//
// Each rule compares two numbers and names them; the first rule that fails is reported.
//
//===----------------------------------------------------------------------===//
#include "k2c/Kernels/Verify.h"
#include <algorithm>

namespace k2c {

namespace {

/// Collects the first broken rule.
class Rules {
public:
  std::string failure;

  void equal(const char *what, int64_t value, const char *other, int64_t expected) {
    check(value == expected, what, value, std::string("but ") + other + " is", expected);
  }
  void atMost(const char *what, int64_t value, const char *other, int64_t bound) {
    check(value <= bound, what, value, std::string("above ") + other + ",", bound);
  }
  void atLeast(const char *what, int64_t value, int64_t bound) { check(value >= bound, what, value, "below", bound); }
  void divides(const char *what, int64_t value, const char *other, int64_t whole) {
    check(value > 0 && whole % value == 0, what, value, std::string("no divisor of ") + other + ",", whole);
  }
  void that(bool holds, const char *rule) {
    if (!holds && failure.empty())
      failure = rule;
  }

  void rows(const char *name, const Rows &r) {
    atLeast((std::string(name) + " width").c_str(), r.width, 1);
    check(r.stride >= r.width, std::string(name) + " stride", r.stride, "below its width", r.width);
    that(r.type == DType::F32 || r.type == DType::BF16, "activations are f32 or bf16");
  }
  /// Matrices of the given shape.
  void matrices(const char *name, const Matrix &w, int64_t count, int64_t n, int64_t k) {
    std::string prefix = std::string(name) + " ";
    equal((prefix + "matrices").c_str(), w.count, "their number", count);
    equal((prefix + "n").c_str(), w.n, "the output width", n);
    equal((prefix + "k").c_str(), w.k, "the input width", k);
    that(w.parts == 1 || (w.parts == 2 && w.n % 2 == 0), "a matrix has one part, or two and an even n");
    that(w.type == DType::F32 || w.type == DType::BF16 || w.type == DType::F8E4M3,
         "matrices are f32, bf16 or f8E4M3FN");
    that(w.isScaled() == (w.type == DType::F8E4M3), "f8E4M3FN matrices and scales come together");
    if (!w.isScaled())
      return;
    // A leaf of a contraction begins at a multiple of 128: scales never straddle two leaves.
    divides((prefix + "rows of a scale").c_str(), w.blockRows, "the unit of a leaf", 128);
  }
  void order(const Contraction &c, int64_t k) {
    equal("order k", c.k, "the input width", k);
    that(c.leaves >= 1 && (c.leaves & (c.leaves - 1)) == 0, "the leaves of a contraction are a power of two");
  }
  /// Of elements that come from `inputs` rows and are stored as `type`.
  void list(const Elementwise &list, int64_t inputs, DType type) {
    for (size_t i = 0; i < list.steps.size(); ++i)
      for (const ElementTerm &term : list.steps[i]) {
        int64_t known = term.kind == ElementTerm::Kind::Step ? int64_t(i) : inputs;
        that(term.kind == ElementTerm::Kind::Constant || (term.index >= 0 && term.index < known),
             "a step takes inputs, earlier steps and constants");
      }
    that(list.steps.empty() || list.steps.back().type == type, "the last step rounds to the type of y");
  }
  void shape(const AttentionShape &s) {
    atLeast("heads", s.heads, 1);
    atLeast("cache group", s.group, 0);
    that(s.cache == DType::F32 || s.cache == DType::BF16, "caches are f32 or bf16");
  }

  void operator()(const EmbedDesc &d) {
    rows("y", d.y);
    equal("y width", d.y.width, "hidden", d.hidden);
  }
  void operator()(const RmsNormDesc &d) {
    rows("x", d.x);
    rows("y", d.y);
    equal("y width", d.y.width, "x width", d.x.width);
    divides("heads", d.heads, "x width", d.x.width);
  }
  void operator()(const LinearDesc &d) {
    rows("x", d.x);
    rows("y", d.y);
    int64_t columns = d.takes(LinearDesc::UpSum) ? 2 * d.y.width : d.y.width;
    matrices("w", d.w, d.grouped ? d.w.count : 1, columns, d.x.width);
    order(d.order, d.x.width);
    list(d.epilogue, LinearDesc::epilogueInputs, d.y.type);
    that(d.takes(LinearDesc::UpSum) == (d.w.parts == 2), "gated epilogues and matrices of two parts come together");
    that(!d.grouped || (d.x.space == RowSpace::Slot && d.y.space == RowSpace::Slot), "grouped linears work on slots");
    that(!d.takes(LinearDesc::SlotWeight) || d.grouped, "slot weights need a grouped linear");
    atLeast("slots per token", d.slotsPerToken, 1);
    if (d.takes(LinearDesc::Residual)) {
      rows("residual", d.residual);
      equal("residual width", d.residual.width, "y width", d.y.width);
    }
  }
  void operator()(const HeadLinearDesc &d) {
    rows("x", d.x);
    rows("y", d.y);
    matrices("w", d.w, d.heads, d.w.n, d.w.k);
    order(d.order, d.w.k);
    equal("y width", d.y.width, "heads * n", d.heads * d.w.n);
    atMost("the end of the last head", (d.heads - 1) * d.xHeadStride + d.w.k, "x stride", d.x.stride);
  }
  void operator()(const RotaryDesc &d) {
    rows("x", d.x);
    rows("y", d.y);
    equal("x width", d.x.width, "heads * headDim", d.heads * d.headDim);
    equal("y width", d.y.width, "heads * headDim", d.heads * d.headDim);
    atMost("the end of the rotated elements", d.first + d.count, "headDim", d.headDim);
    divides("2", 2, "the rotated elements", d.count);
  }
  void operator()(const AppendDesc &d) {
    equal("inputs", int64_t(d.x.size()), "the number of planes", int64_t(d.planes.size()));
    for (const Rows &r : d.x)
      rows("x", r);
  }
  void operator()(const GqaAttentionDesc &d) {
    shape(d.shape);
    rows("q", d.q);
    rows("o", d.o);
    divides("kv heads", d.kvHeads, "heads", d.shape.heads);
    equal("q width", d.q.width, "heads * key", d.shape.heads * d.keyDim);
    equal("o width", d.o.width, "heads * value", d.shape.heads * d.valueDim);
  }
  void operator()(const AbsorbedAttentionDesc &d) {
    shape(d.shape);
    rows("q_latent", d.qLatent);
    rows("q_rope", d.qRope);
    rows("o", d.o);
    equal("q_latent width", d.qLatent.width, "heads * latent", d.shape.heads * d.latent);
    equal("o width", d.o.width, "heads * latent", d.shape.heads * d.latent);
    atMost("the end of the last q_rope head", (d.shape.heads - 1) * d.qRopeHeadStride + d.rope, "its stride",
           d.qRope.stride);
  }
  void operator()(const ExpandedAttentionDesc &d) {
    shape(d.shape);
    rows("q", d.q);
    rows("o", d.o);
    equal("q width", d.q.width, "heads * (nope + rope)", d.shape.heads * (d.nope + d.rope));
    equal("o width", d.o.width, "heads * value", d.shape.heads * d.value);
    matrices("uk", d.uk, d.shape.heads, d.nope, d.latent);
    matrices("uv", d.uv, d.shape.heads, d.value, d.latent);
  }
  void operator()(const RoutingDesc &d) {
    rows("logits", d.logits);
    equal("logits width", d.logits.width, "experts", d.experts);
    divides("groups", d.groups, "experts", d.experts);
    atLeast("kept groups", d.topkGroups, 1);
    atLeast("counted choices of a group", d.groupBest, 1);
    atMost("counted choices of a group", d.groupBest, "two", 2);
    atMost("kept groups", d.topkGroups, "groups", d.groups);
    atMost("chosen experts", d.topK, "those of the kept groups",
           d.topkGroups * (d.experts / std::max<int64_t>(d.groups, 1)));
    atLeast("chosen experts", d.topK, 1);
    if (d.bound.isBound())
      bound(d);
  }
  /// A row may go to some of the nodes, which have all experts.
  void bound(const RoutingDesc &d) {
    atMost("experts", d.experts, "the slots of all nodes", d.bound.nodes * d.bound.slots);
    atLeast("nodes of a row", d.bound.most, 0);
    atMost("nodes of a row", d.bound.most, "nodes but one", d.bound.nodes - 1);
    that(d.bound.penalty >= 0 && d.bound.penalty <= 1, "a penalty is 0 to 1");
    that(d.bound.most > 0 || d.bound.penalty > 0, "a bound has a limit or a penalty");
  }
  void operator()(const PermutationDesc &d) {
    atLeast("experts", d.experts, 1);
    atLeast("chosen experts", d.topK, 1);
  }
  void operator()(const PermuteDesc &d) {
    rows("x", d.x);
    rows("y", d.y);
    equal("y width", d.y.width, "x width", d.x.width);
  }
  /// Sums of experts in the order of a tree.
  template <class Desc> void tree(const Desc &d, const char *keepsType, const char *isPowerOfTwo) {
    rows("x", d.x);
    rows("y", d.y);
    equal("y width", d.y.width, "x width", d.x.width);
    that(d.x.type == d.y.type, keepsType);
    divides("leaves", d.leaves, "experts", d.experts);
    that((d.leaves & (d.leaves - 1)) == 0, isPowerOfTwo);
  }
  template <class Desc> void tree(const Desc &d) {
    tree(d, "sums of experts keep their type", "the leaves of a sum of experts are a power of two");
  }
  void operator()(const UnpermuteDesc &d) {
    tree(d, "an unpermute keeps its type", "the leaves of an unpermute are a power of two");
  }
  void operator()(const RowwiseDesc &d) {
    rows("y", d.y);
    atLeast("inputs", int64_t(d.inputs.size()), 1);
    for (const Rows &input : d.inputs) {
      rows("input", input);
      equal("input width", input.width, "y width", d.y.width);
    }
    list(d.list, int64_t(d.inputs.size()), d.y.type);
    atLeast("slots per token", d.slotsPerToken, 1);
  }
  void operator()(const OutputRowsDesc &d) {
    rows("x", d.x);
    rows("y", d.y);
    equal("y width", d.y.width, "x width", d.x.width);
  }
  void operator()(const CaptureDesc &d) { rows("x", d.x); }
  /// A holder of some of the experts.
  template <class Desc> void holder(const Desc &d) {
    atLeast("experts", d.experts, 1);
    atLeast("chosen experts", d.topK, 1);
    atLeast("slots", d.slots, 1);
  }
  template <class Desc> void plan(const Desc &d) {
    holder(d);
    atLeast("members", d.members, 1);
  }
  void operator()(const LocateDesc &d) {
    atLeast("experts", d.experts, 1);
    atLeast("chosen experts", d.topK, 1);
    atLeast("slots of a node", d.slotsOfNode, 1);
    atLeast("slots", d.slots, d.slotsOfNode);
  }
  void operator()(const RoutePlanDesc &d) { plan(d); }
  void operator()(const PackDesc &d) {
    rows("x", d.x);
    atLeast("chosen experts", d.topK, 1);
  }
  void operator()(const UnpackDesc &d) {
    rows("y", d.y);
    atLeast("chosen experts", d.topK, 1);
    atLeast("members", d.members, 1);
  }
  void operator()(const ReturnPlanDesc &d) { plan(d); }
  void operator()(const ReduceSubtreesDesc &d) {
    holder(d);
    tree(d);
  }
  void operator()(const MergeSubtreesDesc &d) {
    holder(d);
    tree(d);
  }
  void operator()(const CombineDesc &d) { tree(d); }
  void operator()(const TokenIdsDesc &) {}
  void operator()(const LookupDesc &d) {
    rows("y", d.y);
    atLeast("vocab", d.vocab, 1);
  }
  void operator()(const SharePlanDesc &d) {
    atLeast("members", d.members, 1);
    that(d.space != RowSpace::Slot, "slots are not shared");
  }
  void operator()(const CloseGapsDesc &d) {
    rows("y", d.y);
    atLeast("members", d.members, 1);
  }
  void operator()(const ShareReturnDesc &d) { atLeast("members", d.members, 1); }
  void operator()(const JoinColumnsDesc &d) {
    rows("x", d.x);
    rows("y", d.y);
    atLeast("members", d.members, 1);
    equal("y width", d.y.width, "members * x width", d.members * d.x.width);
  }
  void operator()(const PartPlanDesc &d) {
    atLeast("chosen experts", d.topK, 1);
    atLeast("members", d.members, 1);
  }
  void operator()(const AddPartsDesc &d) {
    rows("x", d.x);
    rows("y", d.y);
    equal("y width", d.y.width, "x width", d.x.width);
    that(d.x.type == DType::F32, "parts of a sum are f32");
    atLeast("chosen experts", d.topK, 1);
    atLeast("members", d.members, 2);
    that((d.members & (d.members - 1)) == 0, "members that have parts of a sum are a power of two");
  }
  void sampled(const Rows &logits) {
    rows("logits", logits);
    that(logits.type == DType::F32, "logits are f32");
    that(logits.space == RowSpace::Output, "samples are of output rows");
  }
  void operator()(const BlockArgmaxDesc &d) {
    sampled(d.logits);
    atLeast("columns of a block", d.block, 1);
  }
  void operator()(const GreedySampleDesc &d) {
    sampled(d.logits);
    atLeast("blocks", d.blocks, 1);
    atMost("blocks", d.blocks, "the logits of a row", d.logits.width);
  }

private:
  void check(bool holds, const std::string &what, int64_t value, const std::string &relation, int64_t other) {
    if (!holds && failure.empty())
      failure = what + " is " + std::to_string(value) + ", " + relation + " " + std::to_string(other);
  }
};

} // namespace

Status verify(const KernelDesc &desc) {
  Rules rules;
  std::visit(rules, desc.body);
  if (rules.failure.empty())
    return Status::success();
  return Error{desc.name, std::move(rules.failure), ""};
}

} // namespace k2c
