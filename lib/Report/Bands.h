//===- Bands.h - What plans of published runs came to ---------------------===//
//
// models/published-bands.json, which scripts/published.py writes, has planned / published of runs by class. A plan
// shows the range of its own classes, so that its reader knows how near plans like it were.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_REPORT_BANDS_H
#define K2C_LIB_REPORT_BANDS_H

#include "k2c/Report/Report.h"

namespace k2c::report {

/// A kind of plans that were compared with published runs.
struct Band {
  std::string name; ///< "prefill with overlap"
  std::string text; ///< "within 0.9 to 1.2 of 9 published runs", or the runs where fewer than three are known
};

/// Of the phases of a plan, for GPUs: all published runs are of GPUs.
std::vector<Band> bandsOf(const PlanReport &report);

} // namespace k2c::report

#endif // K2C_LIB_REPORT_BANDS_H
