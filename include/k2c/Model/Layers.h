//===- Layers.h - The ops of a layer, with their sizes --------------------===//
//
// What a layer computes of a token's row is said once, here: the frontend prints the model form from the list, the
// planner counts from it what a program packs, keeps and computes. Sizes are logical: elements of a row, before packing
// and before anything is split.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_MODEL_LAYERS_H
#define K2C_MODEL_LAYERS_H

#include "k2c/Model/ModelSpec.h"
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace k2c {

/// What one plane of the cache keeps of a token in a layer.
struct CachedRow {
  const char *plane = "";                                               ///< k, v; latent, rope
  int64_t heads = 0;                                                    ///< 0: one row for all heads
  int64_t elements = 0;                                                 ///< of a head
  int64_t width() const { return heads ? heads * elements : elements; } ///< of a token
  std::vector<int64_t> dims() const;                                    ///< [heads][elements], or [elements]
};

/// Sizes of an attention, whatever its form. Latent attention has two ways to the same result: it expands keys and
/// values of every head from a cached row, or brings the query to that row (absorbed). Where keys and values are cached
/// as they are, both ways have the same sizes and nothing is expanded.
struct AttentionSizes {
  int64_t heads = 0;              ///< of queries
  int64_t keyHeads = 0;           ///< of the keys and values that they meet
  int64_t key = 0;                ///< elements of a query, and of a key that it meets
  int64_t value = 0;              ///< elements of a value
  int64_t absorbedKey = 0;        ///< elements of a query that meets a cached row itself
  int64_t absorbedValue = 0;      ///< elements of what such a query reads of it
  double expansion = 0;           ///< multiply-adds that expand one cached row for one head, or absorb its query
  int64_t latents = 0;            ///< widths of the latents that queries, keys and values come from
  std::array<CachedRow, 2> cache; ///< what a layer keeps of a token
  int64_t window = 0;             ///< keys that a query sees at most, its own included; 0: all
  std::optional<IndexerSpec> indexer;

  bool isLatent() const { return expansion > 0; }
  /// Elements that a layer keeps of a token, and what keys and values that queries meet would be.
  int64_t cachedElements() const { return cache[0].width() + cache[1].width(); }
  int64_t expandedElements() const { return keyHeads * (key + value); }
  /// Heads of cached keys that ranks can share out; 1: each of them needs the whole row.
  int64_t cachedHeads() const { return std::max<int64_t>(1, cache[0].heads); }
  /// Of `tokens`, those that stay in the cache, and that a query which could see all of them may see.
  template <class Number> Number within(Number tokens) const {
    return window > 0 ? std::min(tokens, Number(window)) : tokens;
  }
  /// Keys that a query which could see `keys` of them meets.
  double seenKeys(double keys) const;
  /// Floating-point operations that choose these keys.
  double indexingFlops(double queries, double keys) const;
};
AttentionSizes attentionSizes(const AttentionSpec &attention);

/// An attention with the layers that have it.
struct AttentionLayers {
  AttentionSizes sizes;
  IndexSet layers;
};
/// Of these layers, how many are in `range`.
int64_t countWithin(const IndexSet &layers, LayerRange range);
/// The attentions of a model, in the order of their first layers.
std::vector<AttentionLayers> attentionLayers(const ModelSpec &spec);

/// The greatest number of ranks that all attentions of a model can divide their query heads among.
int64_t commonHeads(const ModelSpec &spec);

/// The layers of a cache group, which keep equal rows.
struct CachePool {
  int64_t group = 0;
  std::array<CachedRow, 2> rows;
  IndexSet layers;
};
/// One for each cache group, in order.
std::vector<CachePool> cachePools(const ModelSpec &spec);

/// What an op does with a token's row; the names are those of the ops of the dialects.
enum class LayerOpKind {
  RmsNorm,         ///< of each last dimension
  Linear,          ///< W x, and a bias where there is a family of one
  Reshape,         ///< the same elements
  Split,           ///< into consecutive parts, one result each
  Clip,            ///< bounds both ways
  Rotary,          ///< turns pairs of the last dimension
  Append,          ///< keys and values go to the cache; its view
  Attention,       ///< queries against that view
  LatentAppend,    ///< the latent and the rotated key go to the cache; its view
  LatentAttention, ///< queries against that view, through the weights
  GatedAct,        ///< act(gate) * up
  Routing,         ///< a router's logits to experts and their weights
  Experts,         ///< the chosen experts' MLPs, summed by their weights
  Add
};

/// One op. Values are numbered in the order in which they arise: 0 is the layer's input, then come the results of each
/// op.
struct LayerOp {
  LayerOpKind kind = LayerOpKind::Add;
  std::vector<size_t> inputs;                ///< values
  std::vector<std::vector<int64_t>> results; ///< a row of each result; none of a view
  std::vector<std::string> weights;          ///< families it reads, by id; biases left out
  double number = 0;                         ///< RmsNorm: epsilon. Clip: bound
  int64_t first = 0;                         ///< Rotary: element of the last dimension that it begins with
};

/// The ops of a layer of that kind. The last result is the layer's.
std::vector<LayerOp> layerOps(const ModelSpec &spec, const LayerKind &kind);

/// Heads that share out the rows of a matrix, by family; those whose rows belong to no head are not in it.
std::map<std::string, int64_t> headsOfWeights(const ModelSpec &spec);

/// The kinds that `spec` has layers of, dense ones first.
std::vector<LayerKind> layerKinds(const ModelSpec &spec);

/// Names of the rotary tables that these kinds read, in order.
std::set<std::string> ropesOfLayers(const ModelSpec &spec);

} // namespace k2c

#endif // K2C_MODEL_LAYERS_H
