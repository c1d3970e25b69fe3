//===- ImportModel.cpp - ModelSpec to the model form ----------------------===//
//
//   module { nn.weights ...  nn.constant_table @rope  nn.pool @cache      a pool for each cache group
//     nn.layer @dense_layer(%layer, %x, %b) -> %x      one for each kind of layer
//     nn.layer @moe_layer(%layer, %x, %b) -> %x
//     func @step(%b) { embed, nn.layers [@dense_layer[0 to 1], ..], logits } }
//
// The module's size does not depend on the number of layers; kinds of layers that take turns are one run of nn.layers.
//
//===----------------------------------------------------------------------===//
#include "k2c/Frontend/ImportModel.h"
#include "LayerBuilder.h"
#include "k2c/Model/Rope.h"

#include "k2rt/numerics.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace k2c;

namespace {

/// What moe.routing adds to the sum of weights.
constexpr double routingEps = 1e-20;

std::string layerName(const LayerKind &kind) { return kind.name + "_layer"; }

/// f16 weights are f32 from here on: packing widens them, exactly.
Type elementType(OpBuilder &b, DType type) {
  switch (type) {
  case DType::F32:
  case DType::F16:
    return b.getF32Type();
  case DType::F8E4M3:
    return b.getType<Float8E4M3FNType>();
  default:
    return b.getBF16Type();
  }
}

class Importer {
public:
  Importer(MLIRContext *context, const ModelSpec &spec, const ImportOptions &options, int64_t positions)
      : b(context), spec(spec), options(options), positions(positions), heads(headsOfWeights(spec)),
        types(context, spec, elementType(b, options.compute), elementType(b, options.cache.value_or(options.compute))) {
  }

  OwningOpRef<ModuleOp> run();

private:
  void weights(const WeightFamily &family);
  void ropeTable(const std::string &name);
  void cachePool(const CachePool &pool);
  void layer(const LayerKind &kind);
  void stepFunction();
  RankedTensorType logicalType(const WeightFamily &family);
  Attribute ropeScaling(const RopeSpec &rope);

  OpBuilder b;
  const ModelSpec &spec;
  const ImportOptions &options;
  int64_t positions;
  std::map<std::string, int64_t> heads; ///< of weights whose rows belong to heads
  ModuleTypes types;
};

/// The tensor of one layer: experts, alternatives, then the checkpoint's
/// dimensions with heads apart, so that results come out as heads.
RankedTensorType Importer::logicalType(const WeightFamily &family) {
  SmallVector<int64_t> shape;
  if (family.experts)
    shape.push_back(family.experts);
  if (!family.alternatives.empty())
    shape.push_back(static_cast<int64_t>(family.alternatives.size()));
  llvm::append_range(shape, family.shape);
  StringRef id = family.id;
  id.consume_back("_bias");
  if (auto cut = heads.find(id.str()); cut != heads.end()) {
    shape[0] /= cut->second;
    shape.insert(shape.begin(), cut->second);
  }
  return RankedTensorType::get(shape, elementType(b, family.dtype));
}

void Importer::weights(const WeightFamily &family) {
  SmallVector<Attribute> domains;
  auto domain = [&](StringRef name, nn::IndicesAttr indices) {
    domains.push_back(nn::DomainAttr::get(b.getContext(), name, indices));
  };
  if (!family.layers.empty())
    domain("layer", types.indices(family));
  if (family.experts)
    domain("expert", nn::IndicesAttr::get(b.getContext(), 0, family.experts));
  nn::BlocksAttr storage;
  if (family.blocks)
    storage = nn::BlocksAttr::get(b.getContext(), elementType(b, family.blocks->stored),
                                  {family.blocks->rows, family.blocks->columns}, b.getF32Type());
  nn::WeightsOp::create(b, types.place(family), b.getStringAttr(family.id), b.getStringAttr(family.pattern),
                        b.getArrayAttr(domains), storage, nn::SliceAttr(), /*held=*/IntegerAttr(),
                        /*parts=*/IntegerAttr(), /*along=*/IntegerAttr(), TypeAttr::get(logicalType(family)));
}

Attribute Importer::ropeScaling(const RopeSpec &rope) {
  MLIRContext *context = b.getContext();
  auto real = [&](double value) { return b.getF64FloatAttr(value); };
  if (const auto *yarn = std::get_if<RopeYarn>(&rope.scaling))
    return nn::YarnAttr::get(context, real(yarn->factor), yarn->originalContext, real(yarn->betaFast),
                             real(yarn->betaSlow), real(rope.cosSinScale), yarn->truncate);
  if (const auto *llama3 = std::get_if<RopeLlama3>(&rope.scaling))
    return nn::Llama3Attr::get(context, real(llama3->factor), real(llama3->lowFrequencyFactor),
                               real(llama3->highFrequencyFactor), llama3->originalContext);
  if (const auto *linear = std::get_if<RopeLinear>(&rope.scaling))
    return nn::LinearScalingAttr::get(context, real(linear->factor));
  if (const auto *published = std::get_if<RopePublished>(&rope.scaling))
    return nn::FrequenciesAttr::get(context, b.getDenseF32ArrayAttr(published->frequencies));
  return {};
}

void Importer::ropeTable(const std::string &name) {
  const RopeSpec &rope = spec.ropes.at(name);
  auto table = nn::RopeAttr::get(b.getContext(), b.getF64FloatAttr(rope.theta), rope.dims, ropeScaling(rope));
  auto type = RankedTensorType::get({positions, 2, rope.dims / 2}, b.getF32Type());
  nn::ConstantTableOp::create(b, types.place(name), b.getStringAttr(name), table, TypeAttr::get(type));
}

void Importer::cachePool(const CachePool &pool) {
  MLIRContext *context = b.getContext();
  SmallVector<Attribute> planes;
  for (const CachedRow &row : pool.rows)
    planes.push_back(nn::PlaneAttr::get(context, row.plane, row.dims(), types.cacheElement()));
  Attribute layers = nn::DomainAttr::get(context, "layer", nn::IndicesAttr::get(context, pool.layers));
  nn::PoolOp::create(b, types.place("layers"), b.getStringAttr(cachePoolName(pool.group)), b.getArrayAttr(layers),
                     b.getArrayAttr(planes), b.getI64IntegerAttr(K2RT_PAGE_TOKENS), b.getI64IntegerAttr(pool.group));
}

void Importer::layer(const LayerKind &kind) {
  OpBuilder::InsertionGuard guard(b);
  Type x = types.hidden(), batch = b.getType<nn::BatchType>();
  auto layer = nn::LayerOp::create(b, types.place("layers"), layerName(kind),
                                   b.getFunctionType({b.getIndexType(), x, batch}, {x}));
  b.setInsertionPointToStart(&layer.getBody().front());
  LayerBuilder builder(b, spec, types, layer.getIndex(), layer.getBatch());
  nn::YieldOp::create(b, layer.getLoc(), builder.build(kind, layer.getCarried().front()));
}

void Importer::stepFunction() {
  OpBuilder::InsertionGuard guard(b);
  auto function =
      func::FuncOp::create(b, types.place("layers"), "step", b.getFunctionType({b.getType<nn::BatchType>()}, {}));
  function->setAttr(nn::NnDialect::entryAttrName, b.getStringAttr("serve"));
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  Value batch = body->getArgument(0);

  Value x = nn::EmbedOp::create(b, types.place(*spec.find("embed")), types.hidden(),
                                FlatSymbolRefAttr::get(b.getContext(), "embed"), Value(), batch);
  nn::CaptureOp::create(b, x.getLoc(), x, batch, nn::CaptureKind::Embed, Value());
  SmallVector<Attribute> runs;
  for (const LayerRun &run : spec.layers) {
    SmallVector<FlatSymbolRefAttr> callees;
    for (const LayerKind &kind : run.kinds)
      callees.push_back(FlatSymbolRefAttr::get(b.getContext(), layerName(kind)));
    runs.push_back(nn::LayerRunAttr::get(b.getContext(), callees, run.range.begin, run.range.end));
  }
  x = nn::LayersOp::create(b, types.place("layers"), types.hidden(), x, ValueRange(), batch, b.getArrayAttr(runs))
          .getOutputs()
          .front();
  x = nn::OutputRowsOp::create(b, types.place("vocab"), types.rows({spec.hidden}, nn::RowKind::Output), x, batch);
  LayerBuilder outside(b, spec, types, Value(), batch);
  Value last = outside.rmsNorm(x, "final_norm", spec.normEps);
  Value logits = outside.linear(last, spec.tiedEmbeddings ? "embed" : "head",
                                types.rows({spec.vocab}, nn::RowKind::Output, b.getF32Type()));
  nn::SampleOp::create(b, types.place("vocab"), logits, batch);
  func::ReturnOp::create(b, function.getLoc());
}

OwningOpRef<ModuleOp> Importer::run() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(b, types.place("layers"), StringRef(spec.name));
  (*module)->setAttr(nn::NnDialect::limitsAttrName,
                     nn::LimitsAttr::get(b.getContext(), options.stepTokens, options.maxSequences, positions,
                                         options.outputRows, std::nullopt));
  b.setInsertionPointToStart(module->getBody());
  for (const WeightFamily &family : spec.weights)
    weights(family);
  for (const std::string &name : ropesOfLayers(spec))
    ropeTable(name);
  for (const CachePool &pool : cachePools(spec))
    cachePool(pool);
  for (const LayerKind &kind : layerKinds(spec))
    layer(kind);
  stepFunction();
  return module;
}

/// Where a field of the families file was read.
std::string placeOf(const ModelSpec &spec, const std::string &field) {
  auto place = spec.places.find(field);
  if (place == spec.places.end())
    return spec.name;
  const ConfigPlace &p = place->second;
  return p.file + ":" + std::to_string(p.line) + ":" + std::to_string(p.column) + ": " + p.key;
}

/// A score is one chain of multiply-adds (N1: fewer than 1024 elements), and a bf16 pair does not straddle two planes.
Status checkKeys(const ModelSpec &spec, const AttentionSpec &attention, DType cache) {
  constexpr int64_t maxElements = 1023;
  auto tooWide = [&](const std::string &field, const std::string &what, int64_t width) {
    return Error{placeOf(spec, field), what + " of " + std::to_string(width) + " elements are not in this build",
                 "at most " + std::to_string(maxElements)};
  };
  if (const auto *gqa = std::get_if<GqaSpec>(&attention))
    return gqa->headDim > maxElements ? Status(tooWide("head_dim", "attention keys", gqa->headDim)) : Status::success();
  const auto &mla = std::get<MlaSpec>(attention);
  if (mla.latent + mla.rope > maxElements)
    return tooWide("kv_lora", "latents with rotary keys", mla.latent + mla.rope);
  if (mla.nope + mla.rope > maxElements)
    return tooWide("nope", "attention keys", mla.nope + mla.rope);
  for (auto [field, width] : {std::pair("kv_lora", mla.latent), std::pair("nope", mla.nope)})
    if (cache == DType::BF16 && width % 2 != 0)
      return Error{placeOf(spec, field),
                   "an odd width, " + std::to_string(width) + ", with a bf16 cache is not in this build",
                   "use --cache f32"};
  return Status::success();
}

/// What the description can say and the model form cannot.
Status checkImportable(const ModelSpec &spec, DType cache) {
  for (const auto &[name, attention] : spec.attentions) {
    if (Status keys = checkKeys(spec, attention, cache); !keys)
      return keys;
    const AttentionSizes sizes = attentionSizes(attention), first = attentionSizes(spec.attentions.begin()->second);
    if (sizes.window > 0)
      return Error{spec.name,
                   "attention '" + name + "' has a window of " + std::to_string(sizes.window) +
                       " keys: attention with a window is not in this build",
                   ""};
    // Captured logits are [layers][heads].
    if (sizes.heads != first.heads)
      return Error{spec.name,
                   "attention '" + name + "' has " + std::to_string(sizes.heads) + " heads, attention '" +
                       spec.attentions.begin()->first + "' " + std::to_string(first.heads) +
                       ": different numbers of query heads in one model are not in this build",
                   ""};
  }
  if (spec.moe && spec.moe->normalize && spec.moe->normalizeEps != routingEps)
    return Error{spec.name,
                 "the sum of expert weights has another epsilon "
                 "than 1e-20, which is not in this build",
                 ""};
  return Status::success();
}

} // namespace

Expected<int64_t> k2c::chooseContext(const ModelSpec &spec, const ImportOptions &options) {
  constexpr int64_t defaultContext = 8192;
  int64_t most = std::min(spec.maxPosition, maxRopePositions);
  for (const auto &[name, rope] : spec.ropes)
    if (rope.maxContext)
      most = std::min(most, rope.maxContext);
  const int64_t context = options.maxContext ? options.maxContext : std::min(most, defaultContext);
  if (context >= 1 && context <= most)
    return context;
  return Error{"--max-context " + std::to_string(context),
               "the model reaches " + std::to_string(most) + " positions (max_position_embeddings " +
                   std::to_string(spec.maxPosition) + ")",
               "choose from 1 to " + std::to_string(most)};
}

Expected<OwningOpRef<ModuleOp>> k2c::importModel(MLIRContext &context, const ModelSpec &spec,
                                                 const ImportOptions &options) {
  context.loadDialect<func::FuncDialect, nn::NnDialect, moe::MoeDialect, mla::MlaDialect>();
  if (Status importable = checkImportable(spec, options.cache.value_or(options.compute)); !importable)
    return importable.takeError();
  Expected<int64_t> positions = chooseContext(spec, options);
  if (!positions)
    return positions.takeError();
  for (auto [value, flag] :
       {std::pair(options.stepTokens, "--step-tokens"), std::pair(options.maxSequences, "--max-sequences")})
    if (value < 1 || value > INT32_MAX)
      return Error{std::string(flag) + " " + std::to_string(value), "must be from 1 to " + std::to_string(INT32_MAX),
                   ""};
  return Importer(&context, spec, options, *positions).run();
}
