//===- PrintCalibration.h - Parts of a topology file ----------------------===//
#ifndef K2C_LIB_CLUSTER_PRINTCALIBRATION_H
#define K2C_LIB_CLUSTER_PRINTCALIBRATION_H

#include "k2c/Cluster/Calibration.h"
#include <string>

namespace k2c::cluster {

/// A double-quoted YAML scalar, which is also JSON's.
std::string quoted(const std::string &text);

/// The lines of `measured`, as a key of `device`.
std::string printCalibration(const Calibration &calibration);

} // namespace k2c::cluster

#endif // K2C_LIB_CLUSTER_PRINTCALIBRATION_H
