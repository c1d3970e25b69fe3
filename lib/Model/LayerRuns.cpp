//===- LayerRuns.cpp - which layers are of which kind ---------------------===//
#include "k2c/Model/LayerRuns.h"
#include "LayerRuns.h"

#include <algorithm>
#include <functional>

using namespace k2c;

namespace {

constexpr int64_t maxPeriod = 64; // a turn is written out, layer by layer

/// The length of the turns that `kinds` take at least twice; more than all of them where they take none.
int64_t periodOf(const std::vector<LayerKind> &kinds) {
  const int64_t count = int64_t(kinds.size());
  for (int64_t period = 1; period <= std::min(count / 2, maxPeriod); ++period)
    if (std::equal(kinds.begin() + period, kinds.end(), kinds.begin()))
      return period;
  return count + 1;
}

/// Appends layers that are of `kinds`, which repeat after `period`: one run where they fill a turn, else long ones.
void addLayers(ModelSpec &spec, int64_t from, const std::vector<LayerKind> &kinds, int64_t period) {
  const int64_t count = int64_t(kinds.size());
  const bool areAlike = std::adjacent_find(kinds.begin(), kinds.end(), std::not_equal_to<>()) == kinds.end();
  if (!areAlike && period <= std::min(count, maxPeriod)) {
    spec.layers.push_back({{kinds.begin(), kinds.begin() + period}, {from, from + count}});
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<LayerKind> kind = {kinds[size_t(i)]};
    if (spec.layers.empty() || spec.layers.back().kinds != kind)
      spec.layers.push_back({kind, {from + i, from + i}});
    ++spec.layers.back().range.end;
  }
}

} // namespace

std::vector<LayerRun> k2c::layerRuns(const std::vector<LayerKind> &kinds) {
  // Layers of one kind before the first of another, then turns or long runs.
  const auto differs = [&](const LayerKind &kind) { return kind != kinds.front(); };
  const auto first = std::find_if(kinds.begin(), kinds.end(), differs);
  const std::vector<LayerKind> rest(first, kinds.end());
  const int64_t period = periodOf(kinds), count = int64_t(kinds.size());
  ModelSpec spec;
  if (period <= count || first == kinds.end() || periodOf(rest) > int64_t(rest.size())) {
    addLayers(spec, 0, kinds, period);
  } else {
    addLayers(spec, 0, {kinds.begin(), first}, 1);
    addLayers(spec, first - kinds.begin(), rest, periodOf(rest));
  }
  return spec.layers;
}

Status k2c::readLayers(ModelSpec &spec, const Family &family, const Fields &fields) {
  for (const LayerRule &rule : family.layers) {
    Expected<int64_t> from = fields.integer(rule.from), to = fields.integer(rule.to),
                      every = fields.integer(rule.every), at = fields.integer(rule.at);
    for (const Expected<int64_t> *value : {&from, &to, &every, &at})
      if (!*value)
        return Error{family.file, value->error().message, ""};
    if (*every < 1)
      return Error{family.file, "every must be at least 1, got " + std::to_string(*every), ""};
    std::vector<int64_t> except = fields.indices(rule.except);
    for (int64_t layer : except)
      if (layer >= *to)
        return Error{spec.name, rule.except + " names layer " + std::to_string(layer) + " of " + std::to_string(*to),
                     "take config.json from the published model"};
    std::sort(except.begin(), except.end());
    std::vector<LayerKind> kinds;
    for (int64_t layer = *from; layer < *to; ++layer) {
      bool isOther = layer % *every != *at || std::binary_search(except.begin(), except.end(), layer);
      kinds.push_back(isOther ? rule.otherwise : rule.kind);
    }
    addLayers(spec, *from, kinds, except.empty() ? *every : periodOf(kinds));
  }
  return Status::success();
}
