//===- Flops.h - FLOP of latent attention and of experts ------------------===//
//
// Published FLOP counts of paper 004: latent attention in either form, and the routed layer. The planner's cost models
// count kernels instead (k2c/Kernels/Cost.h and lib/Planner/Cluster).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_FORMULAS_FLOPS_H
#define K2C_FORMULAS_FLOPS_H

#include "k2c/Planner/Count.h"

namespace k2c {

/// One sequence, one layer: all of its `tokens` at once, or one new token on `tokens` cached ones.
enum class Phase : uint8_t { Prefill, Decode };
/// Naive: keys and values are expanded from the latents; Absorbed: queries move into the latent space instead.
enum class LatentForm : uint8_t { Naive, Absorbed };
/// FLOP of latent attention (paper 004, equations 1-38), without causal discount. `paper`: products with V count one
/// FLOP for each multiply-add, as equations 16, 17, 32 and 36 print them.
Checked latentAttentionFlops(const MlaSpec &mla, int64_t hidden, Phase phase, int64_t tokens, LatentForm form,
                             bool paper);
/// Fewest tokens from 1 at which `wanted` costs less than (or, with `orEqual`, no more than) the other form; 0: none up
/// to 2^20.
int64_t formCheaperFrom(const MlaSpec &mla, int64_t hidden, Phase phase, LatentForm wanted, bool orEqual, bool paper);
/// FLOP of the routed layer of `tokens` tokens (paper 004, equations 43-45): chosen and shared experts, router.
Checked expertLayerFlops(const ModelSpec &spec, int64_t tokens);

} // namespace k2c

#endif // K2C_FORMULAS_FLOPS_H
