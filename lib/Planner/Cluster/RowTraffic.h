//===- RowTraffic.h - What the kernels of a layer read and write of a row -----===//
//
// Derived from the ops of a layer (k2c/Model/Layers.h). Each op is a kernel that writes its results. A product of
// matrices reads its rows while it multiplies, so that only its results count; all others read their rows as well:
// norms, rotations, activations, sums, and the permutations around the experts. Views move nothing.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_ROWTRAFFIC_H
#define K2C_LIB_PLANNER_CLUSTER_ROWTRAFFIC_H

#include "k2c/Model/Layers.h"

namespace k2c::planner {

/// Elements of a row: what each tensor-parallel rank has whole, and what they share out.
struct RowElements {
  double whole = 0, split = 0;

  RowElements &operator+=(const RowElements &other) {
    whole += other.whole, split += other.split;
    return *this;
  }
  RowElements operator*(double layers) const { return {layers * whole, layers * split}; }
  /// On each of `ranks` that share out what can be.
  double on(int64_t ranks) const { return whole + split / double(ranks); }
};

/// Of the kernels of a part of a layer, or of several layers.
struct KernelTraffic {
  RowElements read, written;
  double kernels = 0;
  RowElements multiplied{}, results{}; ///< of products with weights: rows, each value once, and what they give

  KernelTraffic &operator+=(const KernelTraffic &other) {
    read += other.read, written += other.written, kernels += other.kernels;
    multiplied += other.multiplied, results += other.results;
    return *this;
  }
  KernelTraffic operator*(double layers) const {
    return {read * layers, written * layers, kernels * layers, multiplied * layers, results * layers};
  }
};

/// Rows of `experts` are those of routed experts, one for each chosen; their `split` is shared by etp ranks.
struct RowTraffic {
  KernelTraffic attention, experts, dense;

  RowTraffic &operator+=(const RowTraffic &other) {
    attention += other.attention, experts += other.experts, dense += other.dense;
    return *this;
  }
  RowTraffic operator*(double layers) const { return {attention * layers, experts * layers, dense * layers}; }
};

/// Of one layer.
RowTraffic rowTraffic(const ModelSpec &spec, const LayerKind &kind);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_ROWTRAFFIC_H
