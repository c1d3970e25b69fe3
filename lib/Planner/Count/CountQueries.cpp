//===- CountQueries.cpp - Queries about parameters, FLOP and cache ------------===//

#include "../Query/Parts.h"

using namespace k2c;

std::vector<QueryFunction> planner::countQueries() { return {}; }
