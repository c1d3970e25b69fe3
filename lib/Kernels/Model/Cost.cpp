//===- Cost.cpp - Counting: contractions by kind, bytes by operand ------------===//
//
// A visitor says of each kernel how many multiply-adds it does and in what it differs from "every element of every
// operand once": a lookup reads rows of its table, a grouped linear the experts that are hit, an append writes only
// new tokens. The bytes then follow from operands(desc) by role alone, so that an operand added to a kernel is counted
// without a change here.
//
// costRule says the same in numbers for readers that have no KernelDesc. It is not a second set of formulas but the
// differences of count() at four loads, (rows, context, keys) = (1, 0, 0), (2, 0, 0), (1, 1, 0) and (1, 0, 1): from
// one row on, count() is linear in each. The weights of routed experts are the exception, since the experts that N
// tokens hit grow as 1 - (1 - k / E)^N; they are taken out of the differences and become a term of their own.
//
//===----------------------------------------------------------------------===//
#include "k2c/Kernels/Cost.h"
#include <algorithm>
#include <cmath>

namespace k2c {

namespace {

double doubled(double multiplyAdds) { return 2 * multiplyAdds; }

/// Multiply-adds of a body, and how its operands differ from "every element once".
struct Counter {
  const Load &load;
  double rows = double(load.rows);
  double slots = 1; ///< slots a token
  double multiplyAdds = 0;
  double weightShare = 1;   ///< of the weights that is read
  double tableElements = 0; ///< read in place of the whole weight or table, when > 0
  double planeTokens = load.keys;
  double rowElements = 0; ///< of an activation's row, at most so many are read, when > 0

  void attention(double heads, double key, double value) { multiplyAdds = heads * (key + value) * load.context * rows; }

  void operator()(const EmbedDesc &d) { tableElements = rows * double(d.hidden); }
  void operator()(const LinearDesc &d) {
    slots = double(d.slotsPerToken);
    bool sparse = d.grouped || d.x.space == RowSpace::Slot;
    multiplyAdds = rows * (sparse ? slots : 1) * double(d.w.n) * double(d.w.k);
    if (d.grouped)
      weightShare = hitExperts(d.w.count, d.slotsPerToken, rows) / double(d.w.count);
  }
  void operator()(const HeadLinearDesc &d) { multiplyAdds = rows * double(d.heads * d.w.n * d.w.k); }
  void operator()(const RotaryDesc &d) { tableElements = rows * double(d.count); }
  void operator()(const AppendDesc &) { planeTokens = rows; }
  void operator()(const GqaAttentionDesc &d) { attention(double(d.shape.heads), double(d.keyDim), double(d.valueDim)); }
  void operator()(const AbsorbedAttentionDesc &d) {
    attention(double(d.shape.heads), double(d.latent + d.rope), double(d.latent));
  }
  void operator()(const ExpandedAttentionDesc &d) {
    attention(double(d.shape.heads), double(d.nope + d.rope), double(d.value));
    multiplyAdds += double(d.shape.heads * d.latent * (d.nope + d.value)) * load.keys;
  }
  void operator()(const PermuteDesc &d) { slots = double(d.topK); }
  void operator()(const UnpermuteDesc &d) { slots = double(d.topK); }
  void operator()(const RowwiseDesc &d) { slots = double(d.slotsPerToken); }
  // No contraction, and every element of every operand once.
  void operator()(const RmsNormDesc &) {}
  void operator()(const RoutingDesc &) {}
  void operator()(const PermutationDesc &) {}
  void operator()(const OutputRowsDesc &) {}
  void operator()(const CaptureDesc &) {}
  void operator()(const LocateDesc &) {}
  void operator()(const RoutePlanDesc &) {}
  void operator()(const PackDesc &) {}
  void operator()(const UnpackDesc &) {}
  void operator()(const ReturnPlanDesc &) {}
  void operator()(const ReduceSubtreesDesc &d) { slots = double(d.topK); }
  void operator()(const MergeSubtreesDesc &) {}
  void operator()(const CombineDesc &) {}
  void operator()(const TokenIdsDesc &) {}
  void operator()(const LookupDesc &d) { tableElements = rows * double(d.y.width); }
  void operator()(const SharePlanDesc &) {}
  void operator()(const CloseGapsDesc &) {}
  void operator()(const ShareReturnDesc &) {}
  void operator()(const JoinColumnsDesc &) {}
  void operator()(const PartPlanDesc &) {}
  void operator()(const AddPartsDesc &) {}
  void operator()(const BlockArgmaxDesc &) {}
  void operator()(const GreedySampleDesc &d) { rowElements = double(d.blocks); }

  double rowsOf(RowSpace space) const { return space == RowSpace::Slot ? rows * slots : rows; }

  double activation(const Operand &operand) const {
    double width = double(operand.rows.width);
    if (rowElements > 0)
      width = std::min(width, rowElements);
    return (double(operand.elements) + rowsOf(operand.rows.space) * width) * double(byteWidth(operand.type));
  }
};

Bytes rounded(double bytes) { return Bytes(std::llround(bytes)); }

} // namespace

Cost &Cost::operator+=(const Cost &other) {
  flops += other.flops;
  weights += other.weights;
  cache += other.cache;
  read += other.read;
  written += other.written;
  return *this;
}

double hitExperts(int64_t experts, int64_t topK, double tokens) {
  double e = double(experts);
  return e * (1 - std::pow(1 - double(topK) / e, tokens));
}

Cost count(const KernelDesc &desc, const Load &load, WeightLayout layout) {
  Counter counter{load};
  std::visit(counter, desc.body);
  Cost cost;
  cost.flops = Flops(doubled(counter.multiplyAdds));
  for (const Operand &operand : operands(desc)) {
    double width = double(byteWidth(operand.type));
    switch (operand.role) {
    case Operand::Role::Weight:
    case Operand::Role::Table: {
      bool some = counter.tableElements > 0;
      double whole = double(weightBytes(operand, layout)) * counter.weightShare;
      cost.weights += rounded(some ? counter.tableElements * width : whole);
      break;
    }
    case Operand::Role::Plane:
      cost.cache += rounded(counter.planeTokens * double(operand.rows.width) * width);
      break;
    case Operand::Role::Activation:
    case Operand::Role::Permutation:
      cost.read += rounded(counter.activation(operand));
      break;
    case Operand::Role::Result:
      cost.written += rounded(counter.activation(operand));
      break;
    case Operand::Role::Step:
    case Operand::Role::Layer:
    case Operand::Role::Places: // looked up by the choices of few rows, and of all experts together small
    case Operand::Role::Held:
    case Operand::Role::Subtrees:
      break;
    }
  }
  return cost;
}

/// Rows of the form that a body is limited to.
static CountedRows formRows(FormFilter filter) {
  return filter == FormFilter::Expanded   ? CountedRows::Expanded
         : filter == FormFilter::Absorbed ? CountedRows::Absorbed
                                          : CountedRows::Token;
}

static CountedRows countedRows(const KernelDesc &desc) {
  if (const auto *linear = std::get_if<HeadLinearDesc>(&desc.body))
    return formRows(linear->rows);
  if (const auto *attention = std::get_if<AbsorbedAttentionDesc>(&desc.body))
    return formRows(attention->rows);
  if (const auto *attention = std::get_if<ExpandedAttentionDesc>(&desc.body))
    return formRows(attention->rows);
  for (const Operand &operand : operands(desc))
    if (operand.rows.space == RowSpace::Output)
      return CountedRows::Output;
  return CountedRows::Token;
}

static double allBytes(const Cost &cost) {
  return double(cost.weights.value) + double(cost.cache.value) + double(cost.read.value) + double(cost.written.value);
}

const char *nameOf(CountedRows rows) {
  constexpr const char *names[] = {"token", "output", "expanded", "absorbed"};
  return names[size_t(rows)];
}

CostRule costRule(const KernelDesc &desc, WeightLayout layout) {
  // From a row on, a count is linear in each part of the load; grouped weights are not, and known by their operand.
  Cost one = count(desc, {1, 0, 0}, layout), two = count(desc, {2, 0, 0}, layout);
  Cost context = count(desc, {1, 1, 0}, layout), key = count(desc, {1, 0, 1}, layout);
  CostRule rule;
  rule.rows = countedRows(desc);
  rule.flopsPerRow = one.flops.value;
  rule.flopsPerRowKey = context.flops.value - one.flops.value;
  rule.flopsPerKey = key.flops.value - one.flops.value;
  rule.bytesPerKey = allBytes(key) - allBytes(one);
  const auto *linear = std::get_if<LinearDesc>(&desc.body);
  if (linear && linear->grouped) {
    rule.experts = linear->w.count;
    rule.topK = linear->slotsPerToken;
    for (const Operand &operand : operands(desc))
      if (operand.role == Operand::Role::Weight)
        rule.expertBytes += double(weightBytes(operand, layout));
    one.weights = two.weights = Bytes(0);
  }
  rule.bytesPerRow = allBytes(two) - allBytes(one);
  rule.fixedBytes = allBytes(one) - rule.bytesPerRow;
  return rule;
}

Bytes bytesOfRow(const KernelDesc &desc) {
  Cost cost = count(desc, {1, 0, 0});
  bool isLookup = std::holds_alternative<EmbedDesc>(desc.body) || std::holds_alternative<LookupDesc>(desc.body) ||
                  std::holds_alternative<RotaryDesc>(desc.body);
  return cost.read + cost.written + cost.cache + (isLookup ? cost.weights : Bytes(0));
}

} // namespace k2c
