//===- FoldMath.cpp - element-wise ops ----------------------------------------------===//
//
// Operands are repeated to one shape, and what is computed of their elements is a term. Casts between floating-point
// types change nothing; what divides, compares or rounds integers is exact where both are known not to be negative, and
// is refused elsewhere.
//
//===----------------------------------------------------------------------===//
#include "Fold.h"

#include "base/Utf8.h"
#include <cmath>
#include <limits>

namespace k2c::onnx {

/// Bound of the operands of Max and Min: each is a call inside of the others.
constexpr size_t maxExtremes = 64;

Fold::Result Fold::cast(const Node &node) {
  Folded out = in(node, 0);
  const bool isLike = node.op == "CastLike";
  const ElementType to = isLike ? in(node, 1).type : ElementType(integer(node, "to", 0));
  // Of types with few numbers those that are rounded or cut off are not what a term says.
  const bool isSafe = bitWidth(to) >= 32 || to == ElementType::Bool || to == out.type ||
                      out.type == ElementType::Bool || to == ElementType::F16 || to == ElementType::BF16 ||
                      (isWhole(to) && isWhole(out.type) && bitWidth(to) > bitWidth(out.type));
  if (!isSafe)
    return refuse(node, "a cast of " + name(out.type) + " to " + name(to) + " is not understood");
  if (to == ElementType::Bool)
    out.element = terms.negate(terms.equalsZero(out.element));
  else if (isWhole(to) && !isWhole(out.type))
    out.element = terms.isNumber(out.element) ? terms.number(std::trunc(terms.number(out.element)))
                                              : terms.call(Function::Truncate, {out.element});
  out.type = to;
  return std::vector<Folded>{out};
}

/// The shape that the first inputs of a node are repeated to.
Expected<std::vector<Term>> Fold::commonShape(const Node &node, size_t inputs) {
  std::vector<Term> out;
  for (size_t i = 0; i < inputs; i++) {
    const std::optional<std::vector<Term>> both = broadcast({out, in(node, i).shape});
    if (!both)
      return refuse(node,
                    "operands of shape " + text(out) + " and " + text(in(node, i).shape) + " do not fit each other");
    out = *both;
  }
  return out;
}

Fold::Result Fold::where(const Node &node) {
  const Expected<std::vector<Term>> shape = commonShape(node, 3);
  if (!shape)
    return shape.error();
  const Term condition = spread(in(node, 0), *shape);
  const Term element = terms.select(condition, spread(in(node, 1), *shape), spread(in(node, 2), *shape));
  return std::vector<Folded>{{in(node, 1).type, *shape, element}};
}

/// Sub, Mul, Div, Mod or Pow of two elements; of integers where `areWhole`. None: that is not understood.
std::optional<Term> Fold::combined(const Node &node, Term a, Term b, bool areWhole) {
  if (node.op == "Sub")
    return terms.subtract(a, b);
  if (node.op == "Mul")
    return terms.multiply(a, b);
  if (node.op == "Div" && !areWhole)
    return terms.multiply(a, terms.power(b, -1));
  const bool isCount = terms.isNumber(b) && terms.number(b) >= 0 && terms.number(b) == std::floor(terms.number(b));
  if (node.op == "Pow" && terms.isNumber(b) && (isCount || !areWhole))
    return terms.power(a, terms.number(b));
  if (node.op == "Pow" && areWhole)
    return std::nullopt;
  if (node.op == "Pow")
    return terms.isNumber(a) && terms.number(a) > 0
               ? terms.call(Function::Exp, {terms.scale(b, std::log(terms.number(a)))})
               : terms.call(Function::Power, {a, b});
  // Quotients of integers are cut off towards 0, remainders have the divisor's sign, or with fmod the dividend's.
  const bool isPositive = terms.isNeverNegative(terms.plus(b, -1)), isMod = node.op == "Mod";
  if (areWhole && isPositive && (terms.isNeverNegative(a) || (isMod && !flag(node, "fmod", false))))
    return isMod ? terms.modulo(a, b) : terms.floorDivide(a, b);
  if (areWhole && !isMod && terms.isNumber(a) && terms.isNumber(b) && terms.number(b) != 0)
    return terms.number(std::trunc(terms.number(a) / terms.number(b)));
  return std::nullopt;
}

/// Whether results may not fit in the type of the operands: lengths and indices do in 32 bits with a sign.
bool Fold::wraps(const Node &node) const {
  const ElementType type = in(node, 0).type;
  const bool isSmall = isWhole(type) && type != ElementType::I32 && type != ElementType::I64;
  return isSmall && (node.op == "Add" || node.op == "Sub" || node.op == "Mul" || node.op == "Pow" || node.op == "Sum" ||
                     node.op == "Neg");
}

/// Add, Sub, Mul, Div, Mod, Pow, and of any number of operands Sum, Mean, Max, Min.
Fold::Result Fold::arithmetic(const Node &node) {
  const Expected<std::vector<Term>> shape = commonShape(node, node.inputs.size());
  if (!shape)
    return shape.error();
  std::vector<Part> operands;
  for (size_t i = 0; i < node.inputs.size(); i++)
    operands.push_back({spread(in(node, i), *shape), 1});
  if (wraps(node))
    return refuse(node, "of " + name(in(node, 0).type) + ", whose results may be cut off, is not understood");
  const bool areWhole = isWhole(in(node, 0).type), isMean = node.op == "Mean";
  Folded out{in(node, 0).type, *shape, operands[0].term};
  const bool isExtreme = node.op == "Max" || node.op == "Min";
  if (operands.size() != 2 && node.op != "Sum" && !isMean && !isExtreme)
    return refuse(node, std::to_string(operands.size()) + " operands are not 2");
  if (node.op == "Add" || node.op == "Sum" || isMean) {
    out.element = terms.scale(terms.sum(0, operands), isMean ? 1.0 / double(operands.size()) : 1);
    // The residual stream: what several read is a leaf, so that sums do not grow with the layers.
    return std::vector<Folded>{shared(node, 0, out)};
  }
  if (isExtreme) {
    if (operands.size() > maxExtremes)
      return refuse(node, std::to_string(operands.size()) + " operands are more than " + std::to_string(maxExtremes));
    for (const Part &operand : operands)
      out.element = extreme(node.op == "Max", out.element, operand.term);
    return std::vector<Folded>{out};
  }
  const std::optional<Term> element = combined(node, operands[0].term, operands[1].term, areWhole);
  if (!element)
    return refuse(node,
                  "of " + terms.text(operands[0].term) + " and " + terms.text(operands[1].term) + " is not understood");
  out.element = *element;
  return std::vector<Folded>{out};
}

Term Fold::extreme(bool isMost, Term a, Term b) {
  if (a == b)
    return a;
  if (terms.isInteger(a) && terms.isInteger(b)) {
    if (terms.isNeverNegative(terms.subtract(a, b)))
      return isMost ? a : b;
    if (terms.isNeverNegative(terms.subtract(b, a)))
      return isMost ? b : a;
  }
  if (terms.isNumber(a) && terms.isNumber(b))
    return terms.number(isMost ? std::max(terms.number(a), terms.number(b))
                               : std::min(terms.number(a), terms.number(b)));
  return terms.call(isMost ? Function::Max : Function::Min, {a, b});
}

Folded Fold::shared(const Node &node, size_t output, const Folded &value) {
  if (readersOf(node, output) < 2 || value.shape.size() < 2 || terms.isNumber(value.element) || !isFloat(value))
    return value;
  LeafDefinition definition;
  definition.op = "shared";
  definition.bodies = {value.element};
  return leafValue(node, value.type, value.shape, std::move(definition));
}

/// Whether two terms are equal; infinity is what is beyond all numbers.
Term Fold::isEqual(Term a, Term b) {
  const double max = std::numeric_limits<double>::max();
  for (const auto &[number, other] : {std::pair(a, b), std::pair(b, a)})
    if (terms.isNumber(number) && std::isinf(terms.number(number))) {
      if (terms.isNumber(other))
        return terms.number(terms.number(number) == terms.number(other));
      return terms.negative(terms.plus(terms.scale(other, terms.number(number) < 0 ? 1 : -1), max));
    }
  return terms.equalsZero(terms.subtract(a, b));
}

Fold::Result Fold::isInfinite(const Node &node) {
  Folded out = in(node, 0);
  const double infinity = std::numeric_limits<double>::infinity();
  const Term above = isEqual(out.element, terms.number(infinity)),
             below = isEqual(out.element, terms.number(-infinity));
  out.type = ElementType::Bool;
  out.element = terms.either(flag(node, "detect_positive", true) ? above : terms.number(0),
                             flag(node, "detect_negative", true) ? below : terms.number(0));
  return std::vector<Folded>{out};
}

Fold::Result Fold::compare(const Node &node) {
  const Expected<std::vector<Term>> shape = commonShape(node, 2);
  if (!shape)
    return shape.error();
  const Term a = spread(in(node, 0), *shape), b = spread(in(node, 1), *shape);
  const bool isReal = isFloat(in(node, 0)) && !(terms.isInteger(a) && terms.isInteger(b));
  const auto less = [&](Term x, Term y) { // x < y
    return isReal ? terms.negative(terms.subtract(x, y)) : terms.atLeastZero(terms.plus(terms.subtract(y, x), -1));
  };
  Term out{};
  if (node.op == "Equal")
    out = isEqual(a, b);
  else if (node.op == "Less")
    out = less(a, b);
  else if (node.op == "Greater")
    out = less(b, a);
  else
    out = terms.negate(node.op == "LessOrEqual" ? less(b, a) : less(a, b));
  return std::vector<Folded>{{ElementType::Bool, *shape, out}};
}

Fold::Result Fold::logical(const Node &node) {
  if (node.op == "Not") {
    const Folded &value = in(node, 0);
    return std::vector<Folded>{{ElementType::Bool, value.shape, terms.negate(value.element)}};
  }
  const Expected<std::vector<Term>> shape = commonShape(node, 2);
  if (!shape)
    return shape.error();
  const Term a = spread(in(node, 0), *shape), b = spread(in(node, 1), *shape);
  const Term both = terms.both(a, b), either = terms.either(a, b);
  const Term out = node.op == "And" ? both : node.op == "Or" ? either : terms.both(either, terms.negate(both));
  return std::vector<Folded>{{ElementType::Bool, *shape, out}};
}

Fold::Result Fold::unary(const Node &node) {
  static const std::unordered_map<std::string, Function> functions = {
      {"Exp", Function::Exp},         {"Log", Function::Log},     {"Sin", Function::Sin},
      {"Cos", Function::Cos},         {"Tanh", Function::Tanh},   {"Erf", Function::Erf},
      {"Sigmoid", Function::Sigmoid}, {"Abs", Function::Abs},     {"Sign", Function::Sign},
      {"Relu", Function::Relu},       {"Round", Function::Round}, {"Ceil", Function::Ceil},
      {"Floor", Function::FloorReal}, {"IsNaN", Function::IsNaN}};
  if (wraps(node))
    return refuse(node, "of " + name(in(node, 0).type) + ", whose results may be cut off, is not understood");
  Folded out = in(node, 0);
  const Term x = out.element;
  if (node.op == "Neg")
    out.element = terms.scale(x, -1);
  else if (node.op == "Sqrt")
    out.element = terms.power(x, 0.5);
  else if (node.op == "Reciprocal")
    out.element = terms.power(x, -1);
  else if (const bool isQuick = node.op == "QuickGelu"; isQuick || node.op == "Swish" || node.op == "Silu")
    out.element = terms.multiply(
        x, terms.call(Function::Sigmoid, {terms.scale(x, real(node, "alpha", isQuick ? 1.702f : 1.0f))}));
  else
    out.element = terms.call(functions.at(node.op), {x});
  if (node.op == "IsNaN")
    out.type = ElementType::Bool;
  return std::vector<Folded>{out};
}

Fold::Result Fold::gelu(const Node &node) {
  Folded out = in(node, 0);
  const Term x = out.element;
  Term inner = terms.call(Function::Erf, {terms.scale(x, std::sqrt(0.5))});
  if (word(node, "approximate", "none") == "tanh")
    inner = terms.call(Function::Tanh, {terms.scale(terms.sum(0, {{x, 1}, {terms.power(x, 3), 0.044715}}),
                                                    std::sqrt(2 / 3.14159265358979323846))});
  out.element = terms.scale(terms.multiply(x, terms.plus(inner, 1)), 0.5);
  return std::vector<Folded>{out};
}

Fold::Result Fold::clip(const Node &node) {
  Folded out = in(node, 0);
  if (has(node, 1))
    out.element = extreme(true, out.element, in(node, 1).element);
  if (has(node, 2))
    out.element = extreme(false, out.element, in(node, 2).element);
  return std::vector<Folded>{out};
}

} // namespace k2c::onnx
