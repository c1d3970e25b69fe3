//===- Flops.cpp - FLOP of latent attention and experts -------------------===//

#include "k2c/Formulas/Flops.h"

using namespace k2c;

Checked k2c::latentAttentionFlops(const MlaSpec &mla, int64_t hidden, Phase phase, int64_t tokens, LatentForm form,
                                  bool paper) {
  const Checked keys = tokens, queries = phase == Phase::Prefill ? tokens : 1;
  const Checked heads = mla.heads, withValues = paper ? 1 : 2;
  const LatentMatrices w = latentMatrices(mla, hidden);
  // Equations 1-4 and 6 (8-11 and 13): every new token through the down projections and the queries' up projection.
  Checked flops = queries * 2 * (w.dq + w.uq + w.qr + w.dkv + w.kr);
  if (form == LatentForm::Naive) {
    flops += keys * 2 * (w.uk + w.uv);                                                               // 5, 7, 12, 14
    flops += queries * keys * heads * (Checked(2) * (mla.nope + mla.rope) + withValues * mla.value); // 15-17
    return flops + queries * 2 * w.o;                                                                // 18, 19
  }
  flops += queries * 2 * w.uk;                                                                        // 30, 34
  flops += queries * keys * heads * (Checked(2) * (mla.latent + mla.rope) + withValues * mla.latent); // 31, 32, 35, 36
  return flops + queries * 2 * (w.o + w.uv);                                                          // 37, 38
}

int64_t k2c::formCheaperFrom(const MlaSpec &mla, int64_t hidden, Phase phase, LatentForm wanted, bool orEqual,
                             bool paper) {
  LatentForm other = wanted == LatentForm::Naive ? LatentForm::Absorbed : LatentForm::Naive;
  for (int64_t tokens = 1; tokens <= int64_t(1) << 20; ++tokens) {
    Checked a = latentAttentionFlops(mla, hidden, phase, tokens, wanted, paper);
    Checked b = latentAttentionFlops(mla, hidden, phase, tokens, other, paper);
    if (!a.isValid() || !b.isValid())
      return 0;
    if (a.value() < b.value() || (orEqual && a.value() == b.value()))
      return tokens;
  }
  return 0;
}

Checked k2c::expertLayerFlops(const ModelSpec &spec, int64_t tokens) {
  if (!spec.moe)
    return 0;
  Checked experts = Checked(spec.moe->topK) + sharedExperts(spec);
  return Checked(tokens) * 6 * spec.hidden * spec.moe->inter * experts +
         Checked(tokens) * 2 * spec.hidden * spec.moe->experts;
}
