//===- Operands.cpp - The argument list of each kernel ------------------------===//
//
// The one place that turns a description into the order of its arguments: lowering passes pointers in it, emitted
// kernels and evaluate() read them in it.
//
//===----------------------------------------------------------------------===//
#include "k2c/Kernels/KernelDesc.h"
#include <utility>

namespace k2c {

namespace {

using Role = Operand::Role;

/// Collects arguments in order.
struct ArgumentList {
  std::vector<Operand> list;

  Operand &add(std::string name, Role role, DType type) {
    list.emplace_back();
    list.back().name = std::move(name);
    list.back().role = role;
    list.back().type = type;
    return list.back();
  }
  void rows(std::string name, const Rows &rows, Role role = Role::Activation) {
    add(std::move(name), role, rows.type).rows = rows;
  }
  void result(std::string name, const Rows &r) { rows(std::move(name), r, Role::Result); }
  void weight(std::string name, int64_t elements, DType type) {
    add(std::move(name), Role::Weight, type).elements = elements;
  }
  void weight(std::string name, const Matrix &matrix) {
    add(std::move(name), Role::Weight, matrix.type).matrix = matrix;
  }
  void plane(std::string name, int64_t width, DType type) {
    add(std::move(name), Role::Plane, type).rows = Rows{RowSpace::Token, width, width, type};
  }
  void plan(Role role, int64_t experts, int64_t topK) {
    Operand &operand = add("plan", role, DType::I32);
    operand.elements = experts + 1;
    operand.rows = Rows{RowSpace::Token, 2 * topK, 2 * topK, DType::I32};
  }
  void step() { add("step", Role::Step, DType::U8); }
  void layer() { add("layer", Role::Layer, DType::I64); }
  void attentionTail(const AttentionShape &shape, const Rows &o) {
    step();
    if (shape.maxLogit)
      layer();
    result("o", o);
  }

  void operator()(const EmbedDesc &d) {
    weight("table", d.vocab * d.hidden, d.table);
    step();
    result("y", d.y);
  }
  void operator()(const RmsNormDesc &d) {
    rows("x", d.x);
    weight("weight", d.width(), d.weight);
    result("y", d.y);
  }
  void operator()(const LinearDesc &d) {
    rows("x", d.x);
    if (d.normEps > 0)
      weight("norm", d.x.width, d.normWeight);
    weight("w", d.w);
    if (d.epilogue.bias)
      weight("bias", d.w.count * d.w.n, d.epilogue.biasType);
    if (d.epilogue.weighted)
      rows("slot_weights", Rows{RowSpace::Token, d.slotsPerToken, d.slotsPerToken, DType::F32});
    if (d.epilogue.residual)
      rows("residual", d.residual);
    if (d.grouped)
      plan(Role::Plan, d.w.count, d.slotsPerToken);
    result("y", d.y);
  }
  void operator()(const HeadLinearDesc &d) {
    rows("x", d.x);
    weight("w", d.w);
    result("y", d.y);
  }
  void operator()(const RotaryDesc &d) {
    rows("x", d.x);
    add("table", Role::Table, DType::F32).elements = d.positions * d.count;
    step();
    result("y", d.y);
  }
  void operator()(const AppendDesc &d) {
    for (size_t i = 0; i < d.x.size(); ++i)
      rows("x" + std::to_string(i), d.x[i]);
    for (size_t i = 0; i < d.planes.size(); ++i)
      plane("plane" + std::to_string(i), d.x[i].width, d.planes[i]);
    step();
  }
  void operator()(const GqaAttentionDesc &d) {
    rows("q", d.q);
    plane("k", d.kvHeads * d.keyDim, d.shape.cache);
    plane("v", d.kvHeads * d.valueDim, d.shape.cache);
    attentionTail(d.shape, d.o);
  }
  void operator()(const AbsorbedAttentionDesc &d) {
    rows("q_latent", d.qLatent);
    rows("q_rope", d.qRope);
    plane("latent", d.latent, d.shape.cache);
    plane("rope", d.rope, d.shape.cache);
    attentionTail(d.shape, d.o);
  }
  void operator()(const ExpandedAttentionDesc &d) {
    rows("q", d.q);
    plane("latent", d.latent, d.shape.cache);
    plane("rope", d.rope, d.shape.cache);
    weight("uk", d.uk);
    weight("uv", d.uv);
    attentionTail(d.shape, d.o);
  }
  void operator()(const SelectDesc &d) {
    rows("logits", d.logits);
    if (d.bias)
      weight("bias", d.experts, DType::F32);
    step();
    layer();
    result("experts", Rows{d.logits.space, d.topK, d.topK, DType::I32});
    result("weights", Rows{d.logits.space, d.topK, d.topK, DType::F32});
  }
  void operator()(const DispatchDesc &d) {
    rows("experts", Rows{RowSpace::Token, d.topK, d.topK, DType::I32});
    plan(Role::Result, d.experts, d.topK);
  }
  void operator()(const GatherDesc &d) {
    rows("x", d.x);
    plan(Role::Plan, d.experts, d.topK);
    result("y", d.y);
  }
  void operator()(const CombineDesc &d) {
    rows("x", d.x);
    plan(Role::Plan, d.experts, d.topK);
    rows("experts", Rows{RowSpace::Token, d.topK, d.topK, DType::I32});
    result("y", d.y);
  }
  void operator()(const AddDesc &d) {
    rows("a", d.a);
    rows("b", d.b);
    result("y", d.y);
  }
  void operator()(const ClipDesc &d) {
    rows("x", d.x);
    result("y", d.y);
  }
  void operator()(const GatedActDesc &d) {
    rows("x", d.x);
    result("y", d.y);
  }
  void operator()(const WantRowsDesc &d) {
    rows("x", d.x);
    step();
    result("y", d.y);
  }
  void operator()(const ObserveDesc &d) {
    rows("x", d.x);
    step();
    layer();
  }
};

} // namespace

std::vector<Operand> operands(const KernelDesc &desc) {
  ArgumentList arguments;
  std::visit(arguments, desc.body);
  return std::move(arguments.list);
}

} // namespace k2c
