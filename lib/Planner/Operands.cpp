//===- Operands.cpp - The packed operands of a model, counted -----------------===//
//
// A matrix [n][k] is packed in panels of 32 columns; alternatives (gate, up) share panels; experts are stacked. A
// vector and the embedding stay rows. W_kvb is cut into W_UK and W_UV per head; the absorbed form reads W_UK
// transposed, so a program with both forms holds it twice. f16 widens to f32; block-scaled storage stays as it is, with
// the scales of every panel behind its elements.
//
//===----------------------------------------------------------------------===//
#include "Operands.h"

#include "k2c/Kernels/WeightShare.h"
#include "k2c/Model/Layers.h"
#include "k2c/Planner/TensorParts.h"
#include "k2c/Weights/WeightMap.h"
#include <numeric>

namespace k2c::planner {

static DType packedType(const WeightFamily &family) { return family.dtype == DType::BF16 ? DType::BF16 : DType::F32; }

/// An operand of no layer.
static PlannedOperand operand(std::string name, StageEnd end, const Transform &transform, Use use,
                              double multiplyAdds = 0) {
  return {{std::move(name), 1, Bytes(slotBytes(payloadBytes(transform), 0))}, {}, end, use, multiplyAdds};
}

/// That of a family: in each of its layers or, of one that is of none, behind them.
static PlannedOperand operand(const WeightFamily &family, const char *part, const Transform &transform, Use use,
                              double multiplyAdds = 0, int64_t experts = 0) {
  const int64_t slots = family.layerCount();
  return {{family.id + part, slots, Bytes(slots * slotBytes(payloadBytes(transform), experts))},
          indexSetOf(family.layerIndices()),
          StageEnd::Last,
          use,
          multiplyAdds};
}

/// Blocks stay as stored. `rows` of W's rows begin anew with every matrix, head or slice, so that no scale straddles
/// them; `transposed`: the columns of the layout are those of the published matrix.
static Matrix stored(Matrix matrix, const WeightFamily &family, int64_t rows, bool transposed = false) {
  if (!family.blocks)
    return matrix;
  matrix.type = DType::F8E4M3;
  matrix.blockColumns = std::gcd(family.blocks->rows, rows);
  matrix.blockRows = family.blocks->columns;
  if (transposed)
    std::swap(matrix.blockColumns, matrix.blockRows);
  return matrix;
}

static Transform lying(const Matrix &matrix, WeightLayout layout) {
  return std::visit([](const auto &known) -> Transform { return known; }, layoutOf(matrix, layout));
}

/// W_kvb [heads * (nope + value)][latent].
static void addLatentExpansion(const WeightFamily &family, const AttentionSizes &sizes, int64_t expandedFrom,
                               const RankParts &rank, std::vector<PlannedOperand> &operands) {
  DType type = packedType(family);
  int64_t latent = sizes.absorbedValue, head = family.shape[0] / sizes.heads, heads = sizes.heads / rank.tp;
  int64_t nope = head - sizes.value;
  const Transform uk = lying(stored({type, heads, nope, latent}, family, head), rank.weights);
  const Transform absorbed =
      lying(stored({type, heads, latent, nope}, family, head, /*transposed=*/true), rank.weights);
  const Transform uv = lying(stored({type, heads, sizes.value, latent}, family, std::gcd(head, nope)), rank.weights);
  if (expandedFrom >= 0)
    operands.push_back(operand(family, ".uk", uk, Use::Expanded));
  if (expandedFrom != 0)
    operands.push_back(operand(family, ".uk_absorbed", absorbed, Use::Absorbed));
  operands.push_back(operand(family, ".uv", uv, Use::Attention));
}

/// `unitRows`: rows of one head where the frontend cuts the matrix in heads, those of a rank where they are a part of
/// the vocabulary, else 0. `rows` and `columns`: of the family, how many the rank has.
static PlannedOperand plainOperand(const WeightFamily &family, int64_t unitRows, const RankParts &rank, int64_t rows,
                                   int64_t columns) {
  DType type = packedType(family);
  int64_t layers = family.layerCount(), parts = std::max<int64_t>(1, int64_t(family.alternatives.size()));
  if (family.id == "embed")
    return operand(family.id, StageEnd::First, RowMajor{type, rows * columns}, Use::Lookup);
  if (family.shape.size() < 2)
    return operand(family, "", RowMajor{type, parts * rows}, Use::Every);
  const int64_t experts = family.experts ? rank.expertSlots : 0, matrices = std::max<int64_t>(1, experts);
  const Transform layout =
      lying(stored({type, matrices, parts * rows, columns, parts == 2 ? 2 : 1}, family, unitRows), rank.weights);
  Use use = family.experts ? Use::Chosen : family.id == "head" ? Use::Logits : Use::Every;
  return operand(family, "", layout, use, double(layers * parts * family.elements()), experts);
}

RankParts rankParts(const Plan &plan) {
  return {plan.expertSlots, plan.layout.tp, plan.layout.etp, plan.layout.vocab, plan.weights};
}

std::vector<PlannedOperand> operandsOf(const ModelSpec &spec, int64_t expandedFrom, const Limits &limits,
                                       RankParts rank) {
  std::vector<PlannedOperand> operands;
  const std::map<std::string, MatrixCut> cuts = tensorCuts(spec, rank.tp);
  const MlaSpec *mla = spec.latentAttention();
  const std::map<std::string, int64_t> heads = headsOfWeights(spec);
  auto ranksOf = [&](const WeightFamily &family, MatrixCut dimension) {
    if (family.id == "embed" || family.id == "head")
      return (family.id == "head") == (dimension == MatrixCut::Rows) ? rank.vocab : 1;
    const bool isOfExperts = family.experts > 0;
    const std::map<std::string, MatrixCut> &ofFamilies = isOfExperts ? expertCuts() : cuts;
    const auto cut = ofFamilies.find(family.id);
    return cut == ofFamilies.end() || cut->second != dimension ? 1 : isOfExperts ? rank.etp : rank.tp;
  };
  for (const WeightFamily &family : spec.weights) {
    const int64_t rows = family.shape[0] / ranksOf(family, MatrixCut::Rows);
    const auto cut = heads.find(family.id);
    int64_t unit = family.id == "head" && rank.vocab > 1 ? rows : 0;
    if (cut != heads.end())
      unit = family.shape[0] / cut->second;
    if (mla && family.id == "kv_b")
      addLatentExpansion(family, attentionSizes(*mla), expandedFrom, rank, operands);
    else
      operands.push_back(
          plainOperand(family, unit, rank, rows, family.shape.back() / ranksOf(family, MatrixCut::Columns)));
  }
  if (const WeightFamily *embed = spec.find("embed"); embed && spec.tiedEmbeddings)
    operands.push_back(operand("head", StageEnd::Last,
                               lying({packedType(*embed), 1, spec.vocab, spec.hidden}, rank.weights), Use::Logits,
                               double(embed->elements())));
  for (const auto &[name, rope] : spec.ropes)
    operands.push_back(
        operand(name, StageEnd::All, Table{limits.maxContext * rope.dims * 4, "", nullptr}, Use::Lookup));
  // A part of the weights for all rows, or all of them for a part of the rows; of the head a part for the rows of all
  // groups of a stage. Choices fall on all ranks alike, or on groups of them that share experts.
  for (PlannedOperand &operand : operands)
    operand.multiplyAdds /= double(operand.use == Use::Chosen ? rank.etp : rank.tp);
  return operands;
}

} // namespace k2c::planner
