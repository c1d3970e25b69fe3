//===- StageParameters.h - Parameters of a pipeline stage, as paper 002 counts -===//
//
// Table 3 of paper 002 counts embedding and head with their layers, the final norm nowhere, and the norms of the
// latents twice, which is an option.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_FORMULAS_STAGEPARAMETERS_H
#define K2C_FORMULAS_STAGEPARAMETERS_H

#include "k2c/Planner/Count.h"

namespace k2c {

/// Norms of the latents of one layer (queries' and keys'), which paper 002 counts twice; 0 without latent attention.
Checked latentNorms(const ModelSpec &spec);
/// Paper 002, table 3: one layer with the embedding (layer 0) and the head (last layer); the final norm counts nowhere.
Checked paperLayerParameters(const ModelSpec &spec, int64_t layer, bool doubleCountLatentNorms);

/// Sum of paperLayerParameters over the layers of `stage`.
Checked stageParameters(const ModelSpec &spec, const std::vector<int64_t> &layersOfStages, int64_t stage,
                        bool doubleCountLatentNorms);

} // namespace k2c

#endif // K2C_FORMULAS_STAGEPARAMETERS_H
