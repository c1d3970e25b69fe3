//===- ProposeLayers.cpp - the fields that say which layers are of which kind ---===//
//
// The rules of a families file go over the layers once more, and what they do not know is read off:
//
//   {kind: dense, from: 0, to: first_dense}                                      dense dense moe dense moe
//   {kind: moe, from: first_dense, to: layers, every: moe_every, otherwise: dense}
//   ->  first_dense = 2, where the first layer is that is not dense; moe_every = 2, from one moe layer to the next
//
//===----------------------------------------------------------------------===//
#include "KnownFields.h"

using namespace k2c;
using nlohmann::json;

namespace {

/// Whether a layer may be of a kind of the families file, whose names are others.
bool isOf(const LayerKind &layer, const LayerKind &kind) {
  return layer.feedForward == kind.feedForward && layer.rope.empty() == kind.rope.empty() && layer.norms == kind.norms;
}

class LayerReader {
public:
  LayerReader(KnownFields &fields, const Family &family, const ModelSpec &spec) : fields(fields), family(family) {
    for (const LayerRun &run : spec.layers)
      for (int64_t layer = run.range.begin; layer < run.range.end; layer++)
        layers.push_back(run.kindOf(layer));
  }

  void read() {
    fields.know(family.layers.back().to, int64_t(layers.size()));
    int64_t from = 0;
    for (const LayerRule &rule : family.layers) {
      const int64_t to = endOf(rule, from);
      knowPeriod(rule, from, to);
      json except = json::array();
      for (int64_t layer = from; layer < to; layer++)
        if (!isOf(layers[size_t(layer)], rule.kind) && isNumbered(rule, layer))
          except.push_back(layer);
      fields.know(rule.except, except);
      from = to;
    }
  }

private:
  int64_t endOf(const LayerRule &rule, int64_t from) {
    const int64_t count = int64_t(layers.size());
    if (!fields.integer(rule.to)) {
      int64_t to = from;
      while (to < count && isOf(layers[size_t(to)], rule.kind))
        to++;
      fields.know(rule.to, to);
    }
    return std::clamp(fields.integer(rule.to).value_or(from), from, count);
  }

  /// Whether a layer is of the rule's kind by its number.
  bool isNumbered(const LayerRule &rule, int64_t layer) const {
    const int64_t every = fields.integer(rule.every).value_or(1);
    return every > 0 && layer % every == fields.integer(rule.at).value_or(0);
  }

  /// From the first layer of the kind to the next one; 1, which lists can except from, where others do not follow so.
  void knowPeriod(const LayerRule &rule, int64_t from, int64_t to) {
    std::vector<int64_t> found;
    for (int64_t layer = from; layer < to; layer++)
      if (isOf(layers[size_t(layer)], rule.kind))
        found.push_back(layer);
    const KnownFields before = fields;
    fields.know(rule.every, found.size() < 2 ? int64_t(1) : found[1] - found[0]);
    if (std::all_of(found.begin(), found.end(), [&](int64_t layer) { return isNumbered(rule, layer); }))
      return;
    fields = before;
    fields.know(rule.every, int64_t(1));
  }

  KnownFields &fields;
  const Family &family;
  std::vector<LayerKind> layers;
};

} // namespace

void k2c::knowLayers(KnownFields &fields, const Family &family, const ModelSpec &spec) {
  LayerReader(fields, family, spec).read();
}
