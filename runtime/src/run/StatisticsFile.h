// The file of --expert-stats.
#ifndef K2RT_RUN_STATISTICSFILE_H
#define K2RT_RUN_STATISTICSFILE_H

#include "engine/ExpertStatistics.h"
#include <cstdio>
#include <map>
#include <string>

namespace k2c::runtime {

/// Layers by their number in the checkpoint, entries by source and then by experts: equal runs write equal bytes.
void writeStatistics(const ExpertStatistics &statistics, const Manifest &manifest, FILE *file);

/// Of all tokens of the file, by layer. Refuses one of another model, number of experts or layers with experts.
Expected<std::map<int64_t, ExpertLoads>> readLoads(const std::string &path, const Manifest &manifest);

} // namespace k2c::runtime

#endif
