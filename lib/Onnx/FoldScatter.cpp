//===- FoldScatter.cpp - ops that write elements into others ------------------------===//
//
// Rows of updates are written where indices say. Where every index is an affine function of its own part of the row,
//
//   out(x) = update(x - offset) where that is a row, else data(x)
//
// and nothing is left but a choice. Where indices are data, a leaf "scatter-elements" says so: the update of the last
// row for which its condition holds, else the data. Updates that are added are a sum over all rows. Rows that are the
// places where a condition holds (NonZero) are counted by their coordinates, so that experts that gather their tokens,
// work on these and add them where they belong are the same as ones that work on all tokens (FoldNonZero.cpp).
//
//===----------------------------------------------------------------------===//
#include "FoldScatter.h"

#include "base/Utf8.h"
#include <algorithm>
#include <cmath>

namespace k2c::onnx {

/// Of an index that is offset + step * row, the row that writes to `at`, and the condition that there is one.
std::optional<std::pair<Term, Term>> Fold::inverse(Term index, Term row, Term at) {
  double step = 0;
  const std::vector<Part> parts =
      terms.kind(index) == TermKind::Sum ? terms.parts(index) : std::vector<Part>{{index, 1}};
  for (const Part &part : parts)
    step = part.term == row ? part.factor : step;
  const Term offset = terms.subtract(index, terms.scale(row, step));
  if (step < 1 || step != std::floor(step) || terms.variables(offset) > firstReduced)
    return std::nullopt;
  const Term distance = terms.subtract(at, offset), size = terms.part(row, 0);
  const Term found = terms.floorDivide(distance, terms.number(step));
  const Term isThere = terms.both(
      terms.both(terms.atLeastZero(distance), terms.atLeastZero(terms.plus(terms.subtract(size, found), -1))),
      terms.equalsZero(terms.subtract(distance, terms.scale(found, step))));
  return std::pair(found, isThere);
}

/// Solves indices for rows: what row writes to an element, where each index has a row of its own.
void Fold::solve(Scatter &scatter) {
  for (size_t i = 0; i < scatter.rows.size(); i++) {
    scatter.found.push_back(terms.number(0));
    if (terms.asInteger(scatter.rows[i]) != 1)
      scatter.open.push_back(reduceVariable(int(i), scatter.rows[i]));
  }
  for (size_t c = 0; c < scatter.written.size(); c++) {
    std::optional<std::pair<Term, Term>> own;
    for (size_t k = 0; k < scatter.open.size() && !own; k++)
      if ((own = inverse(scatter.written[c], scatter.open[k], scatter.at[c]))) {
        scatter.found[size_t(terms.tag(scatter.open[k]) - firstReduced)] = own->first;
        scatter.condition = terms.both(scatter.condition, own->second);
        scatter.open.erase(scatter.open.begin() + int64_t(k));
      }
    if (!own)
      scatter.condition =
          terms.both(scatter.condition, terms.equalsZero(terms.subtract(scatter.written[c], scatter.at[c])));
  }
  // Rows that are known take their places; those that are not are counted from the first on.
  std::vector<Term> byPosition = variables(scatter.data.shape);
  while (byPosition.size() < size_t(firstReduced))
    byPosition.push_back(terms.number(0));
  byPosition.insert(byPosition.end(), scatter.found.begin(), scatter.found.end());
  for (size_t k = 0; k < scatter.open.size(); k++) {
    const Term renamed = reduceVariable(int(k), terms.part(scatter.open[k], 0));
    byPosition[size_t(terms.tag(scatter.open[k]))] = renamed;
    scatter.open[k] = renamed;
  }
  scatter.update = terms.substitute(scatter.update, byPosition);
  scatter.condition = terms.substitute(scatter.condition, byPosition);
}

/// The sum of updates over the rows that write to an element. Factors that only depend on where in an update the
/// element is (what an expert gives) stand before it, so that the sum is one of weights, as where all experts see all
/// tokens.
Term Fold::summed(const Node &node, const Scatter &scatter) {
  const auto [factor, product] = terms.splitFactor(scatter.update);
  const std::vector<Part> parts =
      terms.kind(product) == TermKind::Product ? terms.parts(product) : std::vector<Part>{{product, 1}};
  Term inside = terms.number(factor), outside = terms.number(1);
  for (const Part &part : parts) {
    bool isOfUpdate = false;
    for (Term variable : terms.variablesOf({part.term}))
      isOfUpdate = isOfUpdate || std::find(scatter.at.begin(), scatter.at.end(), variable) == scatter.at.end();
    const bool isBefore = isOfUpdate && terms.variables(part.term) <= firstReduced;
    Term &side = isBefore ? outside : inside;
    side = terms.multiply(side, terms.power(part.term, part.factor));
  }
  const Term body = terms.select(scatter.condition, inside, terms.number(0));
  // Axes that the sum does not depend on have one index.
  std::vector<Term> shape = scatter.data.shape, sizes;
  const std::vector<Term> own = variables(shape), used = terms.variablesOf({body});
  for (size_t i = 0; i < shape.size(); i++)
    if (std::find(used.begin(), used.end(), own[i]) == used.end())
      shape[i] = terms.number(1);
  for (Term row : scatter.open)
    sizes.push_back(terms.part(row, 0));
  return terms.multiply(outside, contraction(node, scatter.data.type, shape, body, sizes).element);
}

/// Whether at most one row of several writes to an element: the one in which an expert is chosen.
bool Fold::writesOnce(const Scatter &scatter) const {
  const Term condition = scatter.condition;
  if (scatter.open.size() != 1 || terms.kind(condition) != TermKind::EqualsZero)
    return false;
  const Term of = terms.part(condition, 0);
  const std::vector<Part> parts = terms.kind(of) == TermKind::Sum ? terms.parts(of) : std::vector<Part>{{of, 1}};
  const Term element = parts[0].term;
  if (parts.size() != 1 || terms.kind(element) != TermKind::Element)
    return false;
  const LeafDefinition &definition = terms.definition(terms.leaf(element));
  return definition.op == "topk-indices" && terms.part(element, size_t(definition.numbers[0])) == scatter.open[0];
}

/// The element behind all updates.
Expected<Term> Fold::scattered(const Node &node, Scatter scatter) {
  static const char *const known[] = {"none", "add", "mul", "max", "min"};
  if (std::find(std::begin(known), std::end(known), scatter.reduction) == std::end(known))
    return refuse(node, "reduction '" + shortened(scatter.reduction) + "' is not understood");
  const bool isOfChosen = overCoordinates(scatter);
  solve(scatter);
  const Term before = scatter.data.element;
  if (scatter.open.empty()) { // each row that writes is known
    Term update = scatter.update;
    if (scatter.reduction == "add")
      update = terms.add(before, update);
    else if (scatter.reduction == "mul")
      update = terms.multiply(before, update);
    else if (scatter.reduction != "none")
      update = extreme(scatter.reduction == "max", before, update);
    return terms.select(scatter.condition, update, before);
  }
  const bool isSum = scatter.reduction == "none" && before == terms.number(0) && isOfChosen && writesOnce(scatter);
  if (scatter.reduction == "add" || isSum)
    return terms.add(before, summed(node, scatter));
  if (scatter.reduction != "none" || isOfChosen)
    return refuse(node, "reduction '" + scatter.reduction + "' by indices that are data is not understood");
  LeafDefinition definition{"scatter-elements", {before, scatter.condition, scatter.update}, {}, {}, false, {}, -1};
  return leafValue(node, scatter.data.type, scatter.data.shape, std::move(definition)).element;
}

Fold::Result Fold::scatterElements(const Node &node) {
  const Folded &data = in(node, 0), &which = in(node, 1), &updates = in(node, 2);
  const Expected<int64_t> given = axisOf(node, 0, data.shape.size());
  if (!given)
    return given.error();
  const int64_t axis = *given;
  if (which.shape.size() != data.shape.size() || updates.shape != which.shape)
    return refuse(node, "indices of shape " + text(which.shape) + " and updates of shape " + text(updates.shape) +
                            " do not fit data of shape " + text(data.shape));
  // Along other axes than the one written to, indices stand where they write.
  const std::vector<Term> own = variables(data.shape);
  std::vector<Term> row = own;
  row[size_t(axis)] = reduceVariable(0, which.shape[size_t(axis)]);
  Scatter scatter(data, terms.number(1), word(node, "reduction", "none"));
  scatter.rows = {which.shape[size_t(axis)]};
  scatter.at = {own[size_t(axis)]};
  scatter.update = at(updates, row);
  const Expected<Term> index = fromEnd(node, at(which, row), data.shape[size_t(axis)]);
  if (!index)
    return index.error();
  scatter.written.push_back(*index);
  Expected<Term> element = scattered(node, scatter);
  if (!element)
    return element.takeError();
  Term out = *element;
  for (size_t i = 0; i < own.size(); i++) // elsewhere nothing is written
    if (int64_t(i) != axis && which.shape[i] != data.shape[i])
      out = terms.select(terms.atLeastZero(terms.plus(terms.subtract(which.shape[i], own[i]), -1)), out, data.element);
  return std::vector<Folded>{{data.type, data.shape, out}};
}

Fold::Result Fold::scatterNd(const Node &node) {
  const Folded &data = in(node, 0), &which = in(node, 1), &updates = in(node, 2);
  const std::optional<int64_t> width = which.shape.empty() ? std::nullopt : terms.asInteger(which.shape.back());
  const size_t rank = data.shape.size();
  if (!width || *width < 1 || size_t(*width) > rank)
    return refuse(node, "indices of shape " + text(which.shape) + " do not fit data of shape " + text(data.shape));
  const std::vector<Term> own = variables(data.shape);
  Scatter scatter(data, terms.number(1), word(node, "reduction", "none"));
  scatter.rows.assign(which.shape.begin(), which.shape.end() - 1);
  std::vector<Term> expected = scatter.rows;
  expected.insert(expected.end(), data.shape.begin() + *width, data.shape.end());
  if (updates.shape != expected)
    return refuse(node, "updates of shape " + text(updates.shape) + " are not of shape " + text(expected));
  std::vector<Term> row;
  for (size_t i = 0; i < scatter.rows.size(); i++)
    row.push_back(reduceVariable(int(i), scatter.rows[i]));
  std::vector<Term> updated = row;
  updated.insert(updated.end(), own.begin() + *width, own.end());
  scatter.update = at(updates, updated);
  for (int64_t c = 0; c < *width; c++) {
    std::vector<Term> indices = row;
    indices.push_back(terms.number(double(c)));
    const Expected<Term> index = fromEnd(node, at(which, indices), data.shape[size_t(c)]);
    if (!index)
      return index.error();
    scatter.written.push_back(*index);
    scatter.at.push_back(own[size_t(c)]);
  }
  Expected<Term> element = scattered(node, scatter);
  if (!element)
    return element.takeError();
  return std::vector<Folded>{{data.type, data.shape, *element}};
}

} // namespace k2c::onnx
