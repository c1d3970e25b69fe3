//===- FoldGather.cpp - ops that take elements where indices say ---------------------===//
#include "Fold.h"

#include "base/Utf8.h"

namespace k2c::onnx {

using Indices = std::vector<Term>;

/// An index of an axis; one below 0 counts from its end. Error: it is a number outside of the axis.
Expected<Term> Fold::fromEnd(const Node &node, Term index, Term size) {
  const std::optional<int64_t> number = terms.asInteger(index), count = terms.asInteger(size);
  if (number && count && (*number < -*count || *number >= *count))
    return refuse(node, "index " + std::to_string(*number) + " of an axis of size " + std::to_string(*count));
  return terms.select(terms.atLeastZero(index), index, terms.add(index, size));
}

/// The parts of a value along an axis that indices name, in place of that axis.
Expected<Folded> Fold::gathered(const Node &node, const Folded &value, const Folded &which, int64_t axis) {
  Indices shape(value.shape.begin(), value.shape.begin() + axis);
  shape.insert(shape.end(), which.shape.begin(), which.shape.end());
  shape.insert(shape.end(), value.shape.begin() + axis + 1, value.shape.end());
  const Indices all = variables(shape);
  const auto from = all.begin() + axis, to = from + int64_t(which.shape.size());
  const Expected<Term> index = fromEnd(node, at(which, Indices(from, to)), value.shape[size_t(axis)]);
  if (!index)
    return index.error();
  Indices indices(all.begin(), from);
  indices.push_back(*index);
  indices.insert(indices.end(), to, all.end());
  return reshaped(value, shape, indices);
}

Fold::Result Fold::gather(const Node &node) {
  const Expected<int64_t> axis = axisOf(node, 0, in(node, 0).shape.size());
  if (!axis)
    return axis.error();
  Expected<Folded> out = gathered(node, in(node, 0), in(node, 1), *axis);
  if (!out)
    return out.takeError();
  return std::vector<Folded>{*out};
}

Fold::Result Fold::gatherNd(const Node &node) {
  const Folded &value = in(node, 0), &which = in(node, 1);
  const int64_t batches = integer(node, "batch_dims", 0);
  const std::optional<int64_t> width = which.shape.empty() ? std::nullopt : terms.asInteger(which.shape.back());
  if (!width || batches < 0 || batches > int64_t(value.shape.size()) ||
      *width > int64_t(value.shape.size()) - batches || batches >= int64_t(which.shape.size()))
    return refuse(node, "indices of shape " + text(which.shape) + " do not fit a tensor of shape " + text(value.shape));
  Indices shape(which.shape.begin(), which.shape.end() - 1);
  shape.insert(shape.end(), value.shape.begin() + batches + *width, value.shape.end());
  const Indices all = variables(shape);
  const int64_t outer = int64_t(which.shape.size()) - 1;
  Indices indices(all.begin(), all.begin() + batches);
  for (int64_t i = 0; i < *width; i++) {
    Indices own(all.begin(), all.begin() + outer);
    own.push_back(terms.number(double(i)));
    const Expected<Term> index = fromEnd(node, at(which, own), value.shape[size_t(batches + i)]);
    if (!index)
      return index.error();
    indices.push_back(*index);
  }
  indices.insert(indices.end(), all.begin() + outer, all.end());
  return std::vector<Folded>{reshaped(value, shape, indices)};
}

Fold::Result Fold::gatherElements(const Node &node) {
  const Folded &value = in(node, 0), &which = in(node, 1);
  const Expected<int64_t> axis = axisOf(node, 0, value.shape.size());
  if (!axis)
    return axis.error();
  if (which.shape.size() != value.shape.size())
    return refuse(node, "indices of shape " + text(which.shape) + " do not fit a tensor of shape " + text(value.shape));
  Indices indices = variables(which.shape);
  const Expected<Term> index = fromEnd(node, which.element, value.shape[size_t(*axis)]);
  if (!index)
    return index.error();
  indices[size_t(*axis)] = *index;
  return std::vector<Folded>{reshaped(value, which.shape, indices)};
}

} // namespace k2c::onnx
