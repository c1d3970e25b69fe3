//===- Quantity.h - Which part of an answer a quantity names ------------------===//
#ifndef K2C_LIB_PLANNER_QUERY_QUANTITY_H
#define K2C_LIB_PLANNER_QUERY_QUANTITY_H

#include "k2c/Planner/Query.h"

namespace k2c::planner {

/// The keys of an object, "a, b, c", for messages.
std::string namesOf(const nlohmann::ordered_json &fields);

/// The number that `quantity` names of an answer with several parts. The golden files name quantities after tables and
/// inputs ("t6_moe_MiB", "os+g_grads_GiB", "kimi_k2_L8_tp4_params_seed"). Words that repeat the inputs are labels: the
/// model, "tp4", "os+g"; one that contradicts them is a mistake. The last word may be a unit, which says bytes,
/// parameters or seconds. What is left has to be a part's whole name, or nothing: then the answer's own value is meant.
/// Error: anything else, with the parts there are.
Expected<nlohmann::ordered_json> quantityOf(const std::string &quantity, const QueryAnswer &answer,
                                            const nlohmann::json &inputs, const std::string &function);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_QUERY_QUANTITY_H
