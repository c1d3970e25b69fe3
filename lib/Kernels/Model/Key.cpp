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

std::string textOf(int64_t value) { return std::to_string(value); }
std::string textOf(DType type) { return std::string(name(type)); }
std::string textOf(double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%a", value);
  return digits;
}
std::string textOf(RowSpace space) {
  static const char *const names[] = {"token", "output", "slot", "entering"};
  return names[static_cast<int>(space)];
}
std::string textOf(const Rows &r) {
  return textOf(r.space) + "," + textOf(r.width) + "," + textOf(r.stride) + "," + textOf(r.type);
}
std::string textOf(const Matrix &m) {
  return textOf(m.type) + "," + textOf(m.count) + "x" + textOf(m.n) + "x" + textOf(m.k) + "," + textOf(m.parts) +
         (m.isScaled() ? "," + textOf(m.blockColumns) + "x" + textOf(m.blockRows) : "");
}
std::string textOf(const Contraction &c) { return textOf(c.k) + "/" + textOf(c.leaves); }
std::string textOf(FormFilter filter) {
  static const char *const names[] = {"all", "expanded", "absorbed"};
  return names[static_cast<int>(filter)];
}

/// " name=value". Names are literals without spaces.
template <class T> std::string field(const char *name, const T &value) {
  return std::string(" ") + name + "=" + textOf(value);
}
std::string fields() { return ""; }
template <class T, class... More> std::string fields(const char *name, const T &value, const More &...more) {
  return field(name, value) + fields(more...);
}

std::string fieldsOf(const AttentionShape &s) {
  return fields("heads", s.heads, "scale", s.scale, "group", s.group, "max_logit", int64_t(s.maxLogit), "cache",
                s.cache);
}

/// "mul=step0,input1:bf16"
std::string fieldsOf(const Elementwise &list) {
  static const char *const kinds[] = {"input", "step", "constant"};
  std::string text;
  for (const ElementStep &step : list.steps) {
    std::string terms;
    for (const ElementTerm &term : step)
      terms += (terms.empty() ? "" : ",") + std::string(kinds[static_cast<int>(term.kind)]) +
               (term.kind == ElementTerm::Kind::Constant ? textOf(term.value) : textOf(term.index));
    text += std::string(" ") + traitsOf(step.op).name + "=" + terms + ":" + textOf(step.type);
  }
  return text;
}

std::string keyOf(const EmbedDesc &d) {
  return "embed" + fields("vocab", d.vocab, "hidden", d.hidden, "table", d.table, "y", d.y);
}

std::string keyOf(const RmsNormDesc &d) {
  return "rms_norm" + fields("x", d.x, "y", d.y, "eps", d.eps, "weight", d.weight, "heads", d.heads);
}

std::string keyOf(const LinearDesc &d) {
  std::string text = "linear" + fields("x", d.x, "y", d.y, "w", d.w, "order", d.order);
  if (d.normEps > 0)
    text += fields("norm_eps", d.normEps, "norm", d.normWeight);
  text += fieldsOf(d.epilogue);
  if (d.takes(LinearDesc::Bias))
    text += field("bias", d.biasType);
  if (d.takes(LinearDesc::Residual))
    text += field("residual", d.residual);
  return text + fields("grouped", int64_t(d.grouped), "slots", d.slotsPerToken);
}

std::string keyOf(const HeadLinearDesc &d) {
  return "head_linear" + fields("x", d.x, "y", d.y, "heads", d.heads, "x_head_stride", d.xHeadStride, "w", d.w, "order",
                                d.order, "rows", d.rows);
}

std::string keyOf(const RotaryDesc &d) {
  return "rotary" + fields("x", d.x, "y", d.y, "heads", d.heads, "head_dim", d.headDim, "first", d.first, "count",
                           d.count, "positions", d.positions, "interleaved", int64_t(d.interleaved));
}

std::string keyOf(const AppendDesc &d) {
  std::string text = "append";
  for (size_t i = 0; i < d.x.size(); ++i)
    text += fields("x", d.x[i], "plane", d.planes[i]);
  return text + field("group", d.group);
}

std::string keyOf(const GqaAttentionDesc &d) {
  return "gqa_attention" + fieldsOf(d.shape) +
         fields("kv_heads", d.kvHeads, "key", d.keyDim, "value", d.valueDim, "q", d.q, "o", d.o);
}

std::string keyOf(const AbsorbedAttentionDesc &d) {
  return "absorbed_attention" + fieldsOf(d.shape) +
         fields("latent", d.latent, "rope", d.rope, "q_latent", d.qLatent, "q_rope", d.qRope, "o", d.o,
                "q_rope_head_stride", d.qRopeHeadStride, "rows", d.rows);
}

std::string keyOf(const ExpandedAttentionDesc &d) {
  return "expanded_attention" + fieldsOf(d.shape) +
         fields("latent", d.latent, "nope", d.nope, "rope", d.rope, "value", d.value, "q", d.q, "o", d.o, "uk", d.uk,
                "uv", d.uv, "rows", d.rows);
}

std::string keyOf(const RoutingDesc &d) {
  std::string text =
      (d.scoring == Scoring::Sigmoid ? "routing_sigmoid" : "routing_softmax") +
      fields("logits", d.logits, "experts", d.experts, "top", d.topK, "groups", d.groups, "top_groups", d.topkGroups,
             "group_best", d.groupBest, "bias", int64_t(d.bias), "normalize", int64_t(d.normalize), "scale", d.scale);
  if (d.bound.isBound())
    text += fields("nodes", d.bound.nodes, "node_slots", d.bound.slots, "most_nodes", d.bound.most, "penalty",
                   d.bound.penalty);
  return text;
}

std::string keyOf(const PermutationDesc &d) { return "permutation" + fields("experts", d.experts, "top", d.topK); }

std::string keyOf(const PermuteDesc &d) {
  return "permute" + fields("x", d.x, "y", d.y, "experts", d.experts, "top", d.topK);
}

std::string keyOf(const UnpermuteDesc &d) {
  return "unpermute" + fields("x", d.x, "y", d.y, "experts", d.experts, "top", d.topK, "leaves", d.leaves);
}

std::string keyOf(const RowwiseDesc &d) {
  std::string text = "rowwise";
  for (const Rows &input : d.inputs)
    text += field("input", input);
  return text + fieldsOf(d.list) + fields("y", d.y, "slots", d.slotsPerToken);
}

std::string keyOf(const OutputRowsDesc &d) { return "output_rows" + fields("x", d.x, "y", d.y); }

std::string keyOf(const CaptureDesc &d) { return "capture" + field("x", d.x); }

std::string keyOf(const LocateDesc &d) {
  return "locate" + fields("experts", d.experts, "top", d.topK, "slots", d.slots, "node", d.slotsOfNode);
}

std::string keyOf(const RoutePlanDesc &d) {
  return "route_plan" + fields("experts", d.experts, "top", d.topK, "members", d.members, "slots", d.slots);
}

std::string keyOf(const PackDesc &d) { return "pack" + fields("x", d.x, "top", d.topK); }

std::string keyOf(const UnpackDesc &d) { return "unpack" + fields("y", d.y, "top", d.topK, "members", d.members); }

std::string keyOf(const ReturnPlanDesc &d) {
  return "return_plan" + fields("experts", d.experts, "top", d.topK, "members", d.members, "slots", d.slots);
}

std::string keyOf(const ReduceSubtreesDesc &d) {
  return "reduce_subtrees" +
         fields("x", d.x, "y", d.y, "experts", d.experts, "top", d.topK, "slots", d.slots, "leaves", d.leaves);
}

std::string keyOf(const MergeSubtreesDesc &d) {
  return "merge_subtrees" +
         fields("x", d.x, "y", d.y, "experts", d.experts, "top", d.topK, "slots", d.slots, "leaves", d.leaves);
}

std::string keyOf(const CombineDesc &d) {
  return "combine" + fields("x", d.x, "y", d.y, "experts", d.experts, "top", d.topK, "leaves", d.leaves);
}

std::string keyOf(const TokenIdsDesc &) { return "token_ids"; }

std::string keyOf(const LookupDesc &d) { return "lookup" + fields("vocab", d.vocab, "table", d.table, "y", d.y); }

std::string keyOf(const SharePlanDesc &d) { return "share_plan" + fields("space", d.space, "members", d.members); }

std::string keyOf(const CloseGapsDesc &d) { return "close_gaps" + fields("y", d.y, "members", d.members); }

std::string keyOf(const ShareReturnDesc &d) { return "share_return" + fields("members", d.members); }

std::string keyOf(const JoinColumnsDesc &d) {
  return "join_columns" + fields("x", d.x, "y", d.y, "members", d.members);
}

std::string keyOf(const PartPlanDesc &d) { return "part_plan" + fields("top", d.topK, "members", d.members); }

std::string keyOf(const AddPartsDesc &d) {
  return "add_parts" + fields("x", d.x, "y", d.y, "top", d.topK, "members", d.members);
}

std::string keyOf(const BlockArgmaxDesc &d) { return "block_argmax" + fields("logits", d.logits, "block", d.block); }

std::string keyOf(const GreedySampleDesc &d) {
  return "greedy_sample" + fields("logits", d.logits, "blocks", d.blocks);
}

} // namespace

std::string canonicalKey(const KernelDesc &desc) {
  return std::visit([](const auto &body) { return keyOf(body); }, desc.body);
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
