//===- PlannedDivision.h - What a plan of rows to experts divides -----------===//
#ifndef K2C_LIB_TRANSFORMS_PLANNEDDIVISION_H
#define K2C_LIB_TRANSFORMS_PLANNEDDIVISION_H

#include "dialects/Moe/Moe.h"
#include <string>

namespace k2c {

/// The experts of a layer in the slots of members.
struct PlannedDivision {
  int64_t experts, slots, held, top; ///< slots: of all ranks; held: of a member
  dist::Holder member;
  nn::IndicesAttr among;

  bool operator==(const PlannedDivision &other) const;
  /// For diagnostics.
  std::string text() const;
};

PlannedDivision divisionOf(moe::RoutePlanOp plan);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_PLANNEDDIVISION_H
