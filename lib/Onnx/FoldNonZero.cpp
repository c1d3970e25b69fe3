//===- FoldNonZero.cpp - places where a condition holds -------------------------------===//
//
// NonZero is a leaf: element (c, i) is coordinate c of the i-th place. Its number of places is a size of its own, so
// that what is gathered at them has rows counted by it. Where such rows are added to data, they are counted by their
// coordinates instead:
//
//   sum over i of f(place(0, i), place(1, i)) = sum over k and t of (condition(k, t) ? f(k, t) : 0)
//
// Leaves on the way (the layers of an expert) get the coordinates that they depend on in place of the row.
//
//===----------------------------------------------------------------------===//
#include "FoldScatter.h"

#include <algorithm>

namespace k2c::onnx {

/// Bound of the leaves in each other between what is gathered and what is added: the layers of an expert are three.
constexpr int maxLeafDepth = 64;

Fold::Result Fold::nonZero(const Node &node) {
  const Folded &value = in(node, 0);
  const size_t rank = value.shape.size();
  std::vector<Term> coordinates;
  for (size_t i = 0; i < rank; i++)
    coordinates.push_back(reduceVariable(int(i), value.shape[i]));
  const Term condition = terms.negate(terms.equalsZero(at(value, coordinates)));
  LeafDefinition definition;
  definition.op = "nonzero";
  definition.bodies = {condition};
  definition.bodies.insert(definition.bodies.end(), value.shape.begin(), value.shape.end());
  definition.min = 0;
  const Term count = terms.size("nonzero." + std::to_string(int32_t(condition)) + "." + text(value.shape), 0);
  const Folded out = leafValue(node, ElementType::I64, {terms.number(double(rank)), count}, std::move(definition));
  if (terms.kind(out.element) == TermKind::Element)
    places.emplace(int32_t(count), terms.leaf(out.element));
  return std::vector<Folded>{out};
}

/// On where an index is a class, off elsewhere: an axis of classes is put in.
Fold::Result Fold::oneHot(const Node &node) {
  const Folded &which = in(node, 0);
  const std::optional<std::vector<int64_t>> depth = numbers(in(node, 1));
  const std::optional<std::vector<Term>> values = list(in(node, 2));
  const Expected<int64_t> axis = axisOf(node, -1, which.shape.size() + 1);
  if (!axis)
    return axis.error();
  if (!depth || depth->size() != 1 || (*depth)[0] < 1 || !values || values->size() != 2)
    return refuse(node, "its classes or its two values are not known before a run");
  std::vector<Term> shape = which.shape;
  shape.insert(shape.begin() + *axis, terms.number(double((*depth)[0])));
  std::vector<Term> indices = variables(shape);
  const Term own = indices[size_t(*axis)];
  indices.erase(indices.begin() + *axis);
  const Term index = at(which, indices);
  Term isOn = terms.equalsZero(terms.subtract(index, own));
  if (!terms.isNeverNegative(index)) // one below 0 counts from the end
    isOn = terms.either(isOn, terms.equalsZero(terms.plus(terms.subtract(index, own), double((*depth)[0]))));
  return std::vector<Folded>{{in(node, 2).type, shape, terms.select(isOn, (*values)[1], (*values)[0])}};
}

/// `term` with the coordinates `at` in place of the row that counts places; none: it depends on the row otherwise.
std::optional<Term> Fold::byCoordinates(Term term, Term row, Leaf place, const std::vector<Term> &at) {
  bool isPossible = true;
  const Term out = terms.rewrite(term, [&](Term inner) -> std::optional<Term> {
    if (!isPossible || terms.variables(inner) <= terms.tag(row))
      return inner;
    if (inner == row)
      isPossible = false;
    if (terms.kind(inner) != TermKind::Element)
      return inner == row ? std::optional(inner) : std::nullopt;
    std::vector<Term> indices;
    std::optional<size_t> axis;
    for (const Part &index : terms.parts(inner)) {
      isPossible = isPossible && !(index.term == row && axis);
      if (index.term == row)
        axis = indices.size();
      indices.push_back(index.term);
    }
    if (!axis)
      return std::nullopt;
    if (terms.leaf(inner) == place && axis == 1 && terms.asInteger(indices[0]))
      return at[size_t(*terms.asInteger(indices[0]))];
    const std::optional<ByCoordinates> leaf = leafByCoordinates(terms.leaf(inner), *axis, place);
    if (!leaf) {
      isPossible = false;
      return inner;
    }
    std::vector<Term> own;
    for (size_t i = 0; i < indices.size(); i++) {
      if (i != *axis) {
        const std::optional<Term> one = byCoordinates(indices[i], row, place, at);
        isPossible = isPossible && one;
        own.push_back(one.value_or(indices[i]));
        continue;
      }
      for (size_t c : leaf->kept)
        own.push_back(at[c]);
    }
    return terms.element(leaf->leaf, own);
  });
  return isPossible ? std::optional(out) : std::nullopt;
}

std::optional<Fold::ByCoordinates> Fold::leafByCoordinates(Leaf leaf, size_t axis, Leaf place) {
  LeafDefinition definition = terms.definition(leaf);
  const std::vector<Term> dims(terms.definition(place).bodies.begin() + 1, terms.definition(place).bodies.end());
  const size_t rank = definition.shape.size();
  const bool isAlong = definition.op == "softmax" || definition.op == "log-softmax" ||
                       definition.op == "topk-indices" || definition.op == "running-sum";
  const bool isWhole = definition.op == "sum" || definition.op == "max" || definition.op == "min" ||
                       definition.op == "shared" || (isAlong && definition.numbers[0] != int64_t(axis));
  if (!isWhole || rank + dims.size() > size_t(firstReduced) || leafDepth >= maxLeafDepth)
    return std::nullopt;
  const auto [known, isNew] = leavesByCoordinates.try_emplace(std::tuple(leaf, axis, place), std::nullopt);
  if (!isNew)
    return known->second;
  // The axis becomes a variable of its own, and the coordinates stand behind the other indices.
  const Term row = terms.variable(rowOfPlaces, definition.shape[axis]);
  std::vector<Term> byPosition, coordinates, shape;
  for (size_t i = 0; i < rank; i++) {
    byPosition.push_back(i == axis ? row : terms.variable(int32_t(shape.size()), definition.shape[i]));
    if (i != axis)
      shape.push_back(definition.shape[i]);
  }
  for (size_t c = 0; c < dims.size(); c++)
    coordinates.push_back(terms.variable(int32_t(shape.size() + c), dims[c]));
  for (Term &body : definition.bodies) {
    leafDepth++;
    const std::optional<Term> own = byCoordinates(terms.substitute(body, byPosition), row, place, coordinates);
    leafDepth--;
    if (!own)
      return std::nullopt;
    body = *own;
  }
  const ByCoordinates out = placed(std::move(definition), axis, shape, coordinates);
  leavesByCoordinates[std::tuple(leaf, axis, place)] = out;
  return out;
}

/// The leaf with those coordinates that its bodies have, in the place of the axis.
Fold::ByCoordinates Fold::placed(LeafDefinition definition, size_t axis, const std::vector<Term> &shape,
                                 const std::vector<Term> &coordinates) {
  ByCoordinates out;
  const std::vector<Term> used = terms.variablesOf(definition.bodies);
  for (size_t c = 0; c < coordinates.size(); c++)
    if (std::find(used.begin(), used.end(), coordinates[c]) != used.end())
      out.kept.push_back(c);
  std::vector<Term> byPosition, whole(shape.begin(), shape.begin() + int64_t(axis));
  for (size_t c : out.kept)
    whole.push_back(terms.part(coordinates[c], 0));
  whole.insert(whole.end(), shape.begin() + int64_t(axis), shape.end());
  for (size_t i = 0; i < shape.size(); i++)
    byPosition.push_back(terms.variable(int32_t(i < axis ? i : i + out.kept.size()), shape[i]));
  byPosition.resize(shape.size() + coordinates.size(), terms.number(0));
  for (size_t k = 0; k < out.kept.size(); k++)
    byPosition[shape.size() + out.kept[k]] = terms.variable(int32_t(axis + k), terms.part(coordinates[out.kept[k]], 0));
  for (Term &body : definition.bodies)
    body = terms.substitute(body, byPosition);
  if (!definition.numbers.empty() && definition.numbers[0] > int64_t(axis))
    definition.numbers[0] += int64_t(out.kept.size()) - 1;
  definition.shape = whole;
  out.leaf = terms.leafOf(std::move(definition));
  return out;
}

/// Updates that are counted by the places where a condition holds, counted by coordinates; false: they are not.
bool Fold::overCoordinates(Scatter &scatter) {
  const auto found = scatter.rows.size() == 1 ? places.find(int32_t(scatter.rows[0])) : places.end();
  if (found == places.end())
    return false;
  const LeafDefinition place = terms.definition(found->second);
  const Term row = reduceVariable(0, scatter.rows[0]);
  const std::vector<Term> dims(place.bodies.begin() + 1, place.bodies.end());
  std::vector<Term> coordinates, written;
  for (size_t c = 0; c < dims.size(); c++)
    coordinates.push_back(reduceVariable(int(c), dims[c]));
  const std::optional<Term> update = byCoordinates(scatter.update, row, found->second, coordinates);
  for (Term index : scatter.written)
    if (const std::optional<Term> own = byCoordinates(index, row, found->second, coordinates))
      written.push_back(*own);
  if (!update || written.size() != scatter.written.size())
    return false;
  scatter.update = *update;
  scatter.written = written;
  scatter.rows = dims;
  scatter.condition = place.bodies[0];
  return true;
}

} // namespace k2c::onnx
