//===- TrainQueries.cpp - Queries about training memory -----------------------===//

#include "../Query/Parts.h"

using namespace k2c;

std::vector<QueryFunction> planner::trainQueries() { return {}; }
