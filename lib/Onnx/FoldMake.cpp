//===- FoldMake.cpp - ops that make values of shapes and numbers ---------------------===//
#include "Fold.h"

#include "base/Utf8.h"
#include <algorithm>
#include <cmath>

namespace k2c::onnx {

using Indices = std::vector<Term>;

Fold::Result Fold::range(const Node &node) {
  const Term start = in(node, 0).element, limit = in(node, 1).element, delta = in(node, 2).element;
  if (!terms.isNumber(delta) || terms.number(delta) == 0)
    return refuse(node, "its step is not a constant other than 0");
  const double step = terms.number(delta);
  const Term span = step > 0 ? terms.subtract(limit, start) : terms.subtract(start, limit);
  Term count;
  if (terms.isNumber(span))
    count = terms.number(std::max(0.0, std::ceil(terms.number(span) / std::abs(step))));
  else if (terms.isNeverNegative(span) && step == std::floor(step))
    count = terms.floorDivide(terms.plus(span, std::abs(step) - 1), terms.number(std::abs(step)));
  else
    return refuse(node, "its length is not known before a run");
  const Term element = terms.add(start, terms.scale(terms.variable(0, count), step));
  return std::vector<Folded>{{in(node, 0).type, {count}, element}};
}

Fold::Result Fold::constantOfShape(const Node &node) {
  const std::optional<Indices> shape = list(in(node, 0));
  if (!shape)
    return refuse(node, "its shape is not known before a run");
  const auto found = node.attributes.find("value");
  Folded out{ElementType::F32, *shape, terms.number(0)};
  if (found != node.attributes.end() && found->second.tensor) {
    out.type = found->second.tensor->type;
    const std::vector<double> value = elementsOf(*found->second.tensor, 0, 1);
    if (value.empty())
      return refuse(node, "its value is of a type that is not read");
    out.element = terms.number(value[0]);
  }
  return std::vector<Folded>{out};
}

Fold::Result Fold::trilu(const Node &node) {
  const Folded &value = in(node, 0);
  const size_t rank = value.shape.size();
  if (rank < 2)
    return refuse(node, "its operand has rank " + std::to_string(rank));
  const Term offset = has(node, 1) ? in(node, 1).element : terms.number(0);
  const Indices all = variables(value.shape);
  const Term above = terms.subtract(terms.subtract(all[rank - 1], all[rank - 2]), offset);
  const bool isUpper = flag(node, "upper", true);
  const Term keep = terms.atLeastZero(isUpper ? above : terms.scale(above, -1));
  return std::vector<Folded>{{value.type, value.shape, terms.select(keep, value.element, terms.number(0))}};
}

} // namespace k2c::onnx
