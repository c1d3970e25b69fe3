//===- Layers.cpp - The ops of a layer, with their sizes ------------------===//
//
// A layer, with N an RMS norm:
//
//   y = x + Attention(N x)          z = y + Mlp(N y)   or   y + Moe(N y)
//
// Its kind says which attention that is, by which table queries and keys are turned, and whether norms stand behind
// attention and feed-forward part as well. Roles ("q_a", "experts_down") are the ids of the families file; an attention
// "local" beside the first one reads its own "local_q" where there is such a family. Residual additions are written as
// the published models compute them.
//
//===----------------------------------------------------------------------===//
#include "k2c/Model/Layers.h"

#include <algorithm>
#include <numeric>

using namespace k2c;

std::vector<int64_t> CachedRow::dims() const {
  return heads ? std::vector<int64_t>{heads, elements} : std::vector<int64_t>{elements};
}

double AttentionSizes::seenKeys(double keys) const {
  return indexer ? std::min(within(keys), double(indexer->topK)) : within(keys);
}

double AttentionSizes::indexingFlops(double queries, double keys) const {
  return indexer ? 2 * queries * keys * double(indexer->heads * indexer->dim) : 0;
}

static AttentionSizes sizesOf(const GqaSpec &gqa) {
  AttentionSizes sizes;
  sizes.heads = gqa.heads;
  sizes.keyHeads = gqa.kvHeads;
  sizes.key = sizes.value = sizes.absorbedKey = sizes.absorbedValue = gqa.headDim;
  sizes.cache = {CachedRow{"k", gqa.kvHeads, gqa.headDim}, CachedRow{"v", gqa.kvHeads, gqa.headDim}};
  sizes.window = gqa.window;
  return sizes;
}

static AttentionSizes sizesOf(const MlaSpec &mla) {
  AttentionSizes sizes;
  sizes.heads = sizes.keyHeads = mla.heads;
  sizes.key = mla.nope + mla.rope;
  sizes.value = mla.value;
  sizes.absorbedKey = mla.latent + mla.rope;
  sizes.absorbedValue = mla.latent;
  sizes.expansion = double(mla.latent) * double(mla.nope + mla.value);
  sizes.latents = mla.queryLatent + mla.latent;
  sizes.cache = {CachedRow{"latent", 0, mla.latent}, CachedRow{"rope", 0, mla.rope}};
  sizes.indexer = mla.indexer;
  return sizes;
}

AttentionSizes k2c::attentionSizes(const AttentionSpec &attention) {
  return std::visit([](const auto &variant) { return sizesOf(variant); }, attention);
}

namespace {

/// Appends ops; each returns its first result.
class LayerWriter {
public:
  LayerWriter(const ModelSpec &spec, const LayerKind &kind)
      : spec(spec), kind(kind), sizes(attentionSizes(spec.attentions.at(kind.attention))) {}

  std::vector<LayerOp> write();

private:
  using Row = std::vector<int64_t>;
  size_t op(LayerOpKind kind, std::vector<size_t> inputs, std::vector<Row> results,
            std::vector<std::string> weights = {});
  size_t same(LayerOpKind kind, size_t x, double number, std::vector<std::string> weights = {});
  std::string own(const std::string &role) const;
  size_t norm(size_t x, const std::string &id, double eps) { return same(LayerOpKind::RmsNorm, x, eps, {id}); }
  size_t linear(size_t x, const std::string &id, Row row) {
    return op(LayerOpKind::Linear, {x}, {std::move(row)}, {id});
  }
  size_t rotary(size_t x, int64_t first);
  size_t add(size_t x, size_t y) { return op(LayerOpKind::Add, {x, y}, {rows[x]}); }

  size_t attention(const GqaSpec &gqa, size_t h);
  size_t attention(const MlaSpec &mla, size_t h);
  size_t heads(const GqaSpec &gqa, size_t x, const char *normRole);
  size_t latentQuery(const MlaSpec &mla, size_t h);
  size_t output(size_t heads);
  size_t gatedMlp(size_t n, const char *gateUp, const char *down, int64_t inter);
  size_t moe(const MoeSpec &moe, size_t n);

  const ModelSpec &spec;
  const LayerKind &kind;
  const AttentionSizes sizes;
  std::vector<Row> rows; ///< of all values
  std::vector<LayerOp> ops;
};

size_t LayerWriter::op(LayerOpKind kind, std::vector<size_t> inputs, std::vector<Row> results,
                       std::vector<std::string> weights) {
  const size_t first = rows.size();
  rows.insert(rows.end(), results.begin(), results.end());
  ops.push_back({kind, std::move(inputs), std::move(results), std::move(weights)});
  return first;
}

/// An op whose result is shaped as its input.
size_t LayerWriter::same(LayerOpKind kind, size_t x, double number, std::vector<std::string> weights) {
  const size_t y = op(kind, {x}, {rows[x]}, std::move(weights));
  ops.back().number = number;
  return y;
}

/// The family of a role of attention: the kind's attention may have its own.
std::string LayerWriter::own(const std::string &role) const {
  const std::string id = kind.attention + "_" + role;
  return spec.find(id) ? id : role;
}

size_t LayerWriter::rotary(size_t x, int64_t first) {
  if (kind.rope.empty())
    return x;
  const size_t y = same(LayerOpKind::Rotary, x, 0);
  ops.back().first = first;
  return y;
}

/// Heads [heads][elements], normalised as the model does it (not, one by one, or as one row) and bounded.
size_t LayerWriter::heads(const GqaSpec &gqa, size_t x, const char *normRole) {
  if (normRole && gqa.norm == QueryKeyNorm::Head) {
    x = norm(x, own(normRole), spec.normEps);
  } else if (normRole && gqa.norm == QueryKeyNorm::Row) {
    const Row apart = rows[x];
    x = norm(op(LayerOpKind::Reshape, {x}, {{apart[0] * apart[1]}}), own(normRole), spec.normEps);
    x = op(LayerOpKind::Reshape, {x}, {apart});
  }
  return gqa.clip > 0 ? same(LayerOpKind::Clip, x, gqa.clip) : x;
}

size_t LayerWriter::attention(const GqaSpec &gqa, size_t h) {
  const size_t q = rotary(heads(gqa, linear(h, own("q"), {sizes.heads, sizes.key}), "q_norm"), 0);
  const size_t k = rotary(heads(gqa, linear(h, own("k"), sizes.cache[0].dims()), "k_norm"), 0);
  const size_t v = heads(gqa, linear(h, own("v"), sizes.cache[1].dims()), nullptr);
  const size_t kv = op(LayerOpKind::Append, {k, v}, {{}});
  return op(LayerOpKind::Attention, {q, kv}, {{sizes.heads, sizes.value}});
}

size_t LayerWriter::latentQuery(const MlaSpec &mla, size_t h) {
  const Row query = {sizes.heads, sizes.key};
  if (mla.queryLatent == 0)
    return linear(h, "q", query);
  return linear(norm(linear(h, "q_a", {mla.queryLatent}), "q_a_norm", mla.latentNormEps), "q_b", query);
}

size_t LayerWriter::attention(const MlaSpec &mla, size_t h) {
  const size_t q = rotary(latentQuery(mla, h), mla.nope);
  const size_t both = linear(h, "kv_a", {mla.latent + mla.rope});
  const size_t parts = op(LayerOpKind::Split, {both}, {sizes.cache[0].dims(), sizes.cache[1].dims()});
  const size_t latent = norm(parts, "kv_a_norm", mla.latentNormEps);
  const size_t key = rotary(parts + 1, 0);
  const size_t kv = op(LayerOpKind::LatentAppend, {latent, key}, {{}});
  return op(LayerOpKind::LatentAttention, {q, kv}, {{sizes.heads, sizes.value}}, {"kv_b"});
}

/// Projects the heads' outputs, laid one after another, to the residual stream.
size_t LayerWriter::output(size_t heads) {
  const size_t row = op(LayerOpKind::Reshape, {heads}, {{sizes.heads * sizes.value}});
  return linear(row, own("o"), {spec.hidden});
}

size_t LayerWriter::gatedMlp(size_t n, const char *gateUp, const char *down, int64_t inter) {
  const size_t both = linear(n, gateUp, {2, inter});
  return linear(op(LayerOpKind::GatedAct, {both}, {{inter}}), down, {spec.hidden});
}

size_t LayerWriter::moe(const MoeSpec &moe, size_t n) {
  const size_t logits = linear(n, "router", {moe.experts});
  std::vector<std::string> bias;
  if (moe.correctionBias)
    bias = {"selection_bias"};
  const size_t chosen = op(LayerOpKind::Routing, {logits}, {{moe.topK}, {moe.topK}}, std::move(bias));
  const size_t routed =
      op(LayerOpKind::Experts, {n, chosen, chosen + 1}, {{spec.hidden}}, {"experts_gate_up", "experts_down"});
  return moe.sharedInter == 0 ? routed : add(routed, gatedMlp(n, "shared_gate_up", "shared_down", moe.sharedInter));
}

std::vector<LayerOp> LayerWriter::write() {
  rows = {{spec.hidden}};
  auto behind = [&](size_t x, const char *id) {
    return kind.norms == LayerNorms::Around ? norm(x, id, spec.normEps) : x;
  };
  const size_t h = norm(0, "attention_norm", spec.normEps);
  const size_t heads =
      std::visit([&](const auto &variant) { return attention(variant, h); }, spec.attentions.at(kind.attention));
  const size_t y = add(0, behind(output(heads), "attention_out_norm"));
  const size_t n = norm(y, "mlp_norm", spec.normEps);
  const size_t part =
      kind.feedForward == FeedForward::Moe ? moe(*spec.moe, n) : gatedMlp(n, "gate_up", "down", spec.mlp->inter);
  add(y, behind(part, "mlp_out_norm"));
  return std::move(ops);
}

} // namespace

std::vector<LayerOp> k2c::layerOps(const ModelSpec &spec, const LayerKind &kind) {
  return LayerWriter(spec, kind).write();
}

std::vector<LayerKind> k2c::layerKinds(const ModelSpec &spec) {
  std::vector<LayerKind> kinds;
  for (const LayerRun &run : spec.layers)
    for (const LayerKind &kind : run.kinds)
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
        kinds.push_back(kind);
  std::stable_partition(kinds.begin(), kinds.end(),
                        [](const LayerKind &kind) { return kind.feedForward == FeedForward::Dense; });
  return kinds;
}

std::set<std::string> k2c::ropesOfLayers(const ModelSpec &spec) {
  std::set<std::string> names;
  for (const LayerKind &kind : layerKinds(spec))
    if (!kind.rope.empty())
      names.insert(kind.rope);
  return names;
}

int64_t k2c::countWithin(const IndexSet &layers, LayerRange range) {
  int64_t count = 0;
  for (const IndexRange &each : layers)
    count += each.below(range.end) - each.below(range.begin);
  return count;
}

std::vector<AttentionLayers> k2c::attentionLayers(const ModelSpec &spec) {
  std::vector<AttentionLayers> attentions;
  for (const auto &[name, attention] : spec.attentions) {
    IndexSet layers = spec.layersOf([name = name](const LayerKind &kind) { return kind.attention == name; });
    if (!layers.empty())
      attentions.push_back({attentionSizes(attention), std::move(layers)});
  }
  std::sort(attentions.begin(), attentions.end(), [](const AttentionLayers &a, const AttentionLayers &b) {
    return a.layers.front().from < b.layers.front().from;
  });
  return attentions;
}

int64_t k2c::commonHeads(const ModelSpec &spec) {
  int64_t heads = 0;
  for (const auto &[name, attention] : spec.attentions)
    heads = std::gcd(heads, attentionSizes(attention).heads);
  return heads;
}

std::vector<CachePool> k2c::cachePools(const ModelSpec &spec) {
  std::map<int64_t, CachePool> pools;
  for (const LayerKind &kind : layerKinds(spec))
    pools[kind.cacheGroup] = {kind.cacheGroup, attentionSizes(spec.attentions.at(kind.attention)).cache,
                              spec.layersOf([&](const LayerKind &o) { return o.cacheGroup == kind.cacheGroup; })};
  std::vector<CachePool> inOrder;
  for (auto &[group, pool] : pools)
    inOrder.push_back(std::move(pool));
  return inOrder;
}

std::map<std::string, int64_t> k2c::headsOfWeights(const ModelSpec &spec) {
  std::map<std::string, int64_t> heads;
  for (const LayerKind &kind : layerKinds(spec))
    for (const LayerOp &op : layerOps(spec, kind)) {
      const bool cutsRows = op.kind == LayerOpKind::LatentAttention || op.kind == LayerOpKind::Linear;
      const WeightFamily *family = cutsRows ? spec.find(op.weights[0]) : nullptr;
      // Alternatives (gate, up) are dimensions of their own, too.
      if (family && family->alternatives.empty() && op.results[0].size() == 2)
        heads[family->id] = op.results[0][0];
    }
  return heads;
}
