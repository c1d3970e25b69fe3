//===- Quantity.h - Which part of an answer a quantity names ------------------===//
#ifndef K2C_LIB_PLANNER_QUERY_QUANTITY_H
#define K2C_LIB_PLANNER_QUERY_QUANTITY_H

#include "k2c/Support/Error.h"
#include <nlohmann/json.hpp>
#include <string>

namespace k2c::planner {

/// The part that `quantity` names. The golden files name quantities after tables ("t6_moe_MiB", "os+g_grads_GiB"): the
/// unit at the end says bytes or parameters, and the longest run of words that is a part's name says which. One
/// with digits that names no part is a label of inputs and means the first part, the answer's value. Error: no part,
/// with those there are.
Expected<std::string> partOf(const std::string &quantity, const nlohmann::ordered_json &parts,
                             const std::string &function);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_QUERY_QUANTITY_H
