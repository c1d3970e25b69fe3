//===- TinyFeedForward.cpp - MLPs and experts of small decoders -----------------===//
#include "TinyDecoder.h"

namespace k2c::onnx::test {

ValueId TinyDecoder::mlp(const std::string &prefix, ValueId rows) {
  const ValueId gate = part(prefix + "gate", linear(prefix + "wgate", rows, options.hidden, options.inter));
  const ValueId up = part(prefix + "up", linear(prefix + "wup", rows, options.hidden, options.inter));
  const ValueId silu = part(prefix + "silu", op("Mul", {gate, op("Sigmoid", {gate})}));
  const ValueId both = part(prefix + "both", op("Mul", {silu, up}));
  return part(prefix + "down", linear(prefix + "wdown", both, options.inter, options.hidden));
}

/// What experts are chosen by, of their scores.
ValueId TinyDecoder::choice(const std::string &prefix, ValueId scores) {
  ValueId choice = scores;
  if (options.hasChoiceBias)
    choice = op("Add", {scores, weight(prefix + "router.bias", {options.experts})});
  choice = part(prefix + "choice", choice);
  if (options.groups == 1)
    return choice;
  const int64_t inGroup = options.experts / options.groups;
  const ValueId grouped = reshaped(choice, {0, 0, options.groups, inGroup});
  const std::vector<ValueId> two = graph.nodes("TopK", {grouped, graph.list({2})}, 2, {{"axis", -1}});
  const ValueId scoresOfGroups =
      part(prefix + "groups", op("ReduceSum", {two[0], graph.list({-1})}, {{"keepdims", 0}}));
  const std::vector<ValueId> best =
      graph.nodes("TopK", {scoresOfGroups, graph.list({options.topGroups})}, 2, {{"axis", -1}});
  const ValueId zeros = op("ConstantOfShape", {op("Shape", {scoresOfGroups})});
  const ValueId ones = op("Cast", {op("Equal", {best[1], best[1]})}, {{"to", 1}});
  const ValueId chosen = op("ScatterElements", {zeros, best[1], ones}, {{"axis", -1}});
  const ValueId spread = op("Expand", {unsqueezed(chosen, {3}), graph.list({1, 1, 1, inGroup})});
  const ValueId isIn = op("Cast", {reshaped(spread, {0, 0, options.experts})}, {{"to", 9}});
  return op("Where", {isIn, choice, part(prefix + "outside", graph.number(-1e9))});
}

/// Chooses experts: "indices" and "weights", [batch, sequence, topK].
ValueId TinyDecoder::router(const std::string &prefix, ValueId rows) {
  const ValueId logits = part(prefix + "router", linear(prefix + "wrouter", rows, options.hidden, options.experts));
  const ValueId scores = part(prefix + "expert.scores",
                              options.isSigmoid ? op("Sigmoid", {logits}) : op("Softmax", {logits}, {{"axis", -1}}));
  const ValueId by = choice(prefix, scores);
  const int isLargest = changes.count(prefix + "smallest") == 0;
  changes.erase(prefix + "smallest");
  const std::vector<ValueId> best =
      graph.nodes("TopK", {by, graph.list({options.topK})}, 2, {{"axis", -1}, {"largest", isLargest}});
  part(prefix + "indices", best[1]);
  ValueId weights = op("GatherElements", {scores, best[1]}, {{"axis", -1}});
  if (options.normalizes)
    weights = op("Div", {weights, part(prefix + "weights.sum", op("ReduceSum", {weights, graph.list({-1})}))});
  return part(prefix + "expert.weights", weights);
}

/// The experts that were chosen, of stacked weights.
ValueId TinyDecoder::gathered(const std::string &prefix, ValueId rows) {
  const ValueId indices = values.at(prefix + "indices");
  const auto layer = [&](const std::string &name, ValueId of, int64_t depth, int64_t columns) {
    const ValueId stacked = weight(prefix + name, {options.experts, depth, columns});
    const ValueId own = part(prefix + name + ".gathered", op("Gather", {stacked, indices}));
    return part(prefix + name + ".rows", op("MatMul", {of, own}));
  };
  const ValueId tokens = unsqueezed(rows, {2, 3});
  const ValueId gate = layer("wgates", tokens, options.hidden, options.inter);
  const ValueId up = layer("wups", tokens, options.hidden, options.inter);
  const ValueId both = op("Mul", {op("Mul", {gate, op("Sigmoid", {gate})}), up});
  const ValueId down = op("Squeeze", {layer("wdowns", both, options.inter, options.hidden), graph.list({3})});
  const ValueId weighted = op("Mul", {down, unsqueezed(values.at(prefix + "expert.weights"), {3})});
  return op("ReduceSum", {part(prefix + "experts", weighted), graph.list({2})}, {{"keepdims", 0}});
}

/// All experts, each times its weight where it was chosen.
ValueId TinyDecoder::all(const std::string &prefix, ValueId rows) {
  ValueId out = noValue;
  for (int64_t expert = 0; expert < options.experts; expert++) {
    const std::string name = prefix + "expert" + std::to_string(expert);
    const ValueId isIt = op("Equal", {values.at(prefix + "indices"), graph.number(double(expert), ElementType::I64)});
    const ValueId own = op("Where", {isIt, values.at(prefix + "expert.weights"), graph.number(0)});
    const ValueId weight = part(name + ".weight", op("ReduceSum", {own, graph.list({-1})}, {{"keepdims", 1}}));
    const ValueId added = part(name, op("Mul", {mlp(name + ".", rows), weight}));
    if (added != noValue)
      out = out == noValue ? added : op("Add", {out, added});
  }
  return out;
}

ValueId TinyDecoder::experts(const std::string &prefix, ValueId rows) {
  router(prefix, part(prefix + "router.reads", rows));
  return options.runsAll ? all(prefix, rows) : gathered(prefix, rows);
}

} // namespace k2c::onnx::test
