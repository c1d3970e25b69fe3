//===- VerifyArrivals.h - A rank uses all that comes -----------------------===//
#ifndef K2C_LIB_TRANSFORMS_VERIFYARRIVALS_H
#define K2C_LIB_TRANSFORMS_VERIFYARRIVALS_H

#include "Origins.h"

namespace k2c {

/// Proves that an op reads all that exchanges bring: what nothing reads was sent for something that the program has
/// lost. Emits an error, which begins with `who`.
mlir::LogicalResult verifyArrivals(Origins &origins, llvm::StringRef who);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_VERIFYARRIVALS_H
