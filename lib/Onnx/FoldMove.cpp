//===- FoldMove.cpp - ops that move elements ---------------------------------------===//
//
// Each gives the indices of its operand in terms of its own; no element changes.
//
//===----------------------------------------------------------------------===//
#include "Fold.h"

#include "base/Utf8.h"
#include <algorithm>
#include <cmath>

namespace k2c::onnx {

using Indices = std::vector<Term>;

Folded Fold::reshaped(const Folded &value, const Indices &shape, const Indices &indices) {
  return Folded{value.type, shape, at(value, indices)};
}

Fold::Result Fold::identity(const Node &node) { return std::vector<Folded>{in(node, 0)}; }

/// A step of inference: nothing is dropped, and the mask is 1 everywhere.
Fold::Result Fold::dropout(const Node &node) {
  if (has(node, 2) && in(node, 2).element != terms.number(0))
    return refuse(node, "a step of training is not understood");
  return std::vector<Folded>{in(node, 0), {ElementType::Bool, in(node, 0).shape, terms.number(1)}};
}

Fold::Result Fold::shapeOf(const Node &node) {
  const Indices &shape = in(node, 0).shape;
  const int64_t rank = int64_t(shape.size());
  const auto bounded = [rank](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t begin = bounded(integer(node, "start", 0)), end = bounded(integer(node, "end", rank));
  const Term count = terms.number(double(std::max<int64_t>(end - begin, 0)));
  Folded out{ElementType::I64, {count}, terms.number(0)};
  const Term index = terms.variable(0, count);
  for (int64_t i = end; i-- > begin;)
    out.element = i == end - 1 ? shape[size_t(i)]
                               : terms.select(terms.atLeastZero(terms.plus(terms.scale(index, -1), double(i - begin))),
                                              shape[size_t(i)], out.element);
  return std::vector<Folded>{out};
}

Fold::Result Fold::sizeOf(const Node &node) {
  const Indices &shape = in(node, 0).shape;
  return std::vector<Folded>{{ElementType::I64, {}, total(shape, 0, shape.size())}};
}

Fold::Result Fold::squeeze(const Node &node) {
  const Folded &value = in(node, 0);
  const auto given = axes(node, 1, int64_t(value.shape.size()));
  if (!given)
    return given.error();
  Indices shape, indices;
  for (size_t i = 0; i < value.shape.size(); i++) {
    const bool isGiven = *given && std::count((**given).begin(), (**given).end(), int64_t(i));
    const bool isOne = terms.asInteger(value.shape[i]) == 1;
    if (isGiven && !isOne)
      return refuse(node, "axis " + std::to_string(i) + " has size " + terms.text(value.shape[i]) + ", not 1");
    if (isGiven || (!*given && isOne)) {
      indices.push_back(terms.number(0));
      continue;
    }
    indices.push_back(terms.variable(int32_t(shape.size()), value.shape[i]));
    shape.push_back(value.shape[i]);
  }
  return std::vector<Folded>{reshaped(value, shape, indices)};
}

Fold::Result Fold::unsqueeze(const Node &node) {
  const Folded &value = in(node, 0);
  std::optional<std::vector<int64_t>> given = integers(node, "axes");
  if (!given && has(node, 1))
    given = numbers(in(node, 1));
  if (!given)
    return refuse(node, "its axes are not constant");
  const int64_t rank = int64_t(value.shape.size() + given->size());
  std::vector<bool> isNew(size_t(rank), false);
  for (int64_t axis : *given) {
    if (axis < -rank || axis >= rank || isNew[size_t(axis < 0 ? axis + rank : axis)])
      return refuse(node, "axis " + std::to_string(axis) + " of a result of rank " + std::to_string(rank));
    isNew[size_t(axis < 0 ? axis + rank : axis)] = true;
  }
  Indices shape, indices;
  for (size_t i = 0, from = 0; i < size_t(rank); i++) {
    shape.push_back(isNew[i] ? terms.number(1) : value.shape[from]);
    if (!isNew[i])
      indices.push_back(terms.variable(int32_t(i), value.shape[from++]));
  }
  return std::vector<Folded>{reshaped(value, shape, indices)};
}

Fold::Result Fold::reshape(const Node &node) {
  const Folded &value = in(node, 0);
  std::optional<Indices> to = list(in(node, 1));
  if (!to)
    return refuse(node, "its shape is not known before a run");
  Term known = terms.number(1);
  std::optional<size_t> open;
  for (size_t i = 0; i < to->size(); i++) {
    const std::optional<int64_t> size = terms.asInteger((*to)[i]);
    if (size == 0 && !flag(node, "allowzero", false)) {
      if (i >= value.shape.size())
        return refuse(node, "size 0 at axis " + std::to_string(i) + " of a tensor of rank " +
                                std::to_string(value.shape.size()));
      (*to)[i] = value.shape[i];
    } else if (size == -1 && !open) {
      open = i;
      continue;
    }
    known = terms.multiply(known, (*to)[i]);
  }
  const Term all = total(value.shape, 0, value.shape.size());
  if (open && known != terms.number(0))
    (*to)[*open] = terms.floorDivide(all, known);
  const std::optional<Folded> out = inShape(value, *to);
  if (!out)
    return refuse(node, "elements of shape " + text(value.shape) + " do not become " + text(*to));
  return std::vector<Folded>{*out};
}

Fold::Result Fold::flatten(const Node &node) {
  const Folded &value = in(node, 0);
  const int64_t rank = int64_t(value.shape.size()), given = integer(node, "axis", 1);
  if (given < -rank || given > rank)
    return refuse(node, "axis " + std::to_string(given) + " of a tensor of rank " + std::to_string(rank));
  const size_t axis = size_t(given < 0 ? given + rank : given);
  const Indices to{total(value.shape, 0, axis), total(value.shape, axis, size_t(rank))};
  const std::optional<Folded> out = inShape(value, to);
  if (!out)
    return refuse(node, "elements of shape " + text(value.shape) + " do not become " + text(to));
  return std::vector<Folded>{*out};
}

Fold::Result Fold::transpose(const Node &node) {
  const Folded &value = in(node, 0);
  const size_t rank = value.shape.size();
  std::vector<int64_t> order(rank);
  for (size_t i = 0; i < rank; i++)
    order[i] = int64_t(rank - 1 - i);
  order = integers(node, "perm").value_or(order);
  Indices shape(rank), indices(rank, terms.number(0));
  std::vector<bool> seen(rank, false);
  for (size_t i = 0; i < rank; i++) {
    if (order.size() != rank || order[i] < 0 || order[i] >= int64_t(rank) || seen[size_t(order[i])])
      return refuse(node, "perm is no permutation of " + std::to_string(rank) + " axes");
    seen[size_t(order[i])] = true;
    shape[i] = value.shape[size_t(order[i])];
    indices[size_t(order[i])] = terms.variable(int32_t(i), shape[i]);
  }
  return std::vector<Folded>{reshaped(value, shape, indices)};
}

Fold::Result Fold::expand(const Node &node) {
  const Folded &value = in(node, 0);
  std::optional<Indices> to = list(in(node, 1));
  if (!to)
    return refuse(node, "its shape is not known before a run");
  std::optional<Indices> shape = broadcast({value.shape, *to});
  if (!shape)
    return refuse(node, "elements of shape " + text(value.shape) + " are not repeated to " + text(*to));
  return std::vector<Folded>{{value.type, *shape, spread(value, *shape)}};
}

Fold::Result Fold::tile(const Node &node) {
  const Folded &value = in(node, 0);
  const std::optional<Indices> repeats = list(in(node, 1));
  if (!repeats || repeats->size() != value.shape.size())
    return refuse(node, "its repeats are not known before a run");
  Indices shape, indices;
  for (size_t i = 0; i < value.shape.size(); i++) {
    shape.push_back(terms.multiply(value.shape[i], (*repeats)[i]));
    indices.push_back(terms.modulo(terms.variable(int32_t(i), shape[i]), value.shape[i]));
  }
  return std::vector<Folded>{reshaped(value, shape, indices)};
}

} // namespace k2c::onnx
