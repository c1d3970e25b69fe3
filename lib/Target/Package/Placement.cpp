//===- Placement.cpp - placement.json: where the experts are ------------------===//
#include "base/JsonText.h"
#include "k2c/Target/Package.h"
#include <nlohmann/json.hpp>

using nlohmann::json;

namespace k2c {

std::string placementText(const ModelSpec &spec, const ParallelLayout &layout) {
  const int64_t slots = expertSlots(spec, layout);
  json ranks = json::array();
  for (int64_t rank = 0; rank < layout.ep; ++rank) {
    json held = json::array();
    for (int64_t slot = 0; slot < slots; ++slot)
      held.push_back(slot < expertsOfRank(spec, layout, rank) ? json(rank * slots + slot) : json());
    ranks.push_back(std::move(held));
  }
  json layers = json::object();
  for (int64_t layer : spec.moeLayers())
    layers[std::to_string(layer)] = {{"both", ranks}};
  const json placement = {{"format", 1},
                          {"model", spec.name},
                          {"experts", spec.moe ? spec.moe->experts : 0},
                          {"ranks", layout.ep},
                          {"layers", layers}};
  return jsonText(placement) + "\n";
}

} // namespace k2c
