//===- CheckTransport.h - Blocking exchanges cannot wait for each other -------===//
#ifndef K2C_UNIT_PLANNER_CHECKTRANSPORT_H
#define K2C_UNIT_PLANNER_CHECKTRANSPORT_H

#include "k2c/Planner/Schedule.h"

namespace k2c::test {

/// Runs sends, receives and waits with blocking exchanges. Errors, with rank and task: ranks that wait for each other,
/// a transfer without its other half, a task that runs before its input has arrived, a send of what is not computed.
Status checkTransport(const PipelineSchedule &schedule);

} // namespace k2c::test

#endif // K2C_UNIT_PLANNER_CHECKTRANSPORT_H
