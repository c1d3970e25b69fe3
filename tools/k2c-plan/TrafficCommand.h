//===- TrafficCommand.h - k2c plan MODEL --stats FILE -------------------------===//
#ifndef K2C_TOOLS_K2C_PLAN_TRAFFICCOMMAND_H
#define K2C_TOOLS_K2C_PLAN_TRAFFICCOMMAND_H

#include "ClusterCommand.h"

namespace k2c {

/// Whether `flags` ask for the traffic of a run's routes.
bool asksTraffic(const ClusterFlags &flags);

/// Counts what the program of these flags sends for the tokens of --stats, and prints it. Returns the exit code.
int planTraffic(const ClusterFlags &flags, const ModelSpec &spec, const Topology &topology);

} // namespace k2c

#endif // K2C_TOOLS_K2C_PLAN_TRAFFICCOMMAND_H
