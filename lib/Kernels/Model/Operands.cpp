//===- Operands.cpp - The argument list of each kernel ------------------------===//
//
// The one place that turns a description into the order of its arguments: lowering passes pointers in it, emitted
// kernels and evaluate() read them in it. It is also where each argument's effect is said, from which the order of
// calls is decided: who lists an argument has to say whether it is read or written, which rows of a result a form
// defines, which array of the step is captured, and whether item i of the grid keeps to row i. The last is about items,
// not about values: a linear's row depends on one row alone, but its items are tiles of several rows and columns.
//
//===----------------------------------------------------------------------===//
#include "k2c/Kernels/KernelDesc.h"
#include "k2rt/placement.h"
#include <utility>

namespace k2c {

namespace {

using Role = Operand::Role;

/// Collects arguments in order, each with what the kernel does to it.
struct ArgumentList {
  std::vector<Operand> list;

  Operand &add(std::string name, Role role, DType type, Effect effect) {
    return list.emplace_back(std::move(name), role, type, std::move(effect));
  }
  void rows(std::string name, const Rows &rows, Effect effect) {
    add(std::move(name), Role::Activation, rows.type, std::move(effect)).rows = rows;
  }
  void result(std::string name, const Rows &rows, Effect effect) {
    add(std::move(name), Role::Result, rows.type, std::move(effect)).rows = rows;
  }
  void weight(std::string name, int64_t elements, DType type) {
    add(std::move(name), Role::Weight, type, Effect::reads()).elements = elements;
  }
  void weight(std::string name, const Matrix &matrix) {
    add(std::move(name), Role::Weight, matrix.type, Effect::reads()).matrix = matrix;
  }
  void plane(std::string name, int64_t width, DType type, int64_t group, Effect effect) {
    Operand &operand = add(std::move(name), Role::Plane, type, std::move(effect));
    operand.rows = Rows{RowSpace::Token, width, width, type};
    operand.group = group;
  }
  void permutation(Role role, int64_t experts, int64_t topK, Effect effect) {
    Operand &operand = add("permutation", role, DType::I32, std::move(effect));
    operand.elements = experts + 1;
    operand.rows = Rows{RowSpace::Token, 2 * topK, 2 * topK, DType::I32};
  }
  void step(Effect effect = Effect::reads()) { add("step", Role::Step, DType::U8, std::move(effect)); }
  void layer() { add("layer", Role::Layer, DType::I64, Effect::none()); }
  /// Planes that the kernel reads, of one cache.
  void cache(const AttentionShape &shape, const char *first, int64_t firstWidth, const char *second,
             int64_t secondWidth) {
    plane(first, firstWidth, shape.cache, shape.group, Effect::reads());
    plane(second, secondWidth, shape.cache, shape.group, Effect::reads());
  }
  void attentionTail(const AttentionShape &shape, const Rows &o, FormFilter rows) {
    step(shape.maxLogit ? Effect::captures({Capture::MaxLogit}).inAnyOrder() : Effect::reads());
    if (shape.maxLogit)
      layer();
    result("o", o, Effect::writes(rows));
  }

  /// A row of `width` numbers for each token row.
  Rows numbers(int64_t width, DType type = DType::I32) const { return {RowSpace::Token, width, width, type}; }
  void counts(std::string name, int64_t members, Role role, Effect effect) {
    add(std::move(name), role, DType::I64, std::move(effect)).elements = 2 * members;
  }
  void messages(Role role, int64_t rowBytes, int64_t topK, Effect effect) {
    const int64_t bytes = k2rt_message_bytes(rowBytes, topK);
    add("messages", role, DType::U8, std::move(effect)).rows = Rows{RowSpace::Token, bytes, bytes, DType::U8};
  }
  /// Parts of a layer's placement.
  void placement(Role role, std::string name, int64_t elements) {
    add(std::move(name), role, DType::I32, Effect::reads()).elements = elements;
  }
  void held(int64_t slots, int64_t experts) {
    placement(Role::Held, "held", slots);
    placement(Role::Subtrees, "subtrees", experts);
  }

  void operator()(const EmbedDesc &d) {
    weight("table", d.vocab * d.hidden, d.table);
    step();
    result("y", d.y, Effect::writes().byRow());
  }
  void operator()(const RmsNormDesc &d) {
    rows("x", d.x, Effect::reads().byRow());
    weight("weight", d.width(), d.weight);
    result("y", d.y, Effect::writes().byRow());
  }
  void operator()(const LinearDesc &d) {
    rows("x", d.x, Effect::reads());
    if (d.normEps > 0)
      weight("norm", d.x.width, d.normWeight);
    weight("w", d.w);
    if (d.takes(LinearDesc::Bias))
      weight("bias", d.w.count * d.w.n, d.biasType);
    if (d.takes(LinearDesc::SlotWeight))
      rows("slot_weights", Rows{RowSpace::Token, d.slotsPerToken, d.slotsPerToken, DType::F32}, Effect::reads());
    if (d.takes(LinearDesc::Residual))
      rows("residual", d.residual, Effect::reads());
    if (d.grouped)
      permutation(Role::Permutation, d.w.count, d.slotsPerToken, Effect::reads());
    result("y", d.y, Effect::writes());
  }
  void operator()(const HeadLinearDesc &d) {
    rows("x", d.x, Effect::reads());
    weight("w", d.w);
    result("y", d.y, Effect::writes(d.rows));
  }
  void operator()(const RotaryDesc &d) {
    rows("x", d.x, Effect::reads().byRow());
    add("table", Role::Table, DType::F32, Effect::reads()).elements = d.positions * d.count;
    step();
    result("y", d.y, Effect::writes().byRow());
  }
  void operator()(const AppendDesc &d) {
    for (size_t i = 0; i < d.x.size(); ++i)
      rows("x" + std::to_string(i), d.x[i], Effect::reads().byRow());
    for (size_t i = 0; i < d.planes.size(); ++i)
      plane("plane" + std::to_string(i), d.x[i].width, d.planes[i], d.group, Effect::writes());
    step();
  }
  void operator()(const GqaAttentionDesc &d) {
    rows("q", d.q, Effect::reads());
    cache(d.shape, "k", d.kvHeads * d.keyDim, "v", d.kvHeads * d.valueDim);
    attentionTail(d.shape, d.o, FormFilter::All);
  }
  void operator()(const AbsorbedAttentionDesc &d) {
    rows("q_latent", d.qLatent, Effect::reads());
    rows("q_rope", d.qRope, Effect::reads());
    cache(d.shape, "latent", d.latent, "rope", d.rope);
    attentionTail(d.shape, d.o, d.rows);
  }
  void operator()(const ExpandedAttentionDesc &d) {
    rows("q", d.q, Effect::reads());
    cache(d.shape, "latent", d.latent, "rope", d.rope);
    weight("uk", d.uk);
    weight("uv", d.uv);
    attentionTail(d.shape, d.o, d.rows);
  }
  void operator()(const RoutingDesc &d) {
    rows("logits", d.logits, Effect::reads().byRow());
    if (d.bias)
      weight("bias", d.experts, DType::F32);
    step(Effect::captures({Capture::Experts, Capture::Weights}));
    layer();
    if (d.bound.isBound())
      placement(Role::Held, "held", d.bound.nodes * d.bound.slots);
    result("experts", Rows{d.logits.space, d.topK, d.topK, DType::I32}, Effect::writes().byRow());
    result("weights", Rows{d.logits.space, d.topK, d.topK, DType::F32}, Effect::writes().byRow());
  }
  void operator()(const PermutationDesc &d) {
    rows("experts", Rows{RowSpace::Token, d.topK, d.topK, DType::I32}, Effect::reads());
    permutation(Role::Result, d.experts, d.topK, Effect::writes());
  }
  void operator()(const PermuteDesc &d) {
    rows("x", d.x, Effect::reads().byRow());
    permutation(Role::Permutation, d.experts, d.topK, Effect::reads());
    result("y", d.y, Effect::writes());
  }
  void operator()(const UnpermuteDesc &d) {
    rows("x", d.x, Effect::destroys());
    permutation(Role::Permutation, d.experts, d.topK, Effect::reads());
    rows("experts", Rows{RowSpace::Token, d.topK, d.topK, DType::I32}, Effect::reads().byRow());
    result("y", d.y, Effect::writes().byRow());
  }
  void operator()(const RowwiseDesc &d) {
    for (size_t i = 0; i < d.inputs.size(); ++i)
      rows("input" + std::to_string(i), d.inputs[i], Effect::reads().byRow());
    result("y", d.y, Effect::writes().byRow());
  }
  void operator()(const OutputRowsDesc &d) {
    rows("x", d.x, Effect::reads());
    step();
    result("y", d.y, Effect::writes().byRow());
  }
  void operator()(const CaptureDesc &d) {
    rows("x", d.x, Effect::reads().byRow());
    step(Effect::captures({Capture::Hidden}));
    layer();
  }
  void operator()(const LocateDesc &d) {
    rows("experts", numbers(d.topK), Effect::reads().byRow());
    placement(Role::Places, "places", k2rt_places_entries(d.experts, d.slots));
    result("slots", numbers(d.topK), Effect::writes().byRow());
  }
  void operator()(const RoutePlanDesc &d) {
    rows("slots", numbers(d.topK), Effect::reads());
    held(d.members * d.slots, d.experts);
    result("routes", numbers(3 * d.topK), Effect::writes());
    counts("sent", d.members, Role::Result, Effect::writes());
    counts("returned", d.members, Role::Result, Effect::writes());
  }
  void operator()(const PackDesc &d) {
    rows("x", d.x, Effect::reads().byRow());
    rows("weights", numbers(d.topK, DType::F32), Effect::reads().byRow());
    rows("routes", numbers(3 * d.topK), Effect::reads().byRow());
    messages(Role::Result, d.x.width * byteWidth(d.x.type), d.topK, Effect::writes());
  }
  void operator()(const UnpackDesc &d) {
    messages(Role::Activation, d.y.width * byteWidth(d.y.type), d.topK, Effect::reads());
    counts("came", d.members, Role::Activation, Effect::reads());
    result("y", d.y, Effect::writes().byRow());
    result("slots", numbers(d.topK), Effect::writes().byRow());
    result("weights", numbers(d.topK, DType::F32), Effect::writes().byRow());
  }
  void operator()(const ReturnPlanDesc &d) {
    rows("slots", numbers(d.topK), Effect::reads());
    counts("came", d.members, Role::Activation, Effect::reads());
    held(d.slots, d.experts);
    result("sums", numbers(2), Effect::writes());
    counts("back", d.members, Role::Result, Effect::writes());
  }
  /// Behind where the added rows lie.
  template <class Desc> void subtrees(const Desc &d) {
    rows("slots", numbers(d.topK), Effect::reads().byRow());
    rows("sums", numbers(2), Effect::reads().byRow());
    held(d.slots, d.experts);
    result("y", d.y, Effect::writes());
  }
  void operator()(const ReduceSubtreesDesc &d) {
    rows("x", d.x, Effect::destroys());
    permutation(Role::Permutation, d.slots, d.topK, Effect::reads());
    subtrees(d);
  }
  void operator()(const MergeSubtreesDesc &d) {
    rows("x", d.x, Effect::destroys());
    rows("routes", numbers(3 * d.topK), Effect::reads().byRow());
    subtrees(d);
  }
  void operator()(const CombineDesc &d) {
    rows("x", d.x, Effect::destroys());
    rows("routes", numbers(3 * d.topK), Effect::reads().byRow());
    rows("experts", numbers(d.topK), Effect::reads().byRow());
    result("y", d.y, Effect::writes().byRow());
  }
  void operator()(const TokenIdsDesc &) {
    step();
    result("ids", numbers(1), Effect::writes().byRow());
  }
  void operator()(const LookupDesc &d) {
    rows("ids", numbers(1), Effect::reads().byRow());
    weight("table", d.vocab * d.y.width, d.table);
    result("y", d.y, Effect::writes().byRow());
  }
  void operator()(const SharePlanDesc &d) {
    counts("sent", d.members, Role::Result, Effect::writes());
    counts("returned", d.members, Role::Result, Effect::writes());
  }
  void operator()(const CloseGapsDesc &d) {
    rows("x", {RowSpace::Token, d.y.width, d.y.width, d.y.type}, Effect::reads());
    counts("came", d.members, Role::Activation, Effect::reads());
    result("y", d.y, Effect::writes().byRow());
  }
  void operator()(const ShareReturnDesc &d) {
    counts("came", d.members, Role::Activation, Effect::reads());
    counts("back", d.members, Role::Result, Effect::writes());
  }
  void operator()(const JoinColumnsDesc &d) {
    rows("parts", d.x, Effect::reads());
    counts("returned", d.members, Role::Activation, Effect::reads());
    result("y", d.y, Effect::writes().byRow());
  }
  void operator()(const PartPlanDesc &d) {
    rows("slots", numbers(d.topK), Effect::reads());
    result("routes", numbers(3 * d.topK), Effect::writes());
    counts("sent", d.members, Role::Result, Effect::writes());
    counts("returned", d.members, Role::Result, Effect::writes());
  }
  void operator()(const AddPartsDesc &d) {
    rows("parts", d.x, Effect::reads());
    counts("returned", d.members, Role::Activation, Effect::reads());
    rows("part_routes", numbers(3 * d.topK), Effect::reads().byRow());
    rows("weights", numbers(d.topK, DType::F32), Effect::reads().byRow());
    result("y", d.y, Effect::writes());
  }
  Rows bestOf(const Rows &logits, int64_t blocks) const { return {logits.space, blocks, blocks, DType::I32}; }
  void operator()(const BlockArgmaxDesc &d) {
    rows("logits", d.logits, Effect::reads());
    result("best", bestOf(d.logits, d.blocks()), Effect::writes());
  }
  void operator()(const GreedySampleDesc &d) {
    rows("best", bestOf(d.logits, d.blocks), Effect::reads().byRow());
    rows("logits", d.logits, Effect::reads().byRow());
    step(Effect::captures({Capture::Samples}));
  }
};

} // namespace

std::vector<Operand> operands(const KernelDesc &desc) {
  ArgumentList arguments;
  std::visit(arguments, desc.body);
  return std::move(arguments.list);
}

} // namespace k2c
