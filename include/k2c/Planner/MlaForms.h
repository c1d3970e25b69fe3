//===- MlaForms.h - Expanded or absorbed latent attention -------------------===//
//
// With d_c = latent, d_h = nope, d_R = rope, d_v = value, T query tokens and S keys, a head costs (without the causal
// discount, which both forms share):
//
//   expanded   T S (2 (d_h + d_R) + 2 d_v)  +  S 2 d_c (d_h + d_v)      each key is expanded once
//   absorbed   T S (2 (d_c + d_R) + 2 d_c)  +  T 2 d_c (d_h + d_v)      each query is absorbed once
//
// Few queries on many keys want the absorbed form, many queries the expanded one. The forms cost the same at
//   T*(S) = S d_c (d_h + d_v) / (S D + d_c (d_h + d_v)),   D = (2 d_c + d_R) - (d_h + d_R + d_v)
// which rises with S towards d_c (d_h + d_v) / D: 170.67 tokens for DeepSeek V3 and Kimi K2, 146.3 at S = 1024. The
// crossover (numerics N4) is fixed before S is known, so it takes the limit.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_MLAFORMS_H
#define K2C_PLANNER_MLAFORMS_H

#include "k2c/Model/Layers.h"
#include "k2c/Support/Units.h"
#include <cstdint>
#include <optional>
#include <string_view>

namespace k2c {

/// `--mla`: one form everywhere, or by the new-token count of a prompt segment.
enum class MlaForms : uint8_t { Phased, Absorbed, Expanded };
/// The forms as options and manifests spell them: "phased", "absorbed" or "expanded".
std::string_view name(MlaForms forms);
/// The forms that are spelt so, or nothing.
std::optional<MlaForms> parseMlaForms(std::string_view word);

/// FLOP of all heads for `queries` tokens that each see `keys` keys. Where nothing is expanded both are the same.
Flops expandedFlops(const AttentionSizes &sizes, double queries, double keys);
Flops absorbedFlops(const AttentionSizes &sizes, double queries, double keys);

/// Query tokens at which both forms cost the same on `keys` keys, or on any number of them as it grows without bound.
/// Nothing: the absorbed form never costs more.
std::optional<double> mlaCrossover(const AttentionSizes &sizes, std::optional<double> keys = std::nullopt);

/// The manifest's "prompt_expanded_at_least": prompt segments of at least so many new tokens run expanded; 0: all, -1:
/// none, as where nothing is expanded.
int64_t expandedFrom(const AttentionSizes &sizes, MlaForms forms);

} // namespace k2c

#endif // K2C_PLANNER_MLAFORMS_H
