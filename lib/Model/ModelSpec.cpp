//===- ModelSpec.cpp - names and counts that follow from a spec -----------===//
//
// A spec lists runs of layers and families of weights; what is asked of it follows from these two lists. Layers with a
// feed-forward part or an attention are ranges with a step, as many as a turn has members, so that a program that names
// them does not grow with the number of layers. Bytes are counted from the families: tensors times what each stores.
//
//===----------------------------------------------------------------------===//

#include "k2c/Model/ModelSpec.h"

#include "k2c/Model/Layers.h"

#include <algorithm>
#include <cmath>

using namespace k2c;

namespace {

/// Replaces every `from` by `to`.
void substitute(std::string &text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace

std::string WeightFamily::tensorName(int64_t layer, int64_t expert, size_t alternative) const {
  std::string name = pattern;
  if (!alternatives.empty()) {
    size_t open = name.find('{', 0);
    while (name.find('|', open) > name.find('}', open))
      open = name.find('{', open + 1);
    name.replace(open, name.find('}', open) - open + 1, alternatives[alternative]);
  }
  substitute(name, "{layer}", std::to_string(layer));
  substitute(name, "{expert}", std::to_string(expert));
  return name;
}

Status WeightFamily::visitTensors(const std::function<Status(const std::string &)> &visit) const {
  const std::vector<LayerRange> ranges = layers.empty() ? std::vector<LayerRange>{{0, 1}} : layers;
  const size_t parts = std::max<size_t>(1, alternatives.size());
  for (const LayerRange &range : ranges)
    for (int64_t layer = range.begin; layer < range.end; ++layer)
      for (int64_t expert = 0; expert < std::max<int64_t>(1, experts); ++expert)
        for (size_t part = 0; part < parts; ++part)
          if (Status status = visit(tensorName(layer, expert, part)); !status)
            return status;
  return Status::success();
}

bool WeightFamily::hasLayer(int64_t layer) const {
  for (const LayerRange &range : layers)
    if (layer >= range.begin && layer < range.end)
      return true;
  return false;
}

std::vector<int64_t> WeightFamily::layerIndices() const {
  std::vector<int64_t> indices;
  for (const LayerRange &range : layers)
    for (int64_t layer = range.begin; layer < range.end; ++layer)
      indices.push_back(layer);
  return indices;
}

int64_t WeightFamily::layerCount() const {
  int64_t count = 0;
  for (const LayerRange &range : layers)
    count += range.end - range.begin;
  return layers.empty() ? 1 : count;
}

int64_t WeightFamily::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t WeightFamily::tensorsOfLayer() const {
  return std::max<int64_t>(1, experts) * std::max<int64_t>(1, int64_t(alternatives.size()));
}

Bytes WeightFamily::storedBytes() const {
  if (microScales) {
    int64_t rows = elements() / shape.back(), blocks = ceilDivide(shape.back(), microScales->block);
    return Bytes(tensorCount() * rows * (ceilDivide(shape.back(), 2) + blocks));
  }
  if (!blocks)
    return Bytes(tensorCount() * elements() * byteWidth(dtype));
  int64_t scales = ceilDivide(shape[0], blocks->rows) * ceilDivide(shape[1], blocks->columns);
  return Bytes(tensorCount() * (elements() * byteWidth(blocks->stored) + scales * 4));
}

int64_t ModelSpec::layerCount() const { return layers.empty() ? 0 : layers.back().range.end; }

std::vector<LayersOfKind> ModelSpec::layersByKind() const {
  std::vector<LayersOfKind> ranges;
  for (const LayerRun &run : layers)
    for (int64_t layer = run.range.begin; layer < run.range.end; ++layer) {
      if (ranges.empty() || ranges.back().kind != run.kindOf(layer))
        ranges.push_back({run.kindOf(layer), {layer, layer}});
      ++ranges.back().range.end;
    }
  return ranges;
}

IndexSet ModelSpec::layersOf(FeedForward feedForward) const {
  return layersOf([&](const LayerKind &kind) { return kind.feedForward == feedForward; });
}

IndexSet ModelSpec::layersOf(const std::function<bool(const LayerKind &)> &isSuch) const {
  IndexSet set;
  for (const LayerRun &run : layers) {
    const int64_t period = int64_t(run.kinds.size());
    if (std::all_of(run.kinds.begin(), run.kinds.end(), isSuch)) {
      if (!set.empty() && set.back().step == 1 && set.back().to == run.range.begin)
        set.back().to = run.range.end;
      else
        set.push_back({run.range.begin, run.range.end, 1});
      continue;
    }
    for (int64_t turn = 0; turn < period; ++turn) {
      IndexRange range{run.range.begin + turn, run.range.end, period};
      range.to = range.from + (range.size() - 1) * period + 1;
      if (isSuch(run.kinds[size_t(turn)]))
        set.push_back(range);
    }
  }
  return set;
}

const MlaSpec *ModelSpec::latentAttention() const {
  return attentions.empty() ? nullptr : std::get_if<MlaSpec>(&attentions.begin()->second);
}

double ModelSpec::softmaxScale(const LayerKind &kind) const {
  const double scale = kind.rope.empty() ? 1 : ropes.at(kind.rope).attentionScale;
  return scale / std::sqrt(static_cast<double>(attentionSizes(attentions.at(kind.attention)).key));
}

const WeightFamily *ModelSpec::find(const std::string &id) const {
  for (const WeightFamily &family : weights)
    if (family.id == id)
      return &family;
  return nullptr;
}

Bytes k2c::storedBytes(const ModelSpec &spec) {
  Bytes total;
  for (const WeightFamily &family : spec.weights)
    total += family.storedBytes();
  return total;
}
