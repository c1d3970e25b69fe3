//===- PlannedDivision.cpp - What a plan of rows to experts divides ---------===//
#include "PlannedDivision.h"

#include "dialects/Nn/NnVerify.h"
#include "llvm/Support/raw_ostream.h"
#include <tuple>

namespace k2c {

bool PlannedDivision::operator==(const PlannedDivision &other) const {
  return std::tie(experts, slots, held, top, member, among) ==
         std::tie(other.experts, other.slots, other.held, other.top, other.member, other.among);
}

std::string PlannedDivision::text() const {
  std::string text;
  llvm::raw_string_ostream(text) << experts << " experts in " << slots << " slots, " << held << " a "
                                 << dist::stringifyHolder(member) << ", " << top << " a row among " << among;
  return text;
}

PlannedDivision divisionOf(moe::RoutePlanOp plan) {
  return {static_cast<int64_t>(plan.getCount()),
          static_cast<int64_t>(plan.getSlots()),
          static_cast<int64_t>(plan.getHeld()),
          nn::widthOf(plan.getChosen().getType()),
          plan.getTo(),
          plan.getAmong()};
}

} // namespace k2c
