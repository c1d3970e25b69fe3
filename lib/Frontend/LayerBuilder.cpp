//===- LayerBuilder.cpp - the ops of one layer ----------------------------===//
//
// A layer, with N an RMS norm:
//
//   y = x + Attention(N x)          z = y + Mlp(N y)   or   y + Moe(N y)
//
// Roles ("q_a", "experts_down") are the ids of the families file; a weight that
// the model does not have (a bias, a query latent) has no family.
//
//===----------------------------------------------------------------------===//
#include "LayerBuilder.h"

#include "mlir/IR/Location.h"

using namespace mlir;
using namespace k2c;

RankedTensorType ModuleTypes::rows(ArrayRef<int64_t> dims, nn::RowKind kind, Type element) const {
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  shape.append(dims.begin(), dims.end());
  return RankedTensorType::get(shape, element ? element : activation, nn::RowsAttr::get(context, kind));
}

nn::IndicesAttr ModuleTypes::indices(const std::vector<int64_t> &members) const {
  return nn::IndicesAttr::get(context, indexSetOf(members));
}

Location ModuleTypes::place(StringRef field) const {
  auto at = spec.places.find(field.str());
  if (at == spec.places.end())
    return UnknownLoc::get(context);
  return FileLineColLoc::get(context, at->second.file, static_cast<unsigned>(at->second.line),
                             static_cast<unsigned>(at->second.column));
}

Location ModuleTypes::place(const WeightFamily &family) const {
  return NameLoc::get(StringAttr::get(context, family.pattern));
}

FlatSymbolRefAttr LayerBuilder::symbol(StringRef id) { return FlatSymbolRefAttr::get(b.getContext(), id); }

Value LayerBuilder::indexOf(const WeightFamily &family) { return family.layers.empty() ? Value() : layer; }

Value LayerBuilder::linear(Value x, StringRef id, RankedTensorType type) {
  const WeightFamily &weight = *spec.find(id.str());
  const WeightFamily *bias = spec.find(id.str() + "_bias");
  return nn::LinearOp::create(b, types.place(weight), type, x, symbol(id), indexOf(weight),
                              bias ? symbol(bias->id) : FlatSymbolRefAttr(), bias ? indexOf(*bias) : Value(),
                              nn::TreeAttr());
}

Value LayerBuilder::rmsNorm(Value x, StringRef id, double eps) {
  const WeightFamily &weight = *spec.find(id.str());
  return nn::RmsNormOp::create(b, types.place(weight), x.getType(), x, symbol(id), indexOf(weight),
                               b.getF64FloatAttr(eps));
}

Value LayerBuilder::add(Value x, Value y) { return nn::AddOp::create(b, y.getLoc(), x.getType(), x, y); }

Value LayerBuilder::rotary(Value x, int64_t first) {
  auto pairs = spec.rope.pairs == RopePairs::Half ? nn::Pairing::Half : nn::Pairing::Interleaved;
  return nn::RotaryOp::create(b, types.place("rope"), x.getType(), x, symbol("rope"), Value(), batch, first,
                              spec.rope.dims, pairs);
}

/// Projects the heads' outputs, laid one after another, to the residual stream.
Value LayerBuilder::output(Value heads, int64_t width) {
  Value row = nn::ReshapeOp::create(b, heads.getLoc(), types.rows({width}), heads);
  return linear(row, "o", types.hidden());
}

/// Heads [rows, heads, dims], normalised as the model does it: not, one by one, or as one row.
Value LayerBuilder::normalized(const GqaSpec &gqa, Value heads, StringRef id) {
  if (gqa.norm == QueryKeyNorm::None)
    return heads;
  if (gqa.norm == QueryKeyNorm::Head)
    return rmsNorm(heads, id, spec.normEps);
  auto type = cast<RankedTensorType>(heads.getType());
  Value row = nn::ReshapeOp::create(b, heads.getLoc(), types.rows({type.getDimSize(1) * type.getDimSize(2)}), heads);
  return nn::ReshapeOp::create(b, heads.getLoc(), type, rmsNorm(row, id, spec.normEps));
}

Value LayerBuilder::clipped(const GqaSpec &gqa, Value heads) {
  return gqa.clip > 0
             ? nn::ClipOp::create(b, heads.getLoc(), heads.getType(), heads, b.getF64FloatAttr(gqa.clip)).getResult()
             : heads;
}

Value LayerBuilder::attention(const GqaSpec &gqa, Value h) {
  RankedTensorType query = types.rows({gqa.heads, gqa.headDim});
  RankedTensorType key = types.rows({gqa.kvHeads, gqa.headDim});
  Value q = rotary(clipped(gqa, normalized(gqa, linear(h, "q", query), "q_norm")), 0);
  Value k = rotary(clipped(gqa, normalized(gqa, linear(h, "k", key), "k_norm")), 0);
  Value v = clipped(gqa, linear(h, "v", key));
  Location loc = types.place("heads");
  auto view = nn::KvViewType::get(b.getContext(), gqa.kvHeads, gqa.headDim, gqa.headDim, types.cacheElement());
  Value kv = nn::AppendOp::create(b, loc, view, symbol("cache"), layer, k, v, batch);
  Value o = nn::AttentionOp::create(b, loc, query, q, kv, batch, b.getF64FloatAttr(spec.softmaxScale()),
                                    /*window=*/IntegerAttr(), nn::SoftmaxAttr());
  return output(o, gqa.heads * gqa.headDim);
}

Value LayerBuilder::latentQuery(const MlaSpec &mla, Value h) {
  RankedTensorType heads = types.rows({mla.heads, mla.nope + mla.rope});
  if (mla.queryLatent == 0)
    return linear(h, "q", heads);
  Value latent = linear(h, "q_a", types.rows({mla.queryLatent}));
  return linear(rmsNorm(latent, "q_a_norm", mla.latentNormEps), "q_b", heads);
}

Value LayerBuilder::attention(const MlaSpec &mla, Value h) {
  Value q = rotary(latentQuery(mla, h), mla.nope);
  Value both = linear(h, "kv_a", types.rows({mla.latent + mla.rope}));
  auto split = nn::SplitOp::create(b, both.getLoc(), TypeRange{types.rows({mla.latent}), types.rows({mla.rope})}, both);
  Value latent = rmsNorm(split.getResult(0), "kv_a_norm", mla.latentNormEps);
  Value key = rotary(split.getResult(1), 0);
  Location loc = types.place("kv_lora");
  auto view = mla::ViewType::get(b.getContext(), mla.latent, mla.rope, types.cacheElement());
  Value kv = mla::AppendOp::create(b, loc, view, symbol("cache"), layer, latent, key, batch);
  Value o = mla::AttentionOp::create(b, types.place(*spec.find("kv_b")), types.rows({mla.heads, mla.value}), q, kv,
                                     symbol("kv_b"), layer, batch, b.getI64IntegerAttr(mla.nope),
                                     b.getI64IntegerAttr(mla.rope), b.getI64IntegerAttr(mla.value),
                                     b.getF64FloatAttr(spec.softmaxScale()), mla::FormsAttr(), nn::SoftmaxAttr());
  return output(o, mla.heads * mla.value);
}

Value LayerBuilder::gatedMlp(Value n, StringRef gateUp, StringRef down, int64_t inter) {
  Value both = linear(n, gateUp, types.rows({2, inter}));
  Value act = nn::GatedActOp::create(b, both.getLoc(), types.rows({inter}), both, nn::Activation::Silu);
  return linear(act, down, types.hidden());
}

Value LayerBuilder::moe(const MoeSpec &moe, Value n) {
  Type f32 = b.getF32Type();
  Value logits = linear(n, "router", types.rows({moe.experts}, nn::RowKind::Token, f32));
  RankedTensorType ids = types.rows({moe.topK}, nn::RowKind::Token, b.getI32Type());
  RankedTensorType weights = types.rows({moe.topK}, nn::RowKind::Token, f32);
  auto score = moe.scoring == Scoring::Sigmoid ? moe::Scoring::Sigmoid : moe::Scoring::Softmax;
  auto groupScore = moe.groupScore == GroupScore::Top2Sum ? moe::GroupScore::Top2 : moe::GroupScore::Max;
  auto select =
      moe::SelectOp::create(b, types.place("top_k"), ids, weights, logits, batch,
                            moe.correctionBias ? symbol("selection_bias") : FlatSymbolRefAttr(),
                            moe.correctionBias ? layer : Value(), layer, types.indices(spec.moeLayers()), score,
                            moe.topK, moe.topGroups, moe.groups, groupScore, moe.normalize, llvm::APFloat(moe.scale));
  Value routed = moe::ExpertsOp::create(b, types.place(*spec.find("experts_gate_up")), types.hidden(), n,
                                        select.getExperts(), select.getWeights(), symbol("experts_gate_up"), layer,
                                        symbol("experts_down"), layer, moe.inter, moe.experts, nn::Activation::Silu,
                                        nn::TreeAttr(), nn::TreeAttr(), moe::TreeAttr());
  if (moe.sharedInter == 0)
    return routed;
  return add(routed, gatedMlp(n, "shared_gate_up", "shared_down", moe.sharedInter));
}

Value LayerBuilder::build(LayerKind kind, Value x) {
  Value h = rmsNorm(x, "attention_norm", spec.normEps);
  Value attended = std::visit([&](const auto &variant) { return attention(variant, h); }, spec.attention);
  Value y = add(x, attended);
  Value n = rmsNorm(y, "mlp_norm", spec.normEps);
  Value fed = kind == LayerKind::Moe ? moe(*spec.moe, n) : gatedMlp(n, "gate_up", "down", spec.mlp->inter);
  Value z = add(y, fed);
  nn::ObserveOp::create(b, types.place("layers"), z, batch, nn::CaptureKind::Hidden, layer);
  return z;
}
