//===- EqualValues.h - Values that are computed alike -----------------------===//
#ifndef K2C_LIB_TRANSFORMS_EQUALVALUES_H
#define K2C_LIB_TRANSFORMS_EQUALVALUES_H

#include "mlir/IR/Value.h"

namespace k2c {

/// Whether two values are computed alike, from the same arguments.
bool areSame(mlir::Value a, mlir::Value b);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_EQUALVALUES_H
