//===- Orders.h - The declared order of each reduction --------------------===//
#ifndef K2C_LIB_TRANSFORMS_ORDERS_H
#define K2C_LIB_TRANSFORMS_ORDERS_H

#include "dialects/Nn/Nn.h"

namespace k2c {

/// Declares the orders numerics N1, N3, N5 give to every reduction of `op`; returns how many there are. Ops a later
/// pass creates (absorb-mla) get theirs from the same rule.
int64_t declareOrders(nn::ReductionOp op);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_ORDERS_H
