//===- Read.h - Inputs that several parts read ----------------------------===//
#ifndef K2C_LIB_FORMULAS_READ_H
#define K2C_LIB_FORMULAS_READ_H

#include "k2c/Formulas/Query.h"
#include "k2c/Planner/Bubble.h"

namespace k2c::formulas {

/// The latent attention of a model; null, after a mistake at `model`, when it has none.
const MlaSpec *readMla(QueryInputs &in, const ModelSpec *model);
/// The routed layers of a model, likewise.
const MoeSpec *readMoe(QueryInputs &in, const ModelSpec *model);

/// `flavour`, `tokens`, `grouping` and the like: seed (paper) or exact; true: the paper's.
bool readPaper(QueryInputs &in, const std::string &key);

/// `schedule`, by any of its names.
PipelineKind readSchedule(QueryInputs &in, std::optional<PipelineKind> otherwise = std::nullopt);
/// Chunks of a rank, `v` or `vpp`: needed of the interleaved schedule, 1 of the others.
int64_t readChunks(QueryInputs &in, PipelineKind kind);

/// Fails at `key` unless `size` is a multiple of the key's value `parts`; `what` names the size.
void checkDivides(QueryInputs &in, const std::string &key, int64_t parts, const std::string &what, int64_t size);

} // namespace k2c::formulas

#endif // K2C_LIB_FORMULAS_READ_H
