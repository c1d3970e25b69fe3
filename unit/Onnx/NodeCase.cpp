//===- NodeCase.cpp - folds and evaluates a case ----------------------------------===//
#include "NodeCase.h"

#include "Evaluate.h"
#include <cmath>

namespace k2c::onnx::test {

namespace {

using Kind = CaseOutcome::Kind;

/// A graph whose operands are partly known.
struct Case {
  Graph graph;
  std::unordered_map<ValueId, Tensor> given;        ///< of inputs that stay open
  std::unordered_map<std::string, Tensor> expected; ///< by the names of results
  std::unordered_map<std::string, int64_t> sizes;   ///< of inputs that stay open
};

enum class Known { Nothing, Integers, Everything };

/// Takes the operands and results out of a graph's constants, and puts those that are known back as constants.
Case prepared(Graph graph, Known known) {
  Case out;
  std::unordered_map<std::string, Tensor> given;
  for (auto at = graph.constants.begin(); at != graph.constants.end();) {
    const std::string &name = graph.values[size_t(at->first)];
    const bool isGiven = name.rfind("given/", 0) == 0, isExpected = name.rfind("expected/", 0) == 0;
    if (isGiven || isExpected)
      (isGiven ? given : out.expected)[name.substr(name.find('/') + 1)] = at->second;
    at = isGiven || isExpected ? graph.constants.erase(at) : std::next(at);
  }
  std::vector<Port> open;
  for (const Port &port : graph.inputs) {
    const Tensor &tensor = given[graph.values[size_t(port.value)]];
    if (known == Known::Everything || (known == Known::Integers && isWhole(tensor.type))) {
      graph.constants[port.value] = tensor;
      continue;
    }
    open.push_back(port);
    out.given[port.value] = tensor;
    for (size_t i = 0; i < tensor.shape.size(); i++)
      out.sizes["?" + std::to_string(port.value) + "." + std::to_string(i)] = tensor.shape[i];
  }
  graph.inputs = open;
  out.graph = std::move(graph);
  return out;
}

/// How far a result may be from what is expected, in units of its size.
double toleranceOf(ElementType type) { return type == ElementType::F16 || type == ElementType::BF16 ? 2e-2 : 1e-3; }

CaseOutcome compared(Fold &fold, Evaluate &evaluate, const Port &port, const Tensor &expected) {
  const std::string name = "result '" + fold.graph.values[size_t(port.value)] + "'";
  const Folded *const value = fold.find(port.value);
  if (!value)
    return {Kind::Refused, name + " has no value"};
  std::vector<int64_t> shape;
  for (Term size : value->shape) {
    const Expected<int64_t> number = evaluate.size(size);
    if (!number)
      return {Kind::Refused, number.error().message};
    shape.push_back(*number);
  }
  if (shape != expected.shape)
    return {Kind::Wrong, name + " has another shape"};
  const Expected<std::vector<double>> found = evaluate.elements(*value);
  if (!found)
    return {Kind::Refused, found.error().message};
  std::vector<double> elements = fold.elementsOf(expected, 0, expected.elements());
  elements.resize(found->size(), std::nan(""));
  for (size_t i = 0; i < found->size(); i++) {
    const double is = (*found)[i], should = elements[i];
    const bool isSame = is == should || (std::isnan(is) && std::isnan(should));
    if (!isSame && !(std::abs(is - should) <= toleranceOf(expected.type) * (1e-2 + std::abs(should))))
      return {Kind::Wrong, "element " + std::to_string(i) + " of " + name + " is " + std::to_string(is) + ", not " +
                               std::to_string(should)};
  }
  return {Kind::Right, ""};
}

CaseOutcome run(const Case &of) {
  Fold fold(of.graph, InputRoles{});
  if (const Status status = fold.run(); !status)
    return {Kind::Refused, status.error().message};
  std::unordered_map<ValueId, std::vector<double>> given;
  for (const auto &[value, tensor] : of.given) {
    given[value] = fold.elementsOf(tensor, 0, tensor.elements());
    given[value].resize(size_t(tensor.elements()), std::nan(""));
  }
  Evaluate evaluate(fold, of.sizes, [&](ValueId value, int64_t index) { return given.at(value)[size_t(index)]; });
  for (const Port &port : of.graph.outputs) {
    const auto expected = of.expected.find(of.graph.values[size_t(port.value)]);
    if (expected == of.expected.end())
      return {Kind::Wrong, "a result that the case does not have"};
    if (CaseOutcome outcome = compared(fold, evaluate, port, expected->second); outcome.kind != Kind::Right)
      return outcome;
  }
  return {Kind::Right, ""};
}

} // namespace

CaseOutcome runCase(const std::string &path) {
  CaseOutcome outcome;
  for (Known known : {Known::Nothing, Known::Integers, Known::Everything}) {
    Expected<Graph> graph = readGraph(path);
    if (!graph)
      return {Kind::Refused, graph.error().message};
    outcome = run(prepared(std::move(*graph), known));
    if (outcome.kind != Kind::Refused)
      break;
  }
  return outcome;
}

} // namespace k2c::onnx::test
