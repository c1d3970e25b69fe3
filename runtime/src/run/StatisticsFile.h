// The file of --expert-stats.
#ifndef K2RT_RUN_STATISTICSFILE_H
#define K2RT_RUN_STATISTICSFILE_H

#include "engine/ExpertStatistics.h"
#include <cstdio>

namespace k2c::runtime {

/// Layers by their number in the checkpoint, entries by source and then by experts: equal runs write equal bytes.
void writeStatistics(const ExpertStatistics &statistics, const Manifest &manifest, FILE *file);

} // namespace k2c::runtime

#endif
