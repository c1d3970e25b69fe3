//===- Caches.cpp - what a graph keeps of past tokens ---------------------------------===//
//
// An output present(j) = past(j) for j below the number of past tokens, and new(j - past) behind, is what the next step
// takes as past. So a graph is right where its keys and values, with each past(j) replaced by new, are those of the
// step's own tokens: whatever is kept, expanded keys or a latent, in whatever layout.
//
//===----------------------------------------------------------------------===//
#include "Caches.h"

#include "base/Utf8.h"
#include <map>

namespace k2c::onnx {

namespace {

class CacheCheck {
public:
  CacheCheck(Matcher &matcher, ValueId logits) : matcher(matcher), terms(matcher.terms), fold(matcher.fold) {
    row = terms.variable(rowAt, fold.sequence);
    pastRow = terms.variable(keyAt, fold.past);
    for (const Port &port : fold.graph.outputs)
      if (port.value != logits)
        outputs.push_back(port.value);
  }

  Status readOutputs();
  /// Whether rows of past tokens are those of the step, once what is kept of them is.
  bool agree(Term rows, Term key);
  Status checkInputs();

private:
  bool areEqual(Term before, Term now);

  Matcher &matcher;
  Terms &terms;
  Fold &fold;
  Term row{}, pastRow{};
  std::vector<ValueId> outputs;
  /// By the leaf of an input: the axis that counts tokens, and the element of the output that continues it.
  struct Continued {
    size_t axis = 0;
    Term element{};
    bool isRead = false;
  };
  std::map<Leaf, Continued> continued;
};

Status CacheCheck::readOutputs() {
  for (ValueId output : outputs) {
    const Folded *const value = fold.find(output);
    const Error wrong{fold.graph.path,
                      "output '" + shortened(fold.graph.values[size_t(output)]) +
                          "' is neither logits nor a cache that goes on",
                      "export the model with logits and caches alone"};
    if (!value)
      return wrong;
    const Term all = terms.add(fold.past, fold.sequence);
    std::optional<size_t> axis;
    for (size_t i = 0; i < value->shape.size(); i++)
      if (value->shape[i] == all)
        axis = i;
    if (!axis || terms.isNumber(fold.past))
      return wrong;
    const Term index = terms.variable(int32_t(*axis), all);
    const Term before = matcher.replaced(matcher.unshared(value->element), index, pastRow);
    if (!matcher.isElement(before, "input"))
      return wrong;
    for (size_t i = 0; i < value->shape.size(); i++) {
      const Term at = terms.part(before, i);
      const Term own = terms.variable(int32_t(i), value->shape[i]);
      const bool isOwn = terms.kind(at) == TermKind::Variable ? terms.tag(at) == int32_t(i) : at == own;
      if (i == *axis ? at != pastRow : !isOwn)
        return wrong;
    }
    // Those who run the graph give the i-th output as the i-th input of the next step.
    const size_t place = continued.size();
    const std::vector<ValueId> &inputs = fold.roles.caches;
    const ValueId input = ValueId(terms.definition(terms.leaf(before)).numbers[0]);
    if (place >= inputs.size() || inputs[place] != input)
      return Error{fold.graph.path,
                   "output '" + shortened(fold.graph.values[size_t(output)]) + "' goes on with input '" +
                       shortened(fold.graph.values[size_t(input)]) + "', which does not stand at its place",
                   "export the model with caches in one order"};
    if (!continued.emplace(terms.leaf(before), Continued{*axis, matcher.unshared(value->element), false}).second)
      return wrong;
  }
  return Status::success();
}

bool CacheCheck::areEqual(Term before, Term now) {
  const Term position = terms.add(fold.past, row);
  const Term replaced = terms.rewrite(before, [&](Term inner) -> std::optional<Term> {
    const auto found = matcher.isElement(inner, "input") ? continued.find(terms.leaf(inner)) : continued.end();
    if (found == continued.end() || terms.part(inner, found->second.axis) != pastRow)
      return std::nullopt;
    found->second.isRead = true;
    std::vector<Term> indices = terms.operands(inner);
    indices[found->second.axis] = position;
    return terms.substitute(found->second.element, indices);
  });
  if (replaced == now)
    return true;
  // A linear layer of what is kept.
  if (matcher.isElement(before, "sum") && matcher.isElement(now, "sum")) {
    const std::optional<Term> size = matcher.runningSize(before);
    if (!size || size != matcher.runningSize(now))
      return false;
    const Term running = matcher.fresh(*size);
    return areEqual(matcher.unshared(matcher.opened(before, running)), matcher.unshared(matcher.opened(now, running)));
  }
  if (terms.kind(before) == TermKind::Select && terms.kind(now) == TermKind::Select &&
      terms.part(before, 0) == terms.part(now, 0))
    return areEqual(terms.part(before, 1), terms.part(now, 1)) && areEqual(terms.part(before, 2), terms.part(now, 2));
  return false;
}

bool CacheCheck::agree(Term rows, Term key) {
  if (terms.isNumber(fold.past))
    return true;
  const Term now = matcher.replaced(rows, key, terms.add(fold.past, row));
  return areEqual(matcher.replaced(rows, key, pastRow), now);
}

Status CacheCheck::checkInputs() {
  for (const auto &[leaf, of] : continued)
    if (!of.isRead)
      return Error{fold.graph.path,
                   "input '" + shortened(fold.graph.values[size_t(terms.definition(leaf).numbers[0])]) +
                       "' is kept and read by no attention",
                   "export the model without it"};
  if (continued.size() != fold.roles.caches.size())
    return Error{fold.graph.path,
                 std::to_string(fold.roles.caches.size()) + " inputs are caches, and " +
                     std::to_string(continued.size()) + " outputs go on with them",
                 "export the model with all of its caches as outputs"};
  return Status::success();
}

} // namespace

Status checkCaches(Matcher &matcher, const std::vector<DecoderLayer> &layers, ValueId logits) {
  CacheCheck check(matcher, logits);
  if (Status status = check.readOutputs(); !status)
    return status;
  for (size_t i = 0; i < layers.size(); i++) {
    const AttentionLayer &attention = layers[i].attention;
    for (Term rows : {attention.keys, attention.values})
      if (!check.agree(rows, attention.key))
        return matcher.mismatch(rows, "keys and values of past tokens of layer " + std::to_string(i) +
                                          " that are as those of the step");
  }
  return check.checkInputs();
}

} // namespace k2c::onnx
