//===- RoutedPeakQueries.cpp - Queries about the fullest rank -------------===//

#include "../Parts.h"
#include "../Read.h"
#include "ReadPlacement.h"
#include "k2c/Planner/RoutedPeak.h"
#include <algorithm>

using namespace k2c;
using namespace k2c::formulas;

namespace {

RoutedBatch readBatch(QueryInputs &in, const MoeSpec &moe, const ReplicaLayout &layout) {
  RoutedBatch batch;
  batch.experts = moe.experts;
  batch.topK = moe.topK;
  batch.tokensPerRank = in.whole("tokens", 1, 1 << 24);
  batch.alignment = in.whole("alignment", 1, 1, 1 << 16);
  batch.ranks = layout.gpus;
  batch.slots = layout.replicas;
  return batch;
}

RowBytes readBytes(QueryInputs &in, const ModelSpec &model) {
  RowBytes bytes;
  bytes.dispatch = in.number("disp_bytes", 1, 0, 16) * double(model.hidden);
  bytes.combine = in.number("comb_bytes", 2, 0, 16) * double(model.hidden);
  // Input, gate, up, their product and output of one layer; what training keeps is given by row_bytes.
  double layer = in.number("act_bytes", 2, 0, 16) * (2 * double(model.hidden) + 3 * double(model.moe->inter));
  bytes.compute = in.number("row_bytes", layer, 0, 1e12);
  bytes.inFlight = in.whole("in_flight", 1, 1, 1 << 20);
  bytes.secondBuffer = in.flag("second_buffer", false);
  return bytes;
}

QueryAnswer peak(QueryInputs &in) {
  const ModelSpec *model = in.model();
  if (!readMoe(in, model))
    return QueryAnswer();
  // Without `num_replicas` each expert has one slot.
  ReplicaLayout layout = readLayout(in, model->moe->experts, model->moe->experts);
  RoutedBatch batch = readBatch(in, *model->moe, layout);
  RowBytes bytes = readBytes(in, *model);
  Routing routing = Routing(in.word("routing", {"mean", "measured", "worst"}, in.has("weight") ? 1 : 2));
  std::vector<ExpertLoad> loads;
  if (routing == Routing::Measured)
    loads = readLoads(in, "weight");
  if (in.ok() && !loads.empty() && int64_t(loads[0].size()) != batch.experts)
    in.fail("weight",
            "has " + std::to_string(loads[0].size()) + " experts, the model " + std::to_string(batch.experts));
  limitSlots(in, loads.size(), layout);
  if (!in.ok())
    return QueryAnswer();
  RoutedRows rows;
  if (routing != Routing::Measured)
    rows = routedRows(batch, routing);
  for (const ExpertLoad &load : loads) {
    if (*std::max_element(load.begin(), load.end()) <= 0) {
      in.fail("weight", "has a layer without any load", "give measured loads");
      return QueryAnswer();
    }
    ReplicaPlacement placement =
        in.has("num_replicas") ? rebalanceExperts(load, layout) : placeOnceInOrder(batch.experts);
    RoutedRows layer = measuredRows(batch, load, placement);
    if (layer.padded.real() > rows.padded.real())
      rows = layer;
  }
  RoutedBytes sizes = routedBytes(rows, bytes);
  return QueryAnswer()
      .part("total_bytes", sizes.total())
      .part("dispatch_bytes", sizes.dispatch)
      .part("combine_bytes", sizes.combine)
      .part("second_buffer_bytes", sizes.second)
      .part("activation_bytes", sizes.compute)
      .part("padding_bytes", sizes.padding)
      .part("received_tokens", rows.received)
      .part("expert_rows", rows.rows)
      .part("padded_rows", rows.padded);
}

} // namespace

std::vector<QueryFunction> formulas::routedPeakQueries() {
  return {
      {"moe_peak", "bytes of the fullest rank", "worst case of top-k routing; numerics N5",
       "model tokens routing weight num_gpus num_nodes num_groups num_replicas alignment disp_bytes comb_bytes "
       "act_bytes "
       "row_bytes in_flight second_buffer",
       peak},
  };
}
