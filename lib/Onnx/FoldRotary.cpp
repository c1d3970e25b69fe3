//===- FoldRotary.cpp - pairs turned by angles of their position --------------------===//
//
// RotaryEmbedding of ai.onnx and of com.microsoft, and what GroupQueryAttention does with its tables. Element d of a
// row stands for x; pairs are its elements i and i + width / 2, or 2 i and 2 i + 1.
//
//===----------------------------------------------------------------------===//
#include "FoldAttention.h"

#include "base/Utf8.h"

namespace k2c::onnx {

/// Element d of `x`, whose first `width` elements are turned. Tables have a column for each pair.
Term Fold::rotated(const std::function<Term(Term)> &x, Term d, int64_t width, bool isInterleaved,
                   const std::function<Term(Term column)> &cosine, const std::function<Term(Term column)> &sine) {
  const double half = double(width / 2);
  const Term pair = isInterleaved ? terms.floorDivide(d, terms.number(2)) : Term{};
  const Term isSecond = isInterleaved ? terms.atLeastZero(terms.plus(terms.subtract(d, terms.scale(pair, 2)), -1))
                                      : terms.atLeastZero(terms.plus(d, -half));
  const double apart = isInterleaved ? 1 : half;
  const auto turned = [&](bool second) {
    const Term own = isInterleaved ? pair : second ? terms.plus(d, -half) : d;
    const Term other = x(terms.plus(d, second ? -apart : apart));
    return terms.sum(0,
                     {{terms.multiply(x(d), cosine(own)), 1}, {terms.multiply(other, sine(own)), second ? 1.0 : -1.0}});
  };
  const Term inside = terms.select(isSecond, turned(true), turned(false));
  return terms.select(terms.atLeastZero(terms.plus(terms.scale(d, -1), double(width - 1))), inside, x(d));
}

/// A value of rank 3, its last axis heads after each other, or of rank 4, [batch, heads, rows, width], as heads.
Expected<Fold::Heads> Fold::headsOf(const Node &node, const Folded &value, int64_t heads) {
  Heads out;
  if (value.shape.size() == 4) {
    out.heads = terms.asInteger(value.shape[1]).value_or(0);
    out.rows = value.shape[2];
    out.width = value.shape[3];
    out.at = [this, value](Term b, Term h, Term s, Term d) { return at(value, {b, h, s, d}); };
    if (out.heads < 1)
      return refuse(node, "an operand of shape " + text(value.shape) + " has no heads that are known");
    return out;
  }
  const std::optional<int64_t> columns = value.shape.size() == 3 ? terms.asInteger(value.shape[2]) : std::nullopt;
  if (!columns || heads < 1 || *columns % heads)
    return refuse(node, "an operand of shape " + text(value.shape) + " is not " + std::to_string(heads) + " heads");
  out.heads = heads;
  out.rows = value.shape[1];
  out.width = terms.number(double(*columns / heads));
  const double width = double(*columns / heads);
  out.at = [this, value, width](Term b, Term h, Term s, Term d) {
    return at(value, {b, s, terms.sum(0, {{h, width}, {d, 1}})});
  };
  return out;
}

/// Heads as a value of the shape that they were read from: rank 3 or 4.
Folded Fold::ofHeads(ElementType type, Term batch, const Heads &heads, size_t rank) {
  const Term count = terms.number(double(heads.heads));
  if (rank == 4) {
    const std::vector<Term> shape{batch, count, heads.rows, heads.width};
    const std::vector<Term> i = variables(shape);
    return Folded{type, shape, heads.at(i[0], i[1], i[2], i[3])};
  }
  const std::vector<Term> shape{batch, heads.rows, terms.multiply(count, heads.width)};
  const std::vector<Term> i = variables(shape);
  return Folded{type, shape,
                heads.at(i[0], terms.floorDivide(i[2], heads.width), i[1], terms.modulo(i[2], heads.width))};
}

/// RotaryEmbedding: of ai.onnx (x, cosines, sines, positions), of com.microsoft (x, positions, cosines, sines).
Fold::Result Fold::rotaryEmbedding(const Node &node) {
  const bool isStandard = node.domain.empty();
  if (flag(node, "is_packed_batching", false) || real(node, "scale", 1) != 1)
    return refuse(node, "is_packed_batching and scale are not understood");
  const Folded &x = in(node, 0), &cosines = in(node, isStandard ? 1 : 2), &sines = in(node, isStandard ? 2 : 3);
  const Folded *const positions = has(node, isStandard ? 3 : 1) ? &in(node, isStandard ? 3 : 1) : nullptr;
  const std::optional<int64_t> pairs = cosines.shape.empty() ? std::nullopt : terms.asInteger(cosines.shape.back());
  if (!pairs || cosines.shape != sines.shape || cosines.shape.size() != (positions ? 2 : 3))
    return refuse(node, "tables of shape " + text(cosines.shape) + " and " + text(sines.shape) + " are not understood");
  const int64_t columns = x.shape.size() == 3 ? terms.asInteger(x.shape[2]).value_or(0) : 0;
  int64_t heads = integer(node, "num_heads", 0), width = integer(node, "rotary_embedding_dim", 0);
  if (heads == 0 && width == 0 && !isStandard) // heads are as wide as what is turned
    heads = columns / std::max<int64_t>(2 * *pairs, 1);
  Expected<Heads> of = headsOf(node, x, heads);
  if (!of)
    return of.takeError();
  const int64_t all = terms.asInteger(of->width).value_or(0);
  width = width != 0 ? width : all;
  if (width != 2 * *pairs || width > all)
    return refuse(node, "turns " + std::to_string(width) + " of " + std::to_string(all) + " columns by tables of " +
                            std::to_string(*pairs));
  if (positions && positions->shape.size() != 2 && (positions->shape.size() != 1 || isStandard))
    return refuse(node, "positions of shape " + text(positions->shape) + " are not understood");
  const auto row = [&](const Folded &table, Term b, Term s, Term column) {
    if (!positions)
      return at(table, {b, s, column});
    if (positions->shape.size() == 1) // the position of the first row
      return at(table, {terms.add(at(*positions, {terms.number(0)}), s), column});
    return at(table, {at(*positions, {b, s}), column});
  };
  Heads out = *of;
  const bool isInterleaved = flag(node, "interleaved", false);
  out.at = [&](Term b, Term h, Term s, Term d) {
    return rotated([&](Term e) { return of->at(b, h, s, e); }, d, width, isInterleaved,
                   [&](Term column) { return row(cosines, b, s, column); },
                   [&](Term column) { return row(sines, b, s, column); });
  };
  return std::vector<Folded>{ofHeads(x.type, x.shape[0], out, x.shape.size())};
}

} // namespace k2c::onnx
