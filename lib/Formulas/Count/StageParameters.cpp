//===- StageParameters.cpp - Parameters of a pipeline stage, as paper 002 counts -===//

#include "k2c/Formulas/StageParameters.h"

using namespace k2c;

Checked k2c::latentNorms(const ModelSpec &spec) {
  const MlaSpec *mla = spec.latentAttention();
  return mla ? Checked(mla->queryLatent) + mla->latent : Checked(0);
}

Checked k2c::paperLayerParameters(const ModelSpec &spec, int64_t layer, bool doubleCountLatentNorms) {
  Checked count = layerParameters(spec, layer).total();
  if (doubleCountLatentNorms)
    count += latentNorms(spec);
  if (layer == 0)
    count += embeddingParameters(spec);
  if (layer == spec.layerCount() - 1)
    count += headParameters(spec);
  return count;
}

Checked k2c::stageParameters(const ModelSpec &spec, const std::vector<int64_t> &layersOfStages, int64_t stage,
                             bool doubleCountLatentNorms) {
  int64_t first = 0;
  for (int64_t before = 0; before < stage; ++before)
    first += layersOfStages[static_cast<size_t>(before)];
  Checked count;
  for (int64_t layer = first; layer < first + layersOfStages[static_cast<size_t>(stage)]; ++layer)
    count += paperLayerParameters(spec, layer, doubleCountLatentNorms);
  return count;
}
