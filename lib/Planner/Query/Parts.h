//===- Parts.h - The parts of the planner that answer queries -----------------===//
//
// Each function lives in the folder of its part (lib/Planner/Count/CountQueries.cpp, ...). A new part adds a line here
// and one in Query.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PLANNER_QUERY_PARTS_H
#define K2C_LIB_PLANNER_QUERY_PARTS_H

#include "k2c/Planner/Query.h"

namespace k2c::planner {

std::vector<QueryFunction> countQueries();
std::vector<QueryFunction> trainQueries();
std::vector<QueryFunction> serveQueries();
std::vector<QueryFunction> expertQueries();
std::vector<QueryFunction> scheduleQueries();
std::vector<QueryFunction> placementQueries();
std::vector<QueryFunction> affinityQueries();
std::vector<QueryFunction> routedPeakQueries();

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_QUERY_PARTS_H
