//===- ServeLinks.cpp - What ranks send each other in a step ------------------===//
//
// The parts of a step that communicate: rows to experts and back in each layer that has some, within groups that share
// experts those rows and parts of their sums, sums of tensor-parallel ranks, keys or queries of context-parallel ones,
// rows from stage to stage, and what ranks that divide embedding and head exchange on the first stage and on the last.
// Each takes the time of its slowest tier and its latencies.
//
//===----------------------------------------------------------------------===//

#include "ServeStep.h"

#include <algorithm>

using namespace k2c;
using namespace k2c::planner;

/// Kernels whose launches are recorded once need sizes that do not change: each route has its own copy and nobody
/// forwards (DeepEP's low-latency kernels). Steps of many tokens send one to each node.
Copies ServeStep::copiesOf(const StepLoad &load) const {
  return decodes(load) && !rates.isCpu ? Copies::ForEachRoute : Copies::ForEachUnit;
}

/// Rows on their way. Each tier that they cross reads and writes them where they leave and where they arrive: senders
/// and receivers copy between their values and the buffers that links see (DeepEP README: RDMA and NVLink buffers).
Turn ServeStep::moving(const LinkUse &use) const {
  constexpr double copies = 4;
  return {links.seconds(use), rates.isCpu ? 0 : copies * use.total() / rates.memory};
}

/// Dispatch and combine of the layers with experts. What is added up of the ranks of a group is in f32.
void ServeStep::addRoutes(PartTime &part, LayerTurns &turns, const RankShare &share, const StepLoad &load,
                          double linkShare) const {
  const MoeSpec &moe = *model.spec.moe;
  const double hidden = double(model.spec.hidden), rows = rowsOf(load) / double(layout.tp);
  const double ep = double(layout.ep), etp = double(layout.etp);
  const double sent = rows * imbalance(rows * double(layout.ep * layout.etp)), layers = double(share.moeLayers);
  const Copies copies = copiesOf(load);
  // Measured for 128 tokens, of which each multiprocessor has one; fewer take as long.
  const double sendReceive =
      layout.ep > 1 && copies == Copies::ForEachRoute ? rates.sendReceive * std::max(1.0, rows / 128) : 0;
  auto exchange = [&](double valueBytes, const LinkUse &withinGroup) {
    LinkUse use = links.dispatch({ep, etp}, moe, copies, sent, hidden * valueBytes);
    use += withinGroup;
    part.links += use * layers;
    Turn turn = moving(use);
    turn.seconds = std::max(links.transfer(use) / linkShare, sendReceive) + use.latency;
    part.seconds += turn.seconds * layers;
    return turn * layers;
  };
  turns.dispatch += exchange(rates.dispatchBytes, links.toParts(ep, etp, moe, sent, hidden * rates.dispatchBytes));
  turns.combine += exchange(rates.combineBytes, links.ofParts(etp, moe, sent, hidden * double(byteWidth(DType::F32))));
  turns.sendReceive += 2 * sendReceive * layers;
}

/// Ids of the rows of each other rank of the first stage, and parts of one's own embeddings; of the last stage's rows
/// those of which others want logits, and parts of one's own logits.
LinkUse ServeStep::vocabularyLinks(const RankShare &share, const StepLoad &load) const {
  constexpr double idBytes = 4, logitBytes = 4;
  const double ranks = double(layout.vocab), tp = double(layout.tp), hidden = double(model.spec.hidden);
  LinkUse use;
  auto exchange = [&](double rows, double sentBytes, double returnedBytes) {
    for (const double bytes : {sentBytes, returnedBytes})
      use += links.exchange({ranks, 1}, rows / tp * bytes);
  };
  if (at(share.parameters, WeightModule::Embedding) > 0)
    exchange(rowsOf(load), idBytes, hidden / ranks * rates.activationBytes);
  if (at(share.parameters, WeightModule::Head) > 0 && !load.encodes)
    exchange(outputRowsOf(load), hidden * rates.activationBytes, double(model.spec.vocab) / ranks * logitBytes);
  return use;
}

void ServeStep::addLinks(std::array<PartTime, servePartCount> &parts, LayerTurns &turns, const RankShare &share,
                         const StepLoad &load, double linkShare) const {
  const ModelSpec &spec = model.spec;
  const double hidden = double(spec.hidden), own = rowsOf(load);
  auto boundOf = [&](const PartTime &part) {
    return part.links.latency > links.transfer(part.links) ? Bound::Latency : Bound::Link;
  };
  auto finish = [&](PartTime &part) {
    part.seconds = links.seconds(part.links);
    part.bound = boundOf(part);
  };
  PartTime &dispatch = of(parts, ServePart::Dispatch), &tensor = of(parts, ServePart::Tensor);
  if (spec.moe && share.moeLayers > 0 && layout.dividesExperts()) {
    addRoutes(dispatch, turns, share, load, linkShare);
    dispatch.bound = boundOf(dispatch);
  }
  if (layout.tp > 1) {
    const double each = own * hidden * rates.activationBytes;
    tensor.links = links.allReduce({double(layout.tp), 1}, each) * (2 * double(share.layerCount()));
    finish(tensor);
    const Turn half{tensor.seconds / 2, moving(tensor.links).waiting / 2}; // one of a layer's two
    turns.dispatch += half, turns.combine += half;
  }
  if (layout.cp > 1) {
    PartTime &context = of(parts, ServePart::Context);
    const RankGroup group{double(layout.cp), double(layout.tp)};
    for (size_t i = 0; i < model.attentions.size(); ++i) {
      const Passed bytes = passed(model.attentions[i].sizes, load);
      LinkUse use = links.gather(group, bytes.passesKeys() ? bytes.keys : bytes.queries);
      if (!bytes.passesKeys())
        use += links.gather(group, bytes.outputs);
      context.links += use * share.attentionLayers[i];
    }
    finish(context);
    turns.combine += moving(context.links);
  }
  if (layout.pp > 1) {
    PartTime &pipeline = of(parts, ServePart::Pipeline);
    pipeline.links =
        links.send(double(layout.tp * layout.cp * layout.dp), own * hidden * rates.activationBytes / double(layout.tp));
    finish(pipeline);
    turns.combine += moving(pipeline.links);
  }
  if (layout.vocab > 1) {
    PartTime &vocabulary = of(parts, ServePart::Vocabulary);
    vocabulary.links = vocabularyLinks(share, load);
    finish(vocabulary);
    turns.alone += vocabulary.seconds;
  }
}
