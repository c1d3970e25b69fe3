//===- LayerRuns.h - which layers are of which kind -----------------------===//
#ifndef K2C_LIB_MODEL_LAYERRUNS_H
#define K2C_LIB_MODEL_LAYERRUNS_H

#include "Family.h"
#include "Fields.h"

namespace k2c {

/// Appends the layers of the family's rules to `spec.layers`, in order. Layers whose kinds take turns make one run:
/// turns of the length that a rule says, or, where a list excepts layers from it, of the length that is found in them.
/// Error: a rule that cannot be evaluated, or a list that names a layer behind the last one.
Status readLayers(ModelSpec &spec, const Family &family, const Fields &fields);

} // namespace k2c

#endif // K2C_LIB_MODEL_LAYERRUNS_H
