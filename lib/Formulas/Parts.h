//===- Parts.h - The lists of functions that answer queries ---------------===//
//
// Each function lives in the folder of its subject (lib/Formulas/Count/CountQueries.cpp, ...). A new list adds a line
// here and one in Query.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_FORMULAS_PARTS_H
#define K2C_LIB_FORMULAS_PARTS_H

#include "k2c/Formulas/Query.h"

namespace k2c::formulas {

std::vector<QueryFunction> countQueries();
std::vector<QueryFunction> trainQueries();
std::vector<QueryFunction> serveQueries();
std::vector<QueryFunction> expertQueries();
std::vector<QueryFunction> scheduleQueries();
std::vector<QueryFunction> placementQueries();
std::vector<QueryFunction> affinityQueries();
std::vector<QueryFunction> routedPeakQueries();

} // namespace k2c::formulas

#endif // K2C_LIB_FORMULAS_PARTS_H
