//===- Cost.h - FLOP and bytes of a kernel ------------------------------------===//
//
// The counting reading of a description. The planner predicts steps from it, `bytes_per_token` is a sum of it.
//
// FLOP are those of contractions and attention, two a multiply-add; element-wise work is left out because its time is
// that of its bytes. Bytes are what must cross a memory border once: every operand read or written once, padding of
// panels included; what a tile reads again from a cache is left out, and so is the second and further expansion of MLA
// keys when several blocks of tokens of one sequence expand them.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_COST_H
#define K2C_KERNELS_COST_H

#include "k2c/Kernels/WeightLayout.h"
#include "k2c/Support/Units.h"

namespace k2c {

/// What a launch works on.
struct Load {
  int64_t rows = 0;   ///< token rows (those of the kernel's form), or output rows where the kernel's rows are Output
  double context = 0; ///< attention: mean number of keys a row attends to, itself included
  double keys = 0;    ///< attention: cached tokens read, each once a sequence: decode of B sequences: B * context
};

/// Work of one launch; of several when they are added up. Memory traffic is apart by what it moves, since each kind has
/// its own place: weights stream, activations stay in caches.
struct Cost {
  Flops flops;   ///< two a multiply-add
  Bytes weights; ///< weights and tables; grouped linears: those of the experts hit on average (see hitExperts)
  Bytes cache;   ///< cache planes, read or (append) written
  Bytes read;    ///< activations
  Bytes written; ///< activations
  Cost &operator+=(const Cost &other);
};

/// What a launch of `desc`, whose matrices lie in `layout`, computes and moves on `load`.
Cost count(const KernelDesc &desc, const Load &load, WeightLayout layout = WeightLayout::Panels);

/// Which rows of a step a kernel works on: all, the output rows, or those of one form of latent attention.
enum class CountedRows : uint8_t { Token, Output, Expanded, Absorbed };

/// `count` as numbers, for readers of a bundle that have no KernelDesc (manifest.json):
///   flops = rows * (flopsPerRow + context * flopsPerRowKey) + keys * flopsPerKey
///   bytes = fixedBytes + expertBytes * hitExperts(experts, topK, rows) / experts + rows * bytesPerRow
///         + keys * bytesPerKey
struct CostRule {
  CountedRows rows = CountedRows::Token; ///< what `rows` of the formulas counts
  double flopsPerRow = 0;                ///< FLOP of a row whatever it attends to
  double flopsPerRowKey = 0;             ///< FLOP of a row for each key it attends to
  double flopsPerKey = 0;                ///< FLOP of a cached key, once for all rows: the expansion of its latent
  double fixedBytes = 0;                 ///< read by every launch: weights, except those of routed experts
  double bytesPerRow = 0;                ///< activations, and cache written
  double bytesPerKey = 0;                ///< cache read
  double expertBytes = 0;                ///< weights of all routed experts
  int64_t experts = 0, topK = 0;         ///< 0: no routed experts
};

/// Calls visit(name, number) for the fields of `rule` but its rows, and for those of routed experts if it has any or
/// `all`: how a rule is written into the IR and the manifest, and read again.
template <class Rule, class Visit> void visitNumbers(Rule &rule, bool all, Visit visit) {
  visit("flops_per_row", rule.flopsPerRow);
  visit("flops_per_row_key", rule.flopsPerRowKey);
  visit("flops_per_key", rule.flopsPerKey);
  visit("fixed_bytes", rule.fixedBytes);
  visit("bytes_per_row", rule.bytesPerRow);
  visit("bytes_per_key", rule.bytesPerKey);
  if (!all && rule.experts == 0)
    return;
  visit("expert_bytes", rule.expertBytes);
  visit("experts", rule.experts);
  visit("top_k", rule.topK);
}

/// "token", "output", "expanded", "absorbed".
const char *nameOf(CountedRows rows);

/// The rule by which `count` counts `desc`: both give the same numbers for every load.
CostRule costRule(const KernelDesc &desc, WeightLayout layout);

/// Bytes of one token row (or output row) of a kernel that works row by row: activations, cache, rows of a table.
Bytes bytesOfRow(const KernelDesc &desc);

/// Mean number of distinct experts among `experts` that `tokens` tokens with `topK` distinct experts each visit:
/// E * (1 - (1 - k / E)^N), exact for every router under which all experts are equally likely.
double hitExperts(int64_t experts, int64_t topK, double tokens);

} // namespace k2c

#endif // K2C_KERNELS_COST_H
