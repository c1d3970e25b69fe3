//===- Exchange.h - What workers read of each other -----------------------===//
#ifndef K2C_LIB_PLANNER_EXCHANGE_H
#define K2C_LIB_PLANNER_EXCHANGE_H

#include "k2c/Cluster/Calibration.h"

namespace k2c::planner {

/// Activations that one launch writes and the next one reads cross from core to core over the measured links. Workers
/// are taken to fill the innermost units first, and every worker to have written an equal share.
class Exchange {
public:
  /// No `links`: nothing takes time.
  Exchange(const std::vector<LinkRates> &links, const TeamRates &team) : links(links), team(team) {}

  /// What a worker needs beyond the rates of its kernel, whose operands lie near, when it reads `read` bytes of
  /// activations that the team wrote, and writes `written` over bytes that the team has read. The first lines of both
  /// are on their way at the same time.
  double seconds(double read, double written) const;

private:
  const std::vector<LinkRates> &links;
  const TeamRates &team;
};

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_EXCHANGE_H
