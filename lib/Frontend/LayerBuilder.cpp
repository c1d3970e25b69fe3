//===- LayerBuilder.cpp - The ops of one layer in the model form ----------===//
//
// Prints the list of Layers.h. A weight that the model does not have (a bias) has no family; the element types, the
// rows' encoding and the batch are what the list leaves out.
//
//===----------------------------------------------------------------------===//
#include "LayerBuilder.h"

#include "mlir/IR/Location.h"

using namespace mlir;
using namespace k2c;

std::string k2c::cachePoolName(int64_t group) { return group == 0 ? "cache" : "cache_" + std::to_string(group); }

RankedTensorType ModuleTypes::rows(ArrayRef<int64_t> dims, nn::RowKind kind, Type element) const {
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  shape.append(dims.begin(), dims.end());
  return RankedTensorType::get(shape, element ? element : activation, nn::RowsAttr::get(context, kind));
}

nn::IndicesAttr ModuleTypes::indices(FeedForward feedForward) const {
  return nn::IndicesAttr::get(context, spec.layersOf(feedForward));
}

nn::IndicesAttr ModuleTypes::indices(const WeightFamily &family) const {
  const std::vector<int64_t> members = family.layerIndices();
  std::vector<IndexSet> candidates = {spec.layersOf(FeedForward::Dense), spec.layersOf(FeedForward::Moe)};
  for (AttentionLayers &attention : attentionLayers(spec))
    candidates.push_back(std::move(attention.layers));
  for (const IndexSet &layers : candidates)
    if (membersOf(layers) == members)
      return nn::IndicesAttr::get(context, layers);
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

/// Elements of the last dimension.
static int64_t lastDim(Value x) { return cast<RankedTensorType>(x.getType()).getShape().back(); }

ValueRange LayerBuilder::rotary(const LayerOp &op, Value x) {
  const RopeSpec &rope = spec.ropes.at(kind.rope);
  auto pairs = rope.pairs == RopePairs::Half ? nn::Pairing::Half : nn::Pairing::Interleaved;
  return nn::RotaryOp::create(b, types.place(kind.rope), x.getType(), x, symbol(kind.rope), Value(), batch, op.first,
                              rope.dims, pairs)
      ->getResults();
}

ValueRange LayerBuilder::appendKeys(Value key, Value value) {
  int64_t heads = cast<RankedTensorType>(key.getType()).getDimSize(1);
  auto view =
      nn::KvViewType::get(b.getContext(), heads, lastDim(key), lastDim(value), types.cacheElement(), kind.cacheGroup);
  return nn::AppendOp::create(b, types.place("heads"), view, symbol(cachePoolName(kind.cacheGroup)), layer, key, value,
                              batch)
      ->getResults();
}

ValueRange LayerBuilder::appendLatent(Value latent, Value key) {
  auto view = mla::ViewType::get(b.getContext(), lastDim(latent), lastDim(key), types.cacheElement(), kind.cacheGroup);
  return mla::AppendOp::create(b, types.place("kv_lora"), view, symbol(cachePoolName(kind.cacheGroup)), layer, latent,
                               key, batch)
      ->getResults();
}

ValueRange LayerBuilder::attention(Value query, Value view) {
  return nn::AttentionOp::create(b, types.place("heads"), query.getType(), query, view, batch,
                                 b.getF64FloatAttr(spec.softmaxScale(kind)), /*window=*/IntegerAttr(),
                                 nn::SoftmaxAttr())
      ->getResults();
}

ValueRange LayerBuilder::latentAttention(const LayerOp &op, Value query, Value view) {
  RankedTensorType type = types.rows(op.results[0]);
  int64_t rope = cast<mla::ViewType>(view.getType()).getRope();
  const std::string &kvb = op.weights[0];
  return mla::AttentionOp::create(b, types.place(*spec.find(kvb)), type, query, view, symbol(kvb), layer, batch,
                                  b.getI64IntegerAttr(lastDim(query) - rope), b.getI64IntegerAttr(rope),
                                  b.getI64IntegerAttr(type.getShape().back()),
                                  b.getF64FloatAttr(spec.softmaxScale(kind)), mla::FormsAttr(), nn::SoftmaxAttr())
      ->getResults();
}

ValueRange LayerBuilder::routing(const LayerOp &op, Value logits) {
  const MoeSpec &moe = *spec.moe;
  RankedTensorType ids = types.rows(op.results[0], nn::RowKind::Token, b.getI32Type());
  RankedTensorType weights = types.rows(op.results[1], nn::RowKind::Token, b.getF32Type());
  auto score = moe.scoring == Scoring::Sigmoid ? moe::Scoring::Sigmoid : moe::Scoring::Softmax;
  auto groupScore = moe.groupScore == GroupScore::Top2Sum ? moe::GroupScore::Top2 : moe::GroupScore::Max;
  bool hasBias = !op.weights.empty();
  return moe::RoutingOp::create(b, types.place("top_k"), ids, weights, logits, batch,
                                hasBias ? symbol(op.weights[0]) : FlatSymbolRefAttr(), hasBias ? layer : Value(), layer,
                                types.indices(FeedForward::Moe), score, moe.topK, moe.topGroups, moe.groups, groupScore,
                                moe::BoundAttr(), moe.normalize, llvm::APFloat(moe.scale))
      ->getResults();
}

ValueRange LayerBuilder::experts(const LayerOp &op, ArrayRef<Value> inputs) {
  return moe::ExpertsOp::create(b, types.place(*spec.find(op.weights[0])), types.hidden(), inputs[0], inputs[1],
                                inputs[2], symbol(op.weights[0]), layer, symbol(op.weights[1]), layer, spec.moe->inter,
                                spec.moe->experts, nn::Activation::Silu, nn::TreeAttr(), nn::TreeAttr(),
                                moe::TreeAttr())
      ->getResults();
}

ValueRange LayerBuilder::append(const LayerOp &op, ArrayRef<Value> inputs) {
  Value x = inputs[0];
  Location loc = x.getLoc();
  auto rows = [&](size_t result) { return types.rows(op.results[result]); };
  switch (op.kind) {
  case LayerOpKind::RmsNorm:
    return rmsNorm(x, op.weights[0], op.number).getDefiningOp()->getResults();
  case LayerOpKind::Linear: {
    // A router's logits stay f32, whatever activations are.
    RankedTensorType type =
        op.weights[0] == "router" ? types.rows(op.results[0], nn::RowKind::Token, b.getF32Type()) : rows(0);
    return linear(x, op.weights[0], type).getDefiningOp()->getResults();
  }
  case LayerOpKind::Reshape:
    return nn::ReshapeOp::create(b, loc, rows(0), x)->getResults();
  case LayerOpKind::Split:
    return nn::SplitOp::create(b, loc, TypeRange{rows(0), rows(1)}, x)->getResults();
  case LayerOpKind::Clip:
    return nn::ClipOp::create(b, loc, x.getType(), x, b.getF64FloatAttr(op.number))->getResults();
  case LayerOpKind::Rotary:
    return rotary(op, x);
  case LayerOpKind::Append:
    return appendKeys(x, inputs[1]);
  case LayerOpKind::LatentAppend:
    return appendLatent(x, inputs[1]);
  case LayerOpKind::Attention:
    return attention(x, inputs[1]);
  case LayerOpKind::LatentAttention:
    return latentAttention(op, x, inputs[1]);
  case LayerOpKind::GatedAct:
    return nn::GatedActOp::create(b, loc, rows(0), x, nn::Activation::Silu)->getResults();
  case LayerOpKind::Routing:
    return routing(op, x);
  case LayerOpKind::Experts:
    return experts(op, inputs);
  case LayerOpKind::Add:
    return nn::AddOp::create(b, inputs[1].getLoc(), x.getType(), x, inputs[1])->getResults();
  }
  llvm_unreachable("all kinds are listed");
}

Value LayerBuilder::build(const LayerKind &ofKind, Value x) {
  kind = ofKind;
  SmallVector<Value> values{x};
  for (const LayerOp &op : layerOps(spec, kind)) {
    SmallVector<Value> inputs;
    for (size_t value : op.inputs)
      inputs.push_back(values[value]);
    llvm::append_range(values, append(op, inputs));
  }
  Value z = values.back();
  nn::CaptureOp::create(b, types.place("layers"), z, batch, nn::CaptureKind::Hidden, layer);
  return z;
}
