// Counting a collective at its end.
#include "exchange/Counters.h"
#include <algorithm>

namespace k2c::runtime {

void Counters::count(const Collective &collective, const RequestTotals &totals, Clock::time_point waitBegin) {
  SiteCounters &site = bySite[collective.site];
  site.op = collective.op;
  site.axis = collective.axis;
  site.layer = collective.layer;
  ++site.calls;
  const bool isControl = collective.isControl || collective.op == Op::counts;
  (isControl ? site.controlBytes : site.payloadBytes) += totals.payloadBytes;
  site.controlBytes += totals.headerBytes;
  const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
  site.seconds += seconds(totals.end - totals.begin);
  const double waited = std::max(0.0, seconds(totals.end - waitBegin));
  site.waitedSeconds += waited;
  if (totals.last >= 0 && waited > 0)
    site.waitedFor[totals.last] += waited;
}

} // namespace k2c::runtime
