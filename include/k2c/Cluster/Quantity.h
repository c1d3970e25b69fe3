//===- Quantity.h - Numbers with units, as people write them --------------===//
#ifndef K2C_CLUSTER_QUANTITY_H
#define K2C_CLUSTER_QUANTITY_H

#include "base/Error.h"
#include <string>

namespace k2c::cluster {

enum class Dimension { Bytes, BytesPerSecond, FlopPerSecond, Seconds };

/// "48 KiB" is 49152 (Bytes), "54 GB/s" 54e9, "270 GFLOP/s" 270e9, "100 us" 1e-4. Binary prefixes (Ki, Mi, Gi, Ti)
/// are for bytes only. Errors: no number, not positive, another unit (lists the ones that fit). `where` names the
/// place.
Expected<double> parseQuantity(const std::string &text, Dimension dimension, const std::string &where);

/// The shortest text that parseQuantity reads back to `value`, which is positive.
std::string printQuantity(double value, Dimension dimension);

/// The shortest text of a double that reads back to it.
std::string printNumber(double value);

} // namespace k2c::cluster

#endif // K2C_CLUSTER_QUANTITY_H
