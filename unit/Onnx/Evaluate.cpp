//===- Evaluate.cpp - terms at numbers, by recursion ----------------------------------===//
//
// A leaf's element is computed when it is first asked for; softmaxes, running sums and choices of the best give a whole
// row at once. An index outside of its leaf gives NaN, which is seen where a choice does not guard it.
//
//===----------------------------------------------------------------------===//
#include "Evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace k2c::onnx {

/// Bound of how deep leaves lie in each other's definitions.
constexpr int maxLeafDepth = 1000;

Evaluate::Evaluate(Fold &fold, std::unordered_map<std::string, int64_t> sizes, Input input, int64_t max)
    : fold(fold), terms(fold.terms), sizes(std::move(sizes)), input(std::move(input)), max(max) {}

double Evaluate::fail(const std::string &message) {
  if (failure.empty())
    failure = message;
  return std::numeric_limits<double>::quiet_NaN();
}

Evaluate::Point Evaluate::point(const std::vector<int64_t> &indices) {
  Point out;
  out.at.assign(size_t(Fold::maxPositions), 0);
  for (size_t i = 0; i < indices.size() && i < out.at.size(); i++)
    out.at[i] = double(indices[i]);
  move(out);
  return out;
}

Expected<int64_t> Evaluate::size(Term size) {
  const double number = value(size, point({}));
  if (!failure.empty() || !(number >= 0) || number > double(maxEvaluatedElements))
    return Error{fold.graph.path, failure.empty() ? "a size is " + std::to_string(number) : failure,
                 "evaluate smaller sizes"};
  return int64_t(number);
}

Expected<std::vector<double>> Evaluate::elements(const Folded &folded) {
  std::vector<int64_t> shape;
  int64_t count = 1;
  for (Term one : folded.shape) {
    const Expected<int64_t> number = size(one);
    if (!number)
      return number.error();
    shape.push_back(*number);
    count = *number > 0 && count > maxEvaluatedElements / *number ? maxEvaluatedElements + 1 : count * *number;
  }
  if (count > maxEvaluatedElements)
    return Error{fold.graph.path, "a value has " + std::to_string(count) + " elements or more",
                 "evaluate smaller sizes"};
  std::vector<double> out;
  std::vector<int64_t> indices(shape.size(), 0);
  for (int64_t i = 0; i < count && failure.empty(); i++) {
    int64_t rest = i;
    for (size_t k = shape.size(); k-- > 0; rest /= shape[k])
      indices[k] = rest % shape[k];
    out.push_back(value(folded.element, point(indices)));
  }
  if (!failure.empty())
    return Error{fold.graph.path, failure, "evaluate smaller sizes"};
  return out;
}

double Evaluate::value(Term term, const Point &at) {
  if (terms.isNumber(term))
    return terms.number(term);
  if (++steps > max)
    return fail("the evaluation takes more than " + std::to_string(max) + " steps");
  if (size_t(term) < memory.size() && memory[size_t(term)].stamp == at.stamp)
    return memory[size_t(term)].value;
  const double out = computed(term, at);
  if (memory.size() <= size_t(term))
    memory.resize(size_t(term) + 1024);
  memory[size_t(term)] = {at.stamp, out};
  return out;
}

double Evaluate::computed(Term term, const Point &at) {
  const std::vector<Part> parts = terms.parts(term);
  const auto part = [&](size_t i) { return value(parts[i].term, at); };
  switch (terms.kind(term)) {
  case TermKind::Variable:
    return size_t(terms.tag(term)) < at.at.size() ? at.at[size_t(terms.tag(term))] : fail("a variable has no value");
  case TermKind::Size: {
    const auto found = sizes.find(terms.symbol(term));
    return found == sizes.end() ? fail("size '" + terms.symbol(term) + "' is not given") : double(found->second);
  }
  case TermKind::Element: {
    std::vector<double> indices;
    for (size_t i = 0; i < parts.size(); i++)
      indices.push_back(part(i));
    return element(terms.leaf(term), indices);
  }
  case TermKind::Sum: {
    double sum = terms.number(term);
    for (size_t i = 0; i < parts.size(); i++)
      sum += parts[i].factor * part(i);
    return sum;
  }
  case TermKind::Product: {
    double product = 1;
    for (size_t i = 0; i < parts.size(); i++)
      product *= parts[i].factor == 1 ? part(i) : std::pow(part(i), parts[i].factor);
    return product;
  }
  case TermKind::Floor:
    return std::floor(part(0) / part(1));
  case TermKind::Select:
    return part(0) != 0 ? part(1) : part(2);
  case TermKind::AtLeastZero:
    return part(0) >= 0;
  case TermKind::EqualsZero:
    return part(0) == 0;
  case TermKind::Negative:
    return part(0) < 0;
  case TermKind::And:
  case TermKind::Or: {
    const bool isAnd = terms.kind(term) == TermKind::And;
    for (size_t i = 0; i < parts.size(); i++)
      if ((part(i) != 0) != isAnd)
        return !isAnd;
    return isAnd;
  }
  default:
    return called(term, at);
  }
}

double Evaluate::called(Term call, const Point &at) {
  const double x = value(terms.part(call, 0), at);
  const double y = terms.partCount(call) > 1 ? value(terms.part(call, 1), at) : 0;
  switch (terms.function(call)) {
  case Function::Exp:
    return std::exp(x);
  case Function::Log:
    return std::log(x);
  case Function::Sin:
    return std::sin(x);
  case Function::Cos:
    return std::cos(x);
  case Function::Tanh:
    return std::tanh(x);
  case Function::Sigmoid:
    return 1 / (1 + std::exp(-x));
  case Function::Erf:
    return std::erf(x);
  case Function::Abs:
    return std::abs(x);
  case Function::Sign:
    return double((x > 0) - (x < 0));
  case Function::Round:
    return std::nearbyint(x);
  case Function::Ceil:
    return std::ceil(x);
  case Function::FloorReal:
    return std::floor(x);
  case Function::IsNaN:
    return std::isnan(x);
  case Function::Max:
    return std::isnan(x) || std::isnan(y) ? x + y : std::max(x, y);
  case Function::Min:
    return std::isnan(x) || std::isnan(y) ? x + y : std::min(x, y);
  case Function::Power:
    return std::pow(x, y);
  case Function::Truncate:
    return std::trunc(x);
  case Function::Relu:
    break;
  }
  return x > 0 ? x : x * 0;
}

Evaluate::Elements *Evaluate::prepared(Leaf leaf) {
  if (leaves.size() <= size_t(leaf))
    leaves.resize(size_t(leaf) + 256);
  if (leaves[size_t(leaf)])
    return leaves[size_t(leaf)].get();
  Elements made;
  int64_t count = 1;
  const LeafDefinition definition = terms.definition(leaf);
  for (Term one : definition.shape) {
    const Expected<int64_t> number = size(one);
    if (!number) {
      fail(number.error().message);
      return nullptr;
    }
    made.shape.push_back(*number);
    count = *number > 0 && count > maxEvaluatedElements / *number ? maxEvaluatedElements + 1 : count * *number;
  }
  if (count > maxEvaluatedElements) {
    fail("a leaf has too many elements");
    return nullptr;
  }
  for (Term variable : terms.variablesOf(definition.bodies))
    if (terms.tag(variable) >= Fold::firstReduced)
      made.running.push_back(variable);
  made.values.assign(size_t(count), 0);
  made.isKnown.assign(size_t(count), false);
  leaves[size_t(leaf)] = std::make_unique<Elements>(std::move(made));
  return leaves[size_t(leaf)].get();
}

double Evaluate::element(Leaf leaf, const std::vector<double> &indices) {
  Elements *const found = prepared(leaf);
  if (!found)
    return fail("");
  int64_t flat = 0;
  std::vector<int64_t> at;
  for (size_t i = 0; i < indices.size(); i++) {
    if (!(indices[i] >= 0 && indices[i] < double(found->shape[i])))
      return std::numeric_limits<double>::quiet_NaN();
    at.push_back(int64_t(indices[i]));
    flat = flat * found->shape[i] + at.back();
  }
  if (found->isKnown[size_t(flat)])
    return found->values[size_t(flat)];
  if (depth >= maxLeafDepth)
    return fail("leaves lie more than " + std::to_string(maxLeafDepth) + " deep in each other");
  const std::string &op = terms.definition(leaf).op;
  if (op == "constant" || op == "input" || op == "nibbles") {
    found->isKnown[size_t(flat)] = true;
    return found->values[size_t(flat)] = stored(leaf, flat);
  }
  depth++;
  if (op == "softmax" || op == "log-softmax" || op == "topk-indices" || op == "running-sum")
    evaluateAlong(leaf, *found, at);
  else
    found->values[size_t(flat)] = evaluated(leaf, *found, at);
  depth--;
  found->isKnown[size_t(flat)] = true;
  return found->values[size_t(flat)];
}

double Evaluate::stored(Leaf leaf, int64_t index) {
  const LeafDefinition &definition = terms.definition(leaf);
  const ValueId value = ValueId(definition.numbers[0]);
  if (definition.op == "input")
    return input(value, index);
  const std::optional<double> found = fold.constantAt(value, definition.op == "nibbles" ? index / 2 : index);
  if (!found)
    return fail("constant '" + fold.graph.values[size_t(value)] + "' cannot be read");
  if (definition.op == "nibbles")
    return double(index % 2 ? int64_t(*found) / 16 : int64_t(*found) % 16);
  return *found;
}

/// Visits all that the leaf runs over, `at` being moved.
void Evaluate::forEach(const Elements &elements, Point &at, const std::function<void()> &visit) {
  int64_t count = 1;
  std::vector<int64_t> lengths;
  for (Term variable : elements.running) {
    lengths.push_back(int64_t(value(terms.part(variable, 0), at)));
    count *= lengths.back();
  }
  for (int64_t i = 0; i < count && failure.empty(); i++) {
    int64_t rest = i;
    for (size_t k = lengths.size(); k-- > 0; rest /= lengths[k])
      at.at[size_t(terms.tag(elements.running[k]))] = double(rest % lengths[k]);
    move(at);
    visit();
  }
}

double Evaluate::reduced(Leaf leaf, const Elements &elements, Point &at) {
  const std::string op = terms.definition(leaf).op;
  const Term body = terms.definition(leaf).bodies[0];
  double out = op == "sum"   ? 0
               : op == "max" ? -std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::infinity();
  forEach(elements, at, [&] {
    const double one = value(body, at);
    if (op == "sum")
      out += one;
    else if (std::isnan(one) || std::isnan(out))
      out += one;
    else
      out = op == "max" ? std::max(out, one) : std::min(out, one);
  });
  return out;
}

double Evaluate::scattered(Leaf leaf, const Elements &elements, Point &at) {
  const std::vector<Term> bodies = terms.definition(leaf).bodies;
  double out = value(bodies[0], at);
  forEach(elements, at, [&] {
    if (value(bodies[1], at) != 0)
      out = value(bodies[2], at);
  });
  return out;
}

double Evaluate::evaluated(Leaf leaf, const Elements &elements, const std::vector<int64_t> &indices) {
  const std::string op = terms.definition(leaf).op;
  Point at = point(indices);
  if (op == "sum" || op == "max" || op == "min")
    return reduced(leaf, elements, at);
  if (op == "scatter-elements")
    return scattered(leaf, elements, at);
  if (op == "shared" || op == "quantised")
    return value(terms.definition(leaf).bodies[0], at);
  return fail("leaf '" + op + "' is not evaluated");
}

/// Of a row of values the softmax, its logarithm, or the sums so far.
static std::vector<double> alongRow(const std::string &op, std::vector<double> row, bool isExclusive, bool isReverse) {
  if (op == "running-sum") {
    if (isReverse)
      std::reverse(row.begin(), row.end());
    double sum = 0;
    for (double &one : row) {
      const double own = one;
      one = isExclusive ? sum : sum + own;
      sum += own;
    }
    if (isReverse)
      std::reverse(row.begin(), row.end());
    return row;
  }
  const double max = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double one : row)
    sum += std::exp(one - max);
  for (double &one : row)
    one = op == "softmax" ? std::exp(one - max) / sum : one - max - std::log(sum);
  return row;
}

/// The places of the best of a row, the first of equals before the others.
static std::vector<double> bestOf(const std::vector<double> &row, int64_t count, bool isLargest) {
  std::vector<size_t> order(row.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return isLargest ? row[a] > row[b] : row[a] < row[b]; });
  return std::vector<double>(order.begin(), order.begin() + std::min<int64_t>(count, int64_t(order.size())));
}

void Evaluate::evaluateAlong(Leaf leaf, Elements &elements, std::vector<int64_t> indices) {
  const std::string op = terms.definition(leaf).op;
  const std::vector<int64_t> numbers = terms.definition(leaf).numbers;
  const Term body = terms.definition(leaf).bodies[0];
  const size_t axis = size_t(numbers[0]);
  const std::vector<int64_t> &shape = elements.shape;
  const bool isChoice = op == "topk-indices";
  std::vector<double> row;
  for (int64_t i = 0; i < (isChoice ? numbers[1] : shape[axis]) && failure.empty(); i++) {
    indices[axis] = i;
    row.push_back(value(body, point(indices)));
  }
  if (row.empty())
    return;
  row = isChoice ? bestOf(row, numbers[2], numbers[3] != 0)
                 : alongRow(op, std::move(row), numbers.size() > 1 && numbers[1] != 0,
                            numbers.size() > 2 && numbers[2] != 0);
  for (size_t i = 0; i < row.size(); i++) {
    indices[axis] = int64_t(i);
    int64_t flat = 0;
    for (size_t k = 0; k < indices.size(); k++)
      flat = flat * shape[k] + indices[k];
    elements.values[size_t(flat)] = row[i];
    elements.isKnown[size_t(flat)] = true;
  }
}

} // namespace k2c::onnx
