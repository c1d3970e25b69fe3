//===- FoldWeights.cpp - quantised weights as parts of constants -----------------------===//
//
//   weight(n, i) = (nibbles(n, floor(i / 32), i - 32 floor(i / 32)) - 8) * scales(n, floor(i / 32))
//
// In the order of storage the numbers' element is 64 n + i for rows of 64, and that of the scales 2 n + floor(i / 32):
// sums of indices, and of indices divided by blocks. What is such a sum can be read from the file for any weight.
//
//===----------------------------------------------------------------------===//
#include "Fold.h"

#include <cmath>

namespace k2c::onnx {

std::shared_ptr<const Quantised> Fold::quantisedOf(Leaf leaf) const {
  const auto found = quantisedWeights.find(leaf);
  return found == quantisedWeights.end() ? nullptr : found->second;
}

Term Fold::flatIndex(Term element) {
  const std::vector<Term> shape = terms.definition(terms.leaf(element)).shape;
  Term out = terms.number(0);
  for (size_t i = 0; i < shape.size(); i++)
    out = terms.add(terms.multiply(out, shape[i]), terms.part(element, i));
  return out;
}

/// The part of a constant that an element is, at variables of `shape`. None: it is no constant's, or is at an index of
/// another form.
std::optional<QuantisedPart> Fold::partOf(Term element, const std::vector<Term> &shape) {
  if (terms.kind(element) != TermKind::Element)
    return std::nullopt;
  const LeafDefinition definition = terms.definition(terms.leaf(element));
  const bool isOfNibbles = definition.op == "nibbles";
  if (definition.op != "constant" && !isOfNibbles)
    return std::nullopt;
  QuantisedPart out;
  out.value = ValueId(definition.numbers[0]);
  out.tensor = graph.constants.at(out.value);
  if (isOfNibbles) {
    out.tensor.type = ElementType::U4;
    out.tensor.shape.back() *= 2;
  }
  out.strides.assign(shape.size(), 0);
  out.blocks.assign(shape.size(), 1);
  const Term flat = flatIndex(element);
  const bool isSum = terms.kind(flat) == TermKind::Sum;
  out.offset = isSum || terms.isNumber(flat) ? int64_t(terms.number(flat)) : 0;
  for (const Part &summand : isSum ? terms.parts(flat) : std::vector<Part>{{flat, 1}}) {
    if (terms.isNumber(summand.term))
      continue;
    const bool isBlock = terms.kind(summand.term) == TermKind::Floor;
    const Term index = isBlock ? terms.part(summand.term, 0) : summand.term;
    const std::optional<int64_t> block = isBlock ? terms.asInteger(terms.part(summand.term, 1)) : 1;
    const size_t axis = terms.kind(index) == TermKind::Variable ? size_t(terms.tag(index)) : shape.size();
    if (!block || axis >= shape.size() || out.strides[axis] != 0 || summand.factor != std::floor(summand.factor))
      return std::nullopt;
    out.strides[axis] = int64_t(summand.factor);
    out.blocks[axis] = *block;
  }
  return out;
}

/// What a weight is stored as; none: as something else, or in types that are not read so.
std::optional<Quantised> Fold::partsOf(const std::vector<Term> &shape, Term number, Term zero, Term scale) {
  Quantised out;
  for (Term size : shape)
    out.shape.push_back(terms.asInteger(size).value_or(0));
  std::optional<QuantisedPart> numbers = partOf(number, shape);
  if (shape.empty() || !numbers)
    return std::nullopt;
  out.numbers = std::move(*numbers);
  if (terms.isNumber(scale))
    out.scale = float(terms.number(scale));
  else if (!(out.scales = partOf(scale, shape)) || !isReal(out.scales->tensor.type))
    return std::nullopt;
  if (terms.isNumber(zero))
    out.zero = float(terms.number(zero));
  else if (!(out.zeros = partOf(zero, shape)))
    return std::nullopt;
  const ElementType stored = out.numbers.tensor.type;
  const bool isOffset = out.zeros || out.zero != 0; // differences of 32 bits are no floats
  const bool isRead = canWiden(stored) && !isReal(stored) && !(isOffset && bitWidth(stored) == 32) &&
                      (!out.zeros || out.zeros->tensor.type == stored || isReal(out.zeros->tensor.type));
  return isRead && !outsideOf(out) ? std::optional(std::move(out)) : std::nullopt;
}

Folded Fold::weight(ElementType type, const std::vector<Term> &shape, Term number, Term zero, Term scale,
                    int64_t block) {
  Folded out{type, shape, terms.multiply(terms.subtract(number, zero), scale)};
  std::optional<Quantised> stored = terms.isNumber(out.element) ? std::nullopt : partsOf(shape, number, zero, scale);
  if (!stored)
    return out;
  stored->block = block;
  const Leaf leaf = terms.leafOf({"quantised", {out.element}, {}, shape, false, {}, -1});
  quantisedWeights.emplace(leaf, std::make_shared<const Quantised>(std::move(*stored)));
  out.element = terms.element(leaf, variables(shape));
  return out;
}

} // namespace k2c::onnx
