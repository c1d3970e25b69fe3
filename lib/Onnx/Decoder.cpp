//===- Decoder.cpp - the residual stream, from its end to the embedding -----------------===//
//
//   logits = head norm(x_n)      x_n = embedding + attention_0 + feed-forward_0 + attention_1 + ..
//
// Every summand reads a norm of the sum of those before it: how many they are is its place. So the order of layers is
// found, whatever the order of additions is.
//
//===----------------------------------------------------------------------===//
#include "Decoder.h"

#include "Caches.h"
#include "base/Utf8.h"
#include <algorithm>
#include <map>

namespace k2c::onnx {

namespace {

class Finder {
public:
  explicit Finder(Matcher &matcher) : matcher(matcher), terms(matcher.terms), fold(matcher.fold) {}

  Expected<Decoder> find();
  FoundParts found;

private:
  /// What a summand of the residual stream reads of it.
  struct StreamNorm {
    NormLayer norm;
    std::vector<Term> before; ///< the summands that it reads, ascending
  };
  struct Attention {
    AttentionLayer layer;
    const StreamNorm *read = nullptr; ///< one of `norms`
    Term summand{};
  };
  struct FeedForwardPart {
    std::optional<MlpLayer> mlp;
    std::optional<ExpertsLayer> experts;
    std::optional<OneExpert> one;
    const StreamNorm *read = nullptr; ///< one of `norms`
    Term summand{};
  };

  /// The summands of the residual stream at the column's variable, sums that several nodes read opened.
  std::vector<Term> flattened(Term stream);
  std::vector<Term> ascending(std::vector<Term> summands) const;
  Status addSummand(Term summand);
  /// Whether a leaf of this op is in the term, or in contractions under it.
  bool leadsTo(Term term, const char *op, int depth);
  bool isOwnToken(Term term) const;
  Term ofAllRows(Term input);
  /// The norm that `input` is. Experts of a layer read the same one, whose summands are all of those before.
  Expected<const StreamNorm *> streamNorm(Term input);
  Status addAttention(AttentionLayer layer, Term summand);
  Status addFeedForward(Term input, Term summand, FeedForwardPart part);
  /// The experts of a graph that runs all of them, as one part.
  Status joinExperts(DecoderLayer &layer, std::vector<OneExpert> all);
  Status order();

  Matcher &matcher;
  Terms &terms;
  Fold &fold;
  Decoder out;
  Term column{};
  std::map<size_t, std::vector<Attention>> attentions;         // by the summands before
  std::map<size_t, std::vector<FeedForwardPart>> feedForwards; // likewise
  std::map<Term, StreamNorm> norms;                            // by what reads them
  std::map<Term, std::vector<Term>> streams;                   // summands by sums that several nodes read
  std::vector<Term> embeddings;
};

std::vector<Term> Finder::flattened(Term stream) {
  std::vector<Term> out, open{stream};
  while (!open.empty()) {
    const Term term = open.back();
    open.pop_back();
    if (const auto known = streams.find(term); known != streams.end()) {
      out.insert(out.end(), known->second.begin(), known->second.end());
      continue;
    }
    if (matcher.isElement(term, "shared")) {
      open.push_back(matcher.opened(term, column));
      continue;
    }
    if (terms.kind(term) != TermKind::Sum) {
      out.push_back(term);
      continue;
    }
    // A bias stands beside the linear layer that it is of.
    double constant = 0;
    std::vector<Term> layers, biases;
    for (const Part &part : matcher.summands(term, constant)) {
      if (part.factor != 1)
        out.push_back(terms.scale(part.term, part.factor));
      else if (matcher.view(part.term, {column}))
        biases.push_back(part.term);
      else
        (matcher.isElement(part.term, "sum") ? layers : open).push_back(part.term);
    }
    if (layers.size() == 1 && biases.size() == 1) {
      out.push_back(terms.add(layers[0], biases[0]));
    } else {
      out.insert(out.end(), layers.begin(), layers.end());
      out.insert(out.end(), biases.begin(), biases.end());
    }
    if (constant != 0)
      out.push_back(terms.number(constant));
  }
  if (matcher.isElement(stream, "shared"))
    streams[stream] = out;
  return out;
}

std::vector<Term> Finder::ascending(std::vector<Term> summands) const {
  std::sort(summands.begin(), summands.end());
  return summands;
}

Expected<const Finder::StreamNorm *> Finder::streamNorm(Term input) {
  if (const auto known = norms.find(input); known != norms.end())
    return &known->second;
  Expected<NormLayer> norm = matcher.norm(input, column);
  if (!norm)
    return norm.takeError();
  std::vector<Term> before = ascending(flattened(norm->input));
  return &norms.emplace(input, StreamNorm{std::move(*norm), std::move(before)}).first->second;
}

Status Finder::addAttention(AttentionLayer layer, Term summand) {
  const Expected<const StreamNorm *> read = streamNorm(layer.input);
  if (!read)
    return read.error();
  attentions[(*read)->before.size()].push_back({std::move(layer), *read, summand});
  found.attentions++;
  return Status::success();
}

Status Finder::addFeedForward(Term input, Term summand, FeedForwardPart part) {
  const Expected<const StreamNorm *> read = streamNorm(input);
  if (!read)
    return read.error();
  (part.experts ? found.experts : found.mlps)++;
  part.summand = summand;
  part.read = *read;
  feedForwards[(*read)->before.size()].push_back(std::move(part));
  return Status::success();
}

Status Finder::joinExperts(DecoderLayer &layer, std::vector<OneExpert> all) {
  const std::string place = "layer " + std::to_string(out.layers.size());
  const auto isBefore = [](const OneExpert &a, const OneExpert &b) { return a.expert < b.expert; };
  std::sort(all.begin(), all.end(), isBefore);
  Expected<RouterLayer> router = matcher.router(all[0].weight, all[0].chosen, all[0].slot);
  if (!router)
    return router.takeError();
  for (size_t i = 0; i < all.size(); i++) {
    if (all[i].expert != int64_t(i) || all[i].weight != all[0].weight || all[i].mlp.input != router->logits.input)
      return Error{fold.graph.path, place + ": expert " + std::to_string(i) + " is not there, or is weighed otherwise",
                   "export the model in a way that keeps all experts"};
    layer.eachExpert.push_back(std::move(all[i].mlp));
  }
  if (router->spec.experts != int64_t(all.size()))
    return Error{fold.graph.path,
                 place + " has weights of " + std::to_string(all.size()) + " experts, and its router " +
                     std::to_string(router->spec.experts),
                 "export the model in a way that keeps all experts"};
  layer.experts.emplace();
  layer.experts->router = std::move(*router);
  layer.experts->experts = layer.eachExpert[0];
  return Status::success();
}

Status Finder::addSummand(Term summand) {
  if (matcher.isStored(summand)) {
    embeddings.push_back(summand);
    return Status::success();
  }
  FeedForwardPart part;
  if (Expected<OneExpert> one = matcher.oneExpert(summand, column)) {
    const Term input = one->mlp.input;
    part.one = std::move(*one);
    return addFeedForward(input, summand, std::move(part));
  } else if (Expected<ExpertsLayer> experts = matcher.experts(summand, column)) {
    const Term input = experts->experts.input;
    part.experts = std::move(*experts);
    return addFeedForward(input, summand, std::move(part));
  } else if (Expected<MlpLayer> mlp = matcher.gatedMlp(summand, column); mlp && !mlp->down.expert) {
    const Term input = mlp->input;
    part.mlp = std::move(*mlp);
    return addFeedForward(input, summand, std::move(part));
  } else if (Expected<AttentionLayer> attention = matcher.attention(summand, column)) {
    return addAttention(std::move(*attention), summand);
  } else {
    return leadsTo(summand, "topk-indices", 3) ? experts.error()
           : leadsTo(summand, "softmax", 2)    ? attention.error()
                                               : mlp.error();
  }
}

bool Finder::leadsTo(Term term, const char *op, int depth) {
  bool isFound = false;
  terms.visit(term, [&](Term inner) {
    isFound = isFound || matcher.isElement(inner, op);
    if (depth > 0 && matcher.isElement(inner, "sum"))
      isFound = isFound || leadsTo(terms.definition(terms.leaf(inner)).bodies[0], op, depth - 1);
  });
  return isFound;
}

/// Whether the term is the id of the row's own token.
bool Finder::isOwnToken(Term term) const {
  return matcher.isElement(term, "input") && terms.definition(terms.leaf(term)).numbers[0] == fold.roles.tokens &&
         terms.partCount(term) == 2 && terms.part(term, 0) == terms.variable(batchAt, fold.batch) &&
         terms.part(term, 1) == terms.variable(rowAt, fold.sequence);
}

/// What the logits are of: those of the last token alone are what those of every one would be, at its row.
Term Finder::ofAllRows(Term input) {
  const Term row = terms.variable(rowAt, fold.sequence), last = terms.plus(fold.sequence, -1);
  return terms.rewrite(input, [&](Term inner) { return inner == last ? std::optional<Term>(row) : std::nullopt; });
}

Expected<Decoder> Finder::find() {
  // The logits are the output that is no cache: [batch, sequence, vocab], or [batch, 1, vocab] of the last token.
  ValueId logits = noValue;
  for (const Port &port : fold.graph.outputs)
    if (const Folded *value = fold.find(port.value); value && value->shape.size() == 3)
      logits = logits == noValue ? port.value : logits;
  if (logits == noValue)
    return Error{fold.graph.path, "no output is [batch, sequence, vocab]", "export a model with logits"};
  const Folded &value = *fold.find(logits);
  const Term vocab = terms.variable(columnAt, value.shape[2]);
  Expected<LinearLayer> head = matcher.linear(value.element, {vocab});
  if (!head)
    return head.takeError();
  if (head->bias)
    return matcher.mismatch(value.element, "logits without a bias");
  out.head = head->weight;
  out.vocab = out.head.shape[0];
  out.hidden = head->depth;
  found.vocab = out.vocab;
  found.hidden = out.hidden;
  column = terms.variable(columnAt, terms.number(double(out.hidden)));
  Expected<NormLayer> norm =
      matcher.norm(terms.asInteger(value.shape[1]) == 1 ? ofAllRows(head->input) : head->input, column);
  if (!norm)
    return norm.takeError();
  out.finalNorm = std::move(*norm);
  // From the first layer on: what a layer reads is what the one before read, and more.
  for (Term summand : ascending(flattened(out.finalNorm.input)))
    if (Status status = addSummand(summand); !status)
      return status.takeError();
  if (embeddings.size() != 1)
    return Error{fold.graph.path, std::to_string(embeddings.size()) + " tables of embeddings are added", ""};
  const LeafDefinition table = terms.definition(terms.leaf(embeddings[0]));
  Term row{};
  for (const Part &index : terms.parts(embeddings[0]))
    if (matcher.isElement(index.term, "input"))
      row = index.term;
  const std::optional<View> embedding = matcher.view(embeddings[0], {row, column});
  if (!embedding || !isOwnToken(row))
    return matcher.mismatch(embeddings[0], "rows of the embedding by ids of tokens");
  out.embedding = *embedding;
  for (size_t i = 0; i < table.shape.size(); i++)
    if (terms.part(embeddings[0], i) == row)
      out.embedding.shape[0] = terms.asInteger(table.shape[i]).value_or(0);
  if (Status status = order(); !status)
    return status.takeError();
  if (Status status = checkCaches(matcher, out.layers, logits); !status)
    return status.takeError();
  return std::move(out);
}

Status Finder::order() {
  std::vector<Term> before = embeddings; // the summands so far
  while (!attentions.empty() || !feedForwards.empty()) {
    DecoderLayer layer;
    const auto attention = attentions.find(before.size());
    if (attention == attentions.end() || attention->second.size() != 1 ||
        attention->second[0].read->before != ascending(before))
      return Error{fold.graph.path,
                   "behind layer " + std::to_string(out.layers.size()) +
                       ": no attention reads the sum of what stands before",
                   ""};
    layer.attention = std::move(attention->second[0].layer);
    layer.attentionNorm = attention->second[0].read->norm;
    before.push_back(attention->second[0].summand);
    attentions.erase(attention);
    const auto feedForward = feedForwards.find(before.size());
    const std::vector<Term> read = ascending(before);
    const auto readsOther = [&](const FeedForwardPart &part) { return part.read->before != read; };
    if (feedForward == feedForwards.end() ||
        std::any_of(feedForward->second.begin(), feedForward->second.end(), readsOther))
      return Error{fold.graph.path, "layer " + std::to_string(out.layers.size()) + " has no feed-forward part", ""};
    std::vector<OneExpert> all;
    for (FeedForwardPart &part : feedForward->second) {
      before.push_back(part.summand);
      layer.feedForwardNorm = part.read->norm;
      if (part.one)
        all.push_back(std::move(*part.one));
      else if (part.experts && !layer.experts)
        layer.experts = std::move(part.experts);
      else if (part.mlp && !layer.mlp)
        layer.mlp = std::move(part.mlp);
      else
        return Error{fold.graph.path, "layer " + std::to_string(out.layers.size()) + " has several feed-forward parts",
                     ""};
    }
    if (!all.empty())
      if (Status status = joinExperts(layer, std::move(all)); !status)
        return status;
    if (layer.experts)
      std::swap(layer.shared, layer.mlp);
    feedForwards.erase(feedForward);
    out.layers.push_back(std::move(layer));
  }
  return Status::success();
}

} // namespace

Expected<Decoder> findDecoder(Matcher &matcher, FoundParts *parts) {
  Finder finder(matcher);
  Expected<Decoder> decoder = finder.find();
  if (parts)
    *parts = finder.found;
  return decoder;
}

} // namespace k2c::onnx
