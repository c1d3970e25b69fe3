//===- CheckWeights.h - a checkpoint against its model --------------------===//
#ifndef K2C_MODEL_CHECKWEIGHTS_H
#define K2C_MODEL_CHECKWEIGHTS_H

#include "k2c/Model/ModelSpec.h"
#include "k2c/Model/Safetensors.h"

namespace k2c {

/// Checks that the checkpoint holds every tensor of the spec's families, with
/// its shape and one element type (f32, bf16 or f16) per family, and no tensor
/// that is neither used nor known to be ignorable. On success each family's
/// dtype is the stored one. Every failure names the tensor.
Status checkWeights(ModelSpec &spec, const Checkpoint &checkpoint);

} // namespace k2c

#endif // K2C_MODEL_CHECKWEIGHTS_H
