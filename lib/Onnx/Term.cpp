//===- Term.cpp - the pool of terms, sums and products -----------------------------===//
//
// Sums are flat: a summand is neither a number nor a sum. A product has no number among its factors, and a factor that
// is a sum has 1 as the factor of its first summand: both go into the factor of the product in its sum, so that
// 2 x (y + z) and x (2 y + 2 z) are one term. Products of integers are multiplied out.
//
//===----------------------------------------------------------------------===//
#include "Term.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

namespace k2c::onnx {

/// Bound of the summands of a product that is multiplied out.
constexpr size_t maxProducts = 4096;

Terms::Terms() : slots(1024) {
  make(TermKind::Number, 0, 0, {}, true);
  make(TermKind::Number, 0, 1, {}, true);
}

static size_t mix(size_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdull;
}

static uint64_t bitsOf(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

size_t Terms::hashOf(const Node &key, const Part *parts) {
  size_t hash = mix(mix(size_t(key.kind) + 1, uint64_t(uint32_t(key.tag))), bitsOf(key.number));
  for (uint32_t i = 0; i < key.count; i++)
    hash = mix(mix(hash, uint64_t(parts[i].term)), bitsOf(parts[i].factor));
  return hash ^ (hash >> 32);
}

Term Terms::make(TermKind kind, int32_t tag, double number, const std::vector<Part> &parts, bool isInteger) {
  Node key;
  key.kind = kind;
  key.tag = tag;
  key.number = number == 0 ? 0 : number; // no -0
  key.count = uint32_t(parts.size());
  const size_t hash = hashOf(key, parts.data());
  size_t at = hash & (slots.size() - 1);
  for (; slots[at].term; at = (at + 1) & (slots.size() - 1)) {
    if (slots[at].hash != uint32_t(hash >> 32))
      continue;
    const Node &found = nodes[slots[at].term - 1];
    if (found.kind == kind && found.tag == tag && bitsOf(found.number) == bitsOf(key.number) &&
        found.count == key.count && std::equal(parts.begin(), parts.end(), storage.begin() + found.begin))
      return Term(slots[at].term - 1);
  }
  key.isInteger = isInteger;
  key.variables = kind == TermKind::Variable ? tag + 1 : 0;
  for (const Part &part : parts) {
    key.variables = std::max(key.variables, node(part.term).variables);
    key.depth = std::max(key.depth, node(part.term).depth + 1);
  }
  key.begin = uint32_t(storage.size());
  storage.insert(storage.end(), parts.begin(), parts.end());
  nodes.push_back(key);
  slots[at] = {uint32_t(hash >> 32), uint32_t(nodes.size())};
  if (nodes.size() * 2 > slots.size())
    grow();
  return Term(nodes.size() - 1);
}

void Terms::grow() {
  slots.assign(slots.size() * 4, Slot{});
  for (size_t i = 0; i < nodes.size(); i++) {
    const size_t hash = hashOf(nodes[i], storage.data() + nodes[i].begin);
    size_t at = hash & (slots.size() - 1);
    while (slots[at].term)
      at = (at + 1) & (slots.size() - 1);
    slots[at] = {uint32_t(hash >> 32), uint32_t(i + 1)};
  }
}

std::vector<Part> Terms::parts(Term term) const {
  const auto from = storage.begin() + node(term).begin;
  return std::vector<Part>(from, from + node(term).count);
}

std::vector<Term> Terms::operands(Term term) const {
  std::vector<Term> out;
  for (size_t i = 0; i < partCount(term); i++)
    out.push_back(part(term, i));
  return out;
}

std::optional<int64_t> Terms::asInteger(Term term) const {
  const Node &found = node(term);
  if (found.kind != TermKind::Number || !found.isInteger)
    return std::nullopt;
  return int64_t(found.number);
}

Term Terms::number(double value) {
  const bool isInteger = std::floor(value) == value && std::abs(value) <= 9007199254740992.0;
  return make(TermKind::Number, 0, value, {}, isInteger);
}

Term Terms::variable(int32_t position, Term size) {
  if (asInteger(size) == 1)
    return number(0);
  return make(TermKind::Variable, position, 0, {{size, 1}}, true);
}

Term Terms::size(const std::string &symbol, int64_t min) {
  const auto [found, isNew] = symbolNumbers.try_emplace(symbol, int32_t(symbols.size()));
  if (isNew) {
    symbols.push_back(symbol);
    minSizes.push_back(min);
  }
  return make(TermKind::Size, found->second, 0, {}, true);
}

Leaf Terms::leafOf(LeafDefinition definition) {
  std::string key = definition.op;
  const auto append = [&key](int64_t value) { key.append(reinterpret_cast<const char *>(&value), sizeof value); };
  append(int64_t(definition.bodies.size()));
  for (Term body : definition.bodies)
    append(int64_t(body));
  append(int64_t(definition.numbers.size()));
  for (int64_t number : definition.numbers)
    append(number);
  for (Term size : definition.shape)
    append(int64_t(size));
  const auto [found, isNew] = leafByKey.try_emplace(std::move(key), Leaf(leaves.size()));
  if (isNew)
    leaves.push_back(std::move(definition));
  return found->second;
}

Term Terms::element(Leaf leaf, const std::vector<Term> &indices) {
  std::vector<Part> parts;
  parts.reserve(indices.size());
  for (Term index : indices)
    parts.push_back({index, 1});
  return elementOf(leaf, parts);
}

Term Terms::elementOf(Leaf leaf, const std::vector<Part> &indices) {
  const LeafDefinition &of = definition(leaf);
  bool areNumbers = constants && of.op == "constant";
  for (const Part &index : indices)
    areNumbers = areNumbers && asInteger(index.term);
  if (areNumbers) {
    std::vector<int64_t> numbers;
    for (const Part &index : indices)
      numbers.push_back(*asInteger(index.term));
    if (const std::optional<double> found = constants(leaf, numbers))
      return number(*found);
  }
  return make(TermKind::Element, int32_t(leaf), 0, indices, of.isInteger);
}

void Terms::collect(Term term, double factor, double &constant, std::vector<Part> &out) const {
  const Node &from = node(term);
  if (factor == 0)
    return;
  if (from.kind == TermKind::Number) {
    constant += factor * from.number;
  } else if (from.kind == TermKind::Sum) {
    constant += factor * from.number;
    for (uint32_t i = 0; i < from.count; i++)
      out.push_back({storage[from.begin + i].term, storage[from.begin + i].factor * factor});
  } else {
    out.push_back({term, factor});
  }
}

/// Sorts parts and adds the factors of equal ones; those of 0 go.
static void merge(std::vector<Part> &parts) {
  std::sort(parts.begin(), parts.end(), [](const Part &a, const Part &b) { return a.term < b.term; });
  size_t kept = 0;
  for (size_t i = 0; i < parts.size();) {
    Part merged = parts[i];
    for (i++; i < parts.size() && parts[i].term == merged.term; i++)
      merged.factor += parts[i].factor;
    if (merged.factor != 0)
      parts[kept++] = merged;
  }
  parts.resize(kept);
}

Term Terms::sum(double constant, std::vector<Part> summands) {
  std::vector<Part> flat;
  for (const Part &summand : summands)
    collect(summand.term, summand.factor, constant, flat);
  steps += flat.size();
  merge(flat);
  if (flat.empty())
    return number(constant);
  if (constant == 0 && flat.size() == 1 && flat[0].factor == 1)
    return flat[0].term;
  bool isWhole = std::floor(constant) == constant && !std::isinf(constant);
  for (const Part &part : flat)
    isWhole = isWhole && isInteger(part.term) && std::floor(part.factor) == part.factor;
  return make(TermKind::Sum, 0, constant, flat, isWhole);
}

std::pair<double, Term> Terms::splitFactor(Term term) {
  if (kind(term) == TermKind::Number)
    return {number(term), Term(1)};
  if (kind(term) != TermKind::Sum)
    return {1, term};
  const double factor = storage[node(term).begin].factor;
  if (factor == 1)
    return {1, term};
  // Divided, not multiplied by a reciprocal: the first factor is 1 then, and taking it out again changes nothing.
  std::vector<Part> divided = parts(term);
  for (Part &part : divided)
    part.factor /= factor;
  return {factor, sum(number(term) / factor, std::move(divided))};
}

/// Multiplies every summand of `sum` with `other`, which is a sum or not.
Term Terms::distribute(Term sum, Term other) {
  std::vector<Part> out{{other, number(sum)}};
  for (const Part &part : parts(sum))
    out.push_back({multiply(part.term, other), part.factor});
  return this->sum(0, out);
}

Term Terms::multiply(Term a, Term b) {
  if (isNumber(a))
    return scale(b, number(a));
  if (isNumber(b))
    return scale(a, number(b));
  // Polynomials of integers are multiplied out, as long as they are small.
  const bool areIntegers = isInteger(a) && isInteger(b) && partCount(a) * partCount(b) <= maxProducts;
  if (areIntegers && kind(a) == TermKind::Sum)
    return distribute(a, b);
  if (areIntegers && kind(b) == TermKind::Sum)
    return distribute(b, a);
  return product({{a, 1}, {b, 1}});
}

Term Terms::product(std::vector<Part> factors) {
  double factor = 1;
  std::vector<Part> flat;
  for (const Part &part : factors) {
    const auto [own, rest] = splitFactor(part.term);
    if (own < 0 && part.factor != std::floor(part.factor)) { // its factor cannot be taken out
      flat.push_back(part);
      continue;
    }
    factor *= std::pow(own, part.factor);
    if (kind(rest) == TermKind::Product && part.factor == std::floor(part.factor))
      for (const Part &inner : parts(rest))
        flat.push_back({inner.term, inner.factor * part.factor});
    else if (!isNumber(rest))
      flat.push_back({rest, part.factor});
  }
  merge(flat);
  if (flat.empty())
    return number(factor);
  bool isWhole = true;
  for (const Part &part : flat)
    isWhole = isWhole && isInteger(part.term) && part.factor == std::floor(part.factor) && part.factor > 0;
  const bool isPlain = flat.size() == 1 && flat[0].factor == 1;
  const Term term = isPlain ? flat[0].term : make(TermKind::Product, 0, 0, flat, isWhole);
  return factor == 1 ? term : scale(term, factor);
}

Term Terms::power(Term base, double exponent) {
  if (exponent == 0)
    return number(1);
  if (exponent == 1)
    return base;
  if (isNumber(base))
    return number(std::pow(number(base), exponent));
  // 1 / (1 + exp(-x)) is the sigmoid of x.
  if (exponent == -1 && kind(base) == TermKind::Sum && number(base) == 1 && partCount(base) == 1) {
    const Part only = parts(base)[0];
    if (only.factor == 1 && kind(only.term) == TermKind::Call && function(only.term) == Function::Exp)
      return call(Function::Sigmoid, {scale(part(only.term, 0), -1)});
  }
  if (exponent > 1 && exponent == std::floor(exponent) && isInteger(base) && exponent <= 4) {
    Term result = base;
    for (int i = 1; i < int(exponent); i++)
      result = multiply(result, base);
    return result;
  }
  return product({{base, exponent}});
}

Term Terms::call(Function function, const std::vector<Term> &arguments) {
  std::vector<Part> parts;
  for (Term argument : arguments)
    parts.push_back({argument, 1});
  if (function == Function::Max || function == Function::Min)
    std::sort(parts.begin(), parts.end(), [](const Part &a, const Part &b) { return a.term < b.term; });
  const bool isWhole = function == Function::Truncate || function == Function::IsNaN ||
                       ((function == Function::Max || function == Function::Min || function == Function::Abs ||
                         function == Function::Sign || function == Function::Relu) &&
                        std::all_of(arguments.begin(), arguments.end(), [&](Term t) { return isInteger(t); }));
  if (function == Function::Truncate && isInteger(arguments[0]))
    return arguments[0];
  return make(TermKind::Call, int32_t(function), 0, parts, isWhole);
}

} // namespace k2c::onnx
