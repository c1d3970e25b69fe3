//===- FoldSlice.cpp - ops that cut values and join them -----------------------------===//
//
// A bound below 0 counts from the end of its axis, and one outside is moved to the nearest inside. Which case a bound
// is in must hold for all lengths of a step: it is decided by what a size is at least and at most, and where that does
// not decide it, the node is refused.
//
//===----------------------------------------------------------------------===//
#include "Fold.h"

#include "base/Utf8.h"
#include <algorithm>
#include <cmath>

namespace k2c::onnx {

using Indices = std::vector<Term>;

/// Bound of the operands of a Concat: each is a choice inside of the others.
constexpr size_t maxConcatenated = 512;

/// A bound of a slice, from 0: one below 0 counts from the end, one outside of [least, most] is the nearest of these.
/// None: which of these it is, is not known before a run.
std::optional<Term> Fold::clamped(Term at, Term size, Term min, Term max) {
  if (!terms.isNeverNegative(at)) {
    if (!terms.isNeverNegative(terms.plus(terms.scale(at, -1), -1)))
      return std::nullopt;
    at = terms.add(at, size);
    if (!terms.isNeverNegative(terms.subtract(at, min)))
      return terms.isNeverNegative(terms.subtract(min, at)) ? std::optional(min) : std::nullopt;
  }
  if (terms.isNeverNegative(terms.subtract(max, at)))
    return at;
  const bool isEnd = terms.isNumber(at) && terms.number(at) >= 2147483647.0; // beyond all sizes that are left open
  return isEnd || terms.isNeverNegative(terms.subtract(at, max)) ? std::optional(max) : std::nullopt;
}

/// The size of a part of an axis and the index of its first element.
Expected<std::pair<Term, Term>> Fold::sliced(const Node &node, Term size, Term start, Term end, int64_t step) {
  const bool isForward = step > 0;
  const Term last = terms.plus(size, -1), min = terms.number(isForward ? 0 : -1), max = isForward ? size : last;
  const std::optional<Term> from = clamped(start, size, min, max), to = clamped(end, size, min, max);
  const Term length = from && to ? (isForward ? terms.subtract(*to, *from) : terms.subtract(*from, *to)) : Term{};
  const bool startsOutside = from && !isForward && !terms.isNeverNegative(*from);
  if (!from || !to || startsOutside || (!terms.isNumber(length) && !terms.isNeverNegative(length)))
    return refuse(node, "bounds " + terms.text(start) + " and " + terms.text(end) + " of an axis of size " +
                            terms.text(size) + " are not understood");
  const double width = std::abs(double(step));
  const Term count = terms.floorDivide(terms.plus(length, width - 1), terms.number(width));
  return std::pair(terms.isNumber(count) && terms.number(count) < 0 ? terms.number(0) : count, *from);
}

Fold::Result Fold::slice(const Node &node) {
  const Folded &value = in(node, 0);
  const int64_t rank = int64_t(value.shape.size());
  const std::optional<Indices> starts = list(in(node, 1)), ends = list(in(node, 2));
  if (!starts || !ends || starts->size() != ends->size())
    return refuse(node, "its bounds are not known before a run");
  const auto given = axes(node, 3, rank);
  if (!given)
    return given.error();
  const std::optional<std::vector<int64_t>> steps = has(node, 4) ? numbers(in(node, 4)) : std::nullopt;
  if ((has(node, 4) && (!steps || steps->size() != starts->size())) || (*given && (**given).size() != starts->size()) ||
      int64_t(starts->size()) > rank)
    return refuse(node, "its axes and steps are not as many as its bounds, or not known before a run");
  Indices shape = value.shape, indices = variables(value.shape);
  for (size_t i = 0; i < starts->size(); i++) {
    const size_t axis = *given ? size_t((**given)[i]) : i;
    const int64_t step = steps ? (*steps)[i] : 1;
    if (step == 0)
      return refuse(node, "axis " + std::to_string(axis) + " is cut in steps of 0");
    const Expected<std::pair<Term, Term>> part = sliced(node, shape[axis], (*starts)[i], (*ends)[i], step);
    if (!part)
      return part.error();
    shape[axis] = part->first;
    indices[axis] = terms.add(part->second, terms.scale(terms.variable(int32_t(axis), part->first), double(step)));
  }
  return std::vector<Folded>{reshaped(value, shape, indices)};
}

/// Sizes of the parts of an axis: given, or as even as they can be.
Expected<std::vector<int64_t>> Fold::partSizes(const Node &node, Term whole) {
  std::optional<std::vector<int64_t>> sizes = integers(node, "split");
  if (!sizes && has(node, 1) && !(sizes = numbers(in(node, 1))))
    return refuse(node, "its sizes are not known before a run");
  const std::optional<int64_t> all = terms.asInteger(whole);
  const int64_t count = int64_t(node.outputs.size());
  if (!all || integer(node, "num_outputs", count) != count || (sizes && int64_t(sizes->size()) != count))
    return refuse(node,
                  "an axis of size " + terms.text(whole) + " is not known to be " + std::to_string(count) + " parts");
  if (!sizes) {
    const int64_t each = (*all + count - 1) / count;
    sizes.emplace();
    for (int64_t left = *all; int64_t(sizes->size()) < count; left -= each)
      sizes->push_back(std::min(each, left));
  }
  int64_t sum = 0;
  for (int64_t size : *sizes)
    sum = size < 0 || size > *all ? *all + 1 : std::min(sum + size, *all + 1);
  if (sum != *all)
    return refuse(node, "its parts are not " + std::to_string(*all) + " elements");
  return *sizes;
}

/// An axis cut into parts.
std::vector<Folded> Fold::partsOf(const Folded &value, size_t axis, const std::vector<int64_t> &sizes) {
  std::vector<Folded> out;
  double from = 0;
  for (int64_t size : sizes) {
    Indices shape = value.shape;
    shape[axis] = terms.number(double(size));
    Indices indices = variables(shape);
    indices[axis] = terms.plus(indices[axis], from);
    out.push_back(reshaped(value, shape, indices));
    from += double(size);
  }
  return out;
}

Fold::Result Fold::split(const Node &node) {
  const Folded &value = in(node, 0);
  const Expected<int64_t> axis = axisOf(node, 0, value.shape.size());
  if (!axis)
    return axis.error();
  const Expected<std::vector<int64_t>> sizes = partSizes(node, value.shape[size_t(*axis)]);
  if (!sizes)
    return sizes.error();
  return partsOf(value, size_t(*axis), *sizes);
}

/// Parts of one size, the last of which may be smaller; SequenceAt takes them.
Fold::Result Fold::splitToSequence(const Node &node) {
  const Folded &value = in(node, 0);
  const Expected<int64_t> axis = axisOf(node, 0, value.shape.size());
  if (!axis)
    return axis.error();
  const std::optional<int64_t> all = terms.asInteger(value.shape[size_t(*axis)]);
  const std::optional<std::vector<int64_t>> size = has(node, 1) ? numbers(in(node, 1)) : std::nullopt;
  if (!all || !size || !in(node, 1).shape.empty() || (*size)[0] < 1 || *all > (*size)[0] * int64_t(maxConcatenated))
    return refuse(node, "the parts of an axis of size " + terms.text(value.shape[size_t(*axis)]) +
                            " are not of one size that is known before a run");
  std::vector<int64_t> sizes;
  for (int64_t left = *all; left > 0; left -= (*size)[0])
    sizes.push_back(std::min(left, (*size)[0]));
  if (!node.outputs.empty() && node.outputs[0] != noValue)
    sequences[node.outputs[0]] = partsOf(value, size_t(*axis), sizes);
  return std::vector<Folded>{};
}

Fold::Result Fold::sequenceAt(const Node &node) {
  const auto found = sequences.find(node.inputs[0]);
  const bool hasIndex = values[size_t(node.inputs[1])].has_value();
  const std::optional<std::vector<int64_t>> index = hasIndex ? numbers(in(node, 1)) : std::nullopt;
  if (found == sequences.end() || !index || index->size() != 1)
    return refuse(node, "a part of a sequence that is not known before a run");
  const int64_t count = int64_t(found->second.size()), at = (*index)[0] + ((*index)[0] < 0 ? count : 0);
  if (at < 0 || at >= count)
    return refuse(node, "part " + std::to_string((*index)[0]) + " of a sequence of " + std::to_string(count));
  return std::vector<Folded>{found->second[size_t(at)]};
}

/// The one size that two are, where the file may leave one of them open; none: they differ.
std::optional<Term> Fold::unified(Term a, Term b) const {
  const auto isOpen = [this](Term size) {
    return terms.kind(size) == TermKind::Size && terms.symbol(size).rfind('?', 0) == 0;
  };
  if (a == b || isOpen(b))
    return a;
  return isOpen(a) ? std::optional(b) : std::nullopt;
}

Fold::Result Fold::concat(const Node &node) {
  Folded out = in(node, 0);
  const Expected<int64_t> given = axisOf(node, 0, out.shape.size());
  if (!given)
    return given.error();
  if (node.inputs.size() > maxConcatenated)
    return refuse(node,
                  std::to_string(node.inputs.size()) + " operands are more than " + std::to_string(maxConcatenated));
  const size_t axis = size_t(*given);
  for (size_t i = 1; i < node.inputs.size(); i++) {
    const Folded &other = in(node, i);
    bool fits = other.shape.size() == out.shape.size();
    for (size_t k = 0; fits && k < out.shape.size(); k++) {
      const std::optional<Term> size =
          k == axis ? terms.add(out.shape[k], other.shape[k]) : unified(out.shape[k], other.shape[k]);
      fits = size.has_value();
      out.shape[k] = size.value_or(out.shape[k]);
    }
    if (!fits)
      return refuse(node, "operands of shape " + text(in(node, 0).shape) + " and " + text(other.shape) +
                              " do not fit each other");
  }
  const Indices indices = variables(out.shape);
  Term end = out.shape[axis];
  for (size_t i = node.inputs.size(); i-- > 0;) {
    const Folded &part = in(node, i);
    const Term begin = terms.subtract(end, part.shape[axis]);
    Indices own = indices;
    own[axis] = terms.subtract(indices[axis], begin);
    const Term element = at(part, own);
    // An element is of this part where its index is below the end.
    const Term isBelow = terms.atLeastZero(terms.plus(terms.subtract(end, indices[axis]), -1));
    out.element = i + 1 == node.inputs.size() ? element : terms.select(isBelow, element, out.element);
    end = begin;
  }
  return std::vector<Folded>{out};
}

} // namespace k2c::onnx
