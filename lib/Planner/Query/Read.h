//===- Read.h - Inputs that several parts read --------------------------------===//
#ifndef K2C_LIB_PLANNER_QUERY_READ_H
#define K2C_LIB_PLANNER_QUERY_READ_H

#include "k2c/Planner/Query.h"

namespace k2c::planner {

/// The latent attention of a model; null, after a mistake at `model`, when it has none.
const MlaSpec *readMla(QueryInputs &in, const ModelSpec *model);
/// The routed layers of a model, likewise.
const MoeSpec *readMoe(QueryInputs &in, const ModelSpec *model);

/// `flavour`, `tokens`, `grouping` and the like: seed (paper) or exact; true: the paper's.
bool readPaper(QueryInputs &in, const std::string &key);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_QUERY_READ_H
