//===- LayerRuns.h - layers of equal kinds in few runs --------------------===//
#ifndef K2C_MODEL_LAYERRUNS_H
#define K2C_MODEL_LAYERRUNS_H

#include "k2c/Model/ModelSpec.h"
#include <vector>

namespace k2c {

/// The runs of layers of these kinds, in order from layer 0; kinds that take turns make one run.
std::vector<LayerRun> layerRuns(const std::vector<LayerKind> &kinds);

} // namespace k2c

#endif // K2C_MODEL_LAYERRUNS_H
