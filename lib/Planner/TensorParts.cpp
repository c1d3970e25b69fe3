//===- TensorParts.cpp - What tensor-parallel ranks have of a layer -----------===//
//
// From the last linear of attention or of an MLP backwards: what it contracts over is divided, and so is all that makes
// it, down to linears whose rows are heads or columns. Their inputs are gathered; so are latents, which all ranks cache
// whole, behind the linear that makes them. An MLP whose leaves do not come out even stays whole: its linears then work
// on the slice of a rank.
//
//===----------------------------------------------------------------------===//
#include "k2c/Planner/TensorParts.h"

#include "base/Utf8.h"
#include "k2c/Kernels/KernelDesc.h"
#include <numeric>
#include <set>

namespace k2c {

namespace {

/// Whether `parts` equal parts of a contraction over `width` columns have whole leaves of N1, all equally long.
bool comesOutEven(int64_t width, int64_t parts) { return leavesComeOutEven(width, leafCount(width), parts); }

/// "8 leaves of 8192 columns".
std::string leavesOf(int64_t width) {
  const int64_t leaves = leafCount(width);
  return std::to_string(leaves) + (leaves == 1 ? " leaf" : " leaves") + " of " + std::to_string(width) + " columns";
}

class Division {
public:
  Division(const ModelSpec &spec, const LayerKind &kind, int64_t tp) : spec(spec), tp(tp), ops(layerOps(spec, kind)) {
    for (const LayerOp &op : ops)
      for (size_t result = 0; result < op.results.size(); ++result)
        makers.push_back(&op);
  }

  Expected<LayerParts> run();

private:
  /// What made a value; null of the layer's input. Reshapes are passed over.
  const LayerOp *makerOf(size_t value) const {
    const LayerOp *maker = value == 0 ? nullptr : makers[value - 1];
    return maker && maker->kind == LayerOpKind::Reshape ? makerOf(maker->inputs[0]) : maker;
  }
  int64_t widthOf(size_t value) const {
    if (value == 0)
      return spec.hidden;
    const std::vector<int64_t> &row = rowOf(value);
    return std::accumulate(row.begin(), row.end(), int64_t(1), std::multiplies<>());
  }
  const std::vector<int64_t> &rowOf(size_t value) const {
    size_t first = value - 1;
    while (first > 0 && makers[first - 1] == makers[value - 1])
      --first;
    return makers[value - 1]->results[value - 1 - first];
  }
  bool hasBias(const std::string &family) const { return spec.find(family + "_bias") != nullptr; }
  void cut(const std::string &family) {
    parts.cuts[family] = MatrixCut::Rows;
    if (hasBias(family))
      parts.cuts[family + "_bias"] = MatrixCut::Rows;
  }
  Status divide(size_t value);
  void gatherWhole(size_t value);
  void gather(size_t value) {
    if (gathered.insert(value).second)
      parts.gathered.push_back(widthOf(value));
  }
  Status divideHeads(const LayerOp &attention, const LayerOp &output);
  Error refuse(const std::string &message) const {
    return {"tp", std::to_string(tp) + ": " + message, "choose a tp that divides it"};
  }

  const ModelSpec &spec;
  const int64_t tp;
  const std::vector<LayerOp> ops;
  std::vector<const LayerOp *> makers; ///< of values behind the layer's input
  std::set<size_t> gathered;
  LayerParts parts;
};

/// `value` is of each rank's heads.
Status Division::divide(size_t value) {
  const LayerOp *op = makerOf(value);
  if (!op) // the layer's input has no heads
    return Status::success();
  if (op->kind == LayerOpKind::Linear) {
    cut(op->weights[0]);
    gather(op->inputs[0]);
    return Status::success();
  }
  if (op->kind == LayerOpKind::RmsNorm && op->results[0].size() == 1)
    return refuse("'" + op->weights[0] + "' normalises all heads of a row together");
  return divide(op->inputs[0]);
}

/// `value` is whole on each rank, of all rows.
void Division::gatherWhole(size_t value) {
  const LayerOp *op = makerOf(value);
  const bool isComputed =
      op && (op->kind == LayerOpKind::RmsNorm || op->kind == LayerOpKind::Rotary || op->kind == LayerOpKind::Split);
  if (isComputed)
    gatherWhole(op->inputs[0]);
  else
    gather(value);
}

Status Division::divideHeads(const LayerOp &attention, const LayerOp &output) {
  const std::string &family = output.weights[0];
  const int64_t heads = attention.results[0][0], width = widthOf(output.inputs[0]);
  if (heads % tp != 0)
    return refuse("attention has " + std::to_string(heads) + " heads");
  if (hasBias(family))
    return refuse("'" + family + "' has a bias, which is no part of a sum");
  if (!comesOutEven(width, tp))
    return refuse("'" + family + "' has " + leavesOf(width));
  if (Status query = divide(attention.inputs[0]); !query)
    return query;
  const LayerOp &append = *makerOf(attention.inputs[1]);
  if (append.kind == LayerOpKind::LatentAppend) {
    for (const size_t latent : append.inputs)
      gatherWhole(latent);
    cut(attention.weights[0]);
  } else {
    for (const size_t rows : append.inputs) {
      if (const int64_t cached = rowOf(rows)[0]; cached % tp != 0)
        return refuse("attention has " + std::to_string(cached) + " key-value heads");
      if (Status divided = divide(rows); !divided)
        return divided;
    }
  }
  return Status::success();
}

Expected<LayerParts> Division::run() {
  for (const LayerOp &op : ops) {
    const LayerOp *maker = op.kind == LayerOpKind::Linear ? makerOf(op.inputs[0]) : nullptr;
    if (!maker)
      continue;
    const bool isOfHeads = maker->kind == LayerOpKind::Attention || maker->kind == LayerOpKind::LatentAttention;
    const LayerOp *up = maker->kind == LayerOpKind::GatedAct ? makerOf(maker->inputs[0]) : nullptr;
    if (isOfHeads) {
      if (Status divided = divideHeads(*maker, op); !divided)
        return divided.takeError();
    } else if (up && up->kind == LayerOpKind::Linear && !hasBias(op.weights[0]) &&
               comesOutEven(widthOf(op.inputs[0]), tp)) {
      cut(up->weights[0]);
      gather(up->inputs[0]);
    } else {
      continue;
    }
    parts.cuts[op.weights[0]] = MatrixCut::Columns;
    parts.scattered.push_back(spec.hidden);
  }
  return std::move(parts);
}

} // namespace

Expected<LayerParts> layerParts(const ModelSpec &spec, const LayerKind &kind, int64_t tp) {
  return tp == 1 ? LayerParts() : Division(spec, kind, tp).run();
}

Status checkTensorParts(const ModelSpec &spec, int64_t tp) {
  for (const LayerKind &kind : layerKinds(spec))
    if (Expected<LayerParts> parts = layerParts(spec, kind, tp); !parts)
      return parts.takeError();
  return Status::success();
}

std::map<std::string, MatrixCut> tensorCuts(const ModelSpec &spec, int64_t tp) {
  std::map<std::string, MatrixCut> cuts;
  for (const LayerKind &kind : layerKinds(spec))
    if (Expected<LayerParts> parts = layerParts(spec, kind, tp); parts)
      cuts.insert(parts->cuts.begin(), parts->cuts.end());
  return cuts;
}

const std::map<std::string, MatrixCut> &expertCuts() {
  static const std::map<std::string, MatrixCut> cuts = {{"experts_gate_up", MatrixCut::Rows},
                                                        {"experts_down", MatrixCut::Columns}};
  return cuts;
}

Status checkExpertParts(const ModelSpec &spec, int64_t ranks) {
  const std::string is = "is " + std::to_string(ranks) + ": an expert's 'down' has ";
  if (ranks == 1)
    return Status::success();
  if (spec.find("experts_down_bias"))
    return Error{"etp", is + "a bias, which is no part of a sum", "leave it out"};
  const int64_t width = spec.moe->inter;
  if (ranks < 1 || !comesOutEven(width, ranks))
    return Error{"etp",
                 is + leavesOf(width) +
                     (ranks > 0 && leafCount(width) % ranks == 0 ? ", the last one shorter than the others" : ""),
                 "choose an etp that divides them"};
  return Status::success();
}

Status checkVocabularyParts(const ModelSpec &spec, int64_t ranks) {
  const std::string is = "is " + std::to_string(ranks) + ", ";
  if (ranks == 1)
    return Status::success();
  if (spec.tiedEmbeddings)
    return Error{"vocab", is + "and embedding and head are one weight, which has no parts", "leave it out"};
  for (auto [size, what] :
       {std::pair{spec.hidden, " columns of the embedding"}, std::pair{spec.vocab, " rows of the head"}})
    if (ranks < 1 || size % ranks != 0)
      return Error{"vocab", is + "which does not divide the " + std::to_string(size) + what,
                   "choose a divisor of " + std::to_string(size)};
  return Status::success();
}

} // namespace k2c
