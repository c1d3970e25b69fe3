//===- Key.cpp - The canonical text of a kernel -------------------------------===//
//
// "linear x=token,7168,7168,f32 y=... order=7168/8 ...": every field in declaration order, doubles in hexadecimal, the
// name left out. Two descriptions with the same text are the same kernel: one object, one entry of the manifest.
//
//===----------------------------------------------------------------------===//
#include "k2c/Kernels/KernelDesc.h"
#include <cstdio>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace k2c {

namespace {

/// Appends " name=value" pieces. Strings passed are literals without spaces.
class KeyWriter {
public:
  std::string text;

  void kind(const char *name) { text = name; }
  void field(const char *name, int64_t value) { raw(name, std::to_string(value)); }
  void field(const char *name, double value) { raw(name, hexadecimal(value)); }
  void field(const char *name, DType type) { raw(name, std::string(k2c::name(type))); }
  void field(const char *name, const Rows &r) {
    static const char *const spaces[] = {"token", "output", "slot"};
    raw(name, std::string(spaces[static_cast<int>(r.space)]) + "," + std::to_string(r.width) + "," +
                  std::to_string(r.stride) + "," + std::string(k2c::name(r.type)));
  }
  void field(const char *name, const Matrix &m) {
    raw(name, std::string(k2c::name(m.type)) + "," + std::to_string(m.count) + "x" + std::to_string(m.n) + "x" +
                  std::to_string(m.k) + "," + std::to_string(m.parts) +
                  (m.isScaled() ? "," + std::to_string(m.blockColumns) + "x" + std::to_string(m.blockRows) : ""));
  }
  void field(const char *name, const Contraction &c) {
    raw(name, std::to_string(c.k) + "/" + std::to_string(c.leaves));
  }
  void field(const char *name, FormFilter filter) {
    static const char *const names[] = {"all", "expanded", "absorbed"};
    raw(name, names[static_cast<int>(filter)]);
  }
  void field(const AttentionShape &s) {
    field("heads", s.heads);
    field("scale", s.scale);
    field("group", s.group);
    field("max_logit", int64_t(s.maxLogit));
    field("cache", s.cache);
  }

  /// "mul=step0,input1:bf16"
  void field(const Elementwise &list) {
    static const char *const kinds[] = {"input", "step", "constant"};
    for (const ElementStep &step : list.steps) {
      std::string terms;
      for (const ElementTerm &term : step)
        terms += (terms.empty() ? "" : ",") + std::string(kinds[static_cast<int>(term.kind)]) +
                 (term.kind == ElementTerm::Kind::Constant ? hexadecimal(term.value) : std::to_string(term.index));
      raw(traitsOf(step.op).name, terms + ":" + std::string(k2c::name(step.type)));
    }
  }

private:
  static std::string hexadecimal(double value) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%a", value);
    return digits;
  }
  void raw(const char *name, const std::string &value) { text += std::string(" ") + name + "=" + value; }
};

void write(KeyWriter &k, const EmbedDesc &d) {
  k.kind("embed");
  k.field("vocab", d.vocab);
  k.field("hidden", d.hidden);
  k.field("table", d.table);
  k.field("y", d.y);
}

void write(KeyWriter &k, const RmsNormDesc &d) {
  k.kind("rms_norm");
  k.field("x", d.x);
  k.field("y", d.y);
  k.field("eps", d.eps);
  k.field("weight", d.weight);
  k.field("heads", d.heads);
}

void write(KeyWriter &k, const LinearDesc &d) {
  k.kind("linear");
  k.field("x", d.x);
  k.field("y", d.y);
  k.field("w", d.w);
  k.field("order", d.order);
  if (d.normEps > 0) {
    k.field("norm_eps", d.normEps);
    k.field("norm", d.normWeight);
  }
  k.field(d.epilogue);
  if (d.takes(LinearDesc::Bias))
    k.field("bias", d.biasType);
  if (d.takes(LinearDesc::Residual))
    k.field("residual", d.residual);
  k.field("grouped", int64_t(d.grouped));
  k.field("slots", d.slotsPerToken);
}

void write(KeyWriter &k, const HeadLinearDesc &d) {
  k.kind("head_linear");
  k.field("x", d.x);
  k.field("y", d.y);
  k.field("heads", d.heads);
  k.field("x_head_stride", d.xHeadStride);
  k.field("w", d.w);
  k.field("order", d.order);
  k.field("rows", d.rows);
}

void write(KeyWriter &k, const RotaryDesc &d) {
  k.kind("rotary");
  k.field("x", d.x);
  k.field("y", d.y);
  k.field("heads", d.heads);
  k.field("head_dim", d.headDim);
  k.field("first", d.first);
  k.field("count", d.count);
  k.field("positions", d.positions);
  k.field("interleaved", int64_t(d.interleaved));
}

void write(KeyWriter &k, const AppendDesc &d) {
  k.kind("append");
  for (size_t i = 0; i < d.x.size(); ++i) {
    k.field("x", d.x[i]);
    k.field("plane", d.planes[i]);
  }
  k.field("group", d.group);
}

void write(KeyWriter &k, const GqaAttentionDesc &d) {
  k.kind("gqa_attention");
  k.field(d.shape);
  k.field("kv_heads", d.kvHeads);
  k.field("key", d.keyDim);
  k.field("value", d.valueDim);
  k.field("q", d.q);
  k.field("o", d.o);
}

void write(KeyWriter &k, const AbsorbedAttentionDesc &d) {
  k.kind("absorbed_attention");
  k.field(d.shape);
  k.field("latent", d.latent);
  k.field("rope", d.rope);
  k.field("q_latent", d.qLatent);
  k.field("q_rope", d.qRope);
  k.field("o", d.o);
  k.field("q_rope_head_stride", d.qRopeHeadStride);
  k.field("rows", d.rows);
}

void write(KeyWriter &k, const ExpandedAttentionDesc &d) {
  k.kind("expanded_attention");
  k.field(d.shape);
  k.field("latent", d.latent);
  k.field("nope", d.nope);
  k.field("rope", d.rope);
  k.field("value", d.value);
  k.field("q", d.q);
  k.field("o", d.o);
  k.field("uk", d.uk);
  k.field("uv", d.uv);
  k.field("rows", d.rows);
}

void write(KeyWriter &k, const RoutingDesc &d) {
  k.kind(d.scoring == Scoring::Sigmoid ? "routing_sigmoid" : "routing_softmax");
  k.field("logits", d.logits);
  k.field("experts", d.experts);
  k.field("top", d.topK);
  k.field("groups", d.groups);
  k.field("top_groups", d.topkGroups);
  k.field("group_best", d.groupBest);
  k.field("bias", int64_t(d.bias));
  k.field("normalize", int64_t(d.normalize));
  k.field("scale", d.scale);
}

void write(KeyWriter &k, const PermutationDesc &d) {
  k.kind("permutation");
  k.field("experts", d.experts);
  k.field("top", d.topK);
}

void write(KeyWriter &k, const PermuteDesc &d) {
  k.kind("permute");
  k.field("x", d.x);
  k.field("y", d.y);
  k.field("experts", d.experts);
  k.field("top", d.topK);
}

void write(KeyWriter &k, const UnpermuteDesc &d) {
  k.kind("unpermute");
  k.field("x", d.x);
  k.field("y", d.y);
  k.field("experts", d.experts);
  k.field("top", d.topK);
  k.field("leaves", d.leaves);
}

void write(KeyWriter &k, const RowwiseDesc &d) {
  k.kind("rowwise");
  for (const Rows &input : d.inputs)
    k.field("input", input);
  k.field(d.list);
  k.field("y", d.y);
  k.field("slots", d.slotsPerToken);
}

void write(KeyWriter &k, const OutputRowsDesc &d) {
  k.kind("output_rows");
  k.field("x", d.x);
  k.field("y", d.y);
}

void write(KeyWriter &k, const CaptureDesc &d) {
  k.kind("capture");
  k.field("x", d.x);
}

} // namespace

std::string canonicalKey(const KernelDesc &desc) {
  KeyWriter key;
  std::visit([&](const auto &body) { write(key, body); }, desc.body);
  return std::move(key.text);
}

std::string kernelHash(const KernelDesc &desc) {
  std::string key = canonicalKey(desc);
  XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return digits;
}

std::string kernelSymbol(const KernelDesc &desc) { return "k2c_" + kernelHash(desc); }

} // namespace k2c
