//===- RowTraffic.cpp - What the kernels of a layer read and write of a row ---===//

#include "RowTraffic.h"

#include <functional>
#include <numeric>
#include <set>

using namespace k2c;
using namespace k2c::planner;

namespace {

/// Heads and widths are shared out, the residual stream and latents are not: rows of one dimension, but for activations
/// between two matrices.
RowElements elementsOf(const std::vector<int64_t> &row, LayerOpKind kind) {
  if (row.empty())
    return {};
  const double all = std::accumulate(row.begin(), row.end(), 1.0, std::multiplies<double>());
  return row.size() == 1 && kind != LayerOpKind::GatedAct ? RowElements{all, 0} : RowElements{0, all};
}

/// Rows are collected for the experts, and their results added up by token.
KernelTraffic ofExpertRow(const ModelSpec &spec) {
  const double hidden = double(spec.hidden), inter = double(spec.moe->inter);
  // Rows come in the format of the products; what lies between the two does not.
  return {{2 * hidden, 2 * inter}, {2 * hidden, 3 * inter}, 5, {0, inter}, {hidden, 2 * inter}};
}

} // namespace

RowTraffic planner::rowTraffic(const ModelSpec &spec, const LayerKind &kind) {
  RowTraffic traffic;
  const AttentionSizes sizes = attentionSizes(spec.attentions.at(kind.attention));
  std::vector<RowElements> values = {{double(spec.hidden), 0}};
  std::set<size_t> multiplied;
  bool isBehindAttention = false;
  for (const LayerOp &op : layerOps(spec, kind)) {
    RowElements read, written;
    for (size_t input : op.inputs)
      read += values[input];
    for (const std::vector<int64_t> &row : op.results) {
      values.push_back(elementsOf(row, op.kind));
      written += values.back();
    }
    KernelTraffic &part = isBehindAttention ? traffic.dense : traffic.attention;
    switch (op.kind) {
    case LayerOpKind::Reshape:
    case LayerOpKind::Split:
      break;
    case LayerOpKind::Append:
    case LayerOpKind::LatentAppend: // what they write is the cache's
      part += {read, {}, 1};
      break;
    case LayerOpKind::Linear:
      part.results += written;
      if (multiplied.insert(op.inputs[0]).second)
        part.multiplied += values[op.inputs[0]];
      [[fallthrough]];
    case LayerOpKind::Attention:
      part += {{}, written, 1};
      break;
    case LayerOpKind::LatentAttention: // and what expands keys and values
      written.split += double(sizes.heads * (sizes.key + sizes.value));
      part += {{}, written, 2};
      break;
    case LayerOpKind::Experts:
      traffic.experts += ofExpertRow(spec);
      break;
    default:
      part += {read, written, 1};
    }
    isBehindAttention |= op.kind == LayerOpKind::Add;
  }
  return traffic;
}
