//===- PrintPlan.h - A plan on the terminal -----------------------------------===//
#ifndef K2C_TOOLS_K2C_PLAN_PRINTPLAN_H
#define K2C_TOOLS_K2C_PLAN_PRINTPLAN_H

#include "k2c/Planner/ClusterPlan.h"
#include <string>

namespace k2c {

/// Tables of memory, steps, traffic and figures.
std::string planText(const ClusterPlan &plan);

/// The best plan, the frontier, why the runners-up lose and what was refused.
std::string searchText(const PlanSearch &search);

} // namespace k2c

#endif // K2C_TOOLS_K2C_PLAN_PRINTPLAN_H
