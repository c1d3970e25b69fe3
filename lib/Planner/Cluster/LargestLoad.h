//===- LargestLoad.h - The fullest of many ranks ------------------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_LARGESTLOAD_H
#define K2C_LIB_PLANNER_CLUSTER_LARGESTLOAD_H

#include "RequestModel.h"
#include "k2c/Planner/Placement.h"
#include "k2c/Planner/RoutedPeak.h"

namespace k2c::planner {

/// Mean of the largest of `count` standard normal numbers (Blom's approximation, within 1 % up to 2^20).
double largestOfNormals(int64_t count);

/// Largest over mean of `ranks` loads of `mean` rows each when the router is uniform: even then ranks differ. Within 2
/// % of simulation for 32 rows and more. `skew`: deviation of the ranks' chances, as a share of their mean.
double largestShare(double mean, int64_t ranks, double skew = 0);

/// Deviation of the loads of ranks with so many experts each, as a share of their mean, where nothing is known of the
/// loads: of experts that were placed by them, and of those that are chosen alike often in the long run by a batch of
/// so many sequences, each of which has its favourites.
double skewOfPlaced(int64_t slots);
double skewOfSequences(int64_t slots, double sequences);

/// Mean over largest load of the layout's expert ranks: measured loads, replicas placed by the published balancer.
double balancednessOf(const ExpertLoad &load, const ParallelLayout &layout);

/// What routing brings to a rank in one layer of experts.
struct RoutedLayer {
  RoutedRows mean, peak; ///< of an even share; of the fullest rank
  RoutedBytes bytes;     ///< of the fullest rank
};
/// Of micro-batches, or steps, of `tokens` on each rank. The model has experts.
RoutedLayer routedLayer(const RequestModel &context, const ParallelLayout &layout, int64_t tokens, Routing routing);
/// "8-15", or "8" alone: `count` ranks from `first` on.
std::string rankRange(int64_t first, int64_t count);
/// The placement behind it.
ReplicaPlacement placementOf(const ExpertLoad &load, const ParallelLayout &layout);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_LARGESTLOAD_H
