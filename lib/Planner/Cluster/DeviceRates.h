//===- DeviceRates.h - Time of the kernels of a device ------------------------===//
//
// A step is its kernels, one after another. A product of matrices, or of queries with keys, is bound by its arithmetic
// or by what it reads while it multiplies; what it writes, and what all other kernels read and write, comes on top. On
// CPUs k2c computes norms, activations and sums with the products that are beside them (prologues, epilogues).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_DEVICERATES_H
#define K2C_LIB_PLANNER_CLUSTER_DEVICERATES_H

#include "k2c/Planner/Evaluate.h"
#include <algorithm>

namespace k2c::planner {

/// What the kernels of a part do on one device, one after another.
struct KernelWork {
  double filling = 0;          ///< FLOP that products could do while tiles start and end, and what one rank does more
  double coreFilling = 0;      ///< likewise, of attention
  double linear = 0, core = 0; ///< FLOP of products with weights; of queries with keys, and of values
  double streamed = 0, passed = 0; ///< bytes that products read while they multiply; that are moved beside them
  double kernels = 0;
};

/// Constants of the device for a request.
struct DeviceRates {
  DeviceRates(const PlanRequest &request);
  /// Seconds of kernels that have a share of the device's multiprocessors.
  double seconds(const KernelWork &work, double share = 1) const {
    const double streamed = work.streamed + (isCpu ? work.passed : 0), beside = isCpu ? 0 : work.passed;
    return work.kernels * launch + std::max(computing(work) / share, streamed / memory) + beside / memory;
  }
  /// Of these, what waits for memory, so that it takes longer where something else uses memory as well.
  double waiting(const KernelWork &work, double share = 1) const {
    const double streaming = work.streamed / memory;
    return isCpu ? 0 : work.passed / memory + (streaming > computing(work) / share ? streaming : 0);
  }
  double computing(const KernelWork &work) const {
    return (work.linear + work.filling) / linears + (work.core + work.coreFilling) / attention;
  }

  bool isCpu = false; ///< of k2c's own kernels, which compute with products what lies between them
  double memory = 1, attention = 1, linears = 1; ///< bytes/s and FLOP/s that are reached
  double attentionBackward = 1, plain = 1;       ///< FLOP/s: of attention's gradient; of linears that are not in FP8
  double launch = 0;                             ///< seconds of a kernel beyond its work
  double fillDepth = 0;       ///< elements of a row that a product could multiply while its tiles start and end
  double castBytes = 0;       ///< to bring an element to the format of the products, before them
  double castBackward = 0;    ///< likewise, of the gradient of a result
  double transposeBytes = 0;  ///< and to bring an element to the format of the products that give weights' gradients
  double attentionFill = 0;   ///< keys that a tile of queries could meet while it starts, ends and is masked
  double tileRows = 1;        ///< of the smallest tile of a product
  double sendReceive = 0;     ///< seconds in which an all-to-all of generated tokens has all multiprocessors
  double besideTransfers = 1; ///< share of the multiprocessors that all-to-alls of large batches leave
  double transferRate = 1;    ///< share of the links' rate that these reach beside kernels
  double dispatchBytes = 2, combineBytes = 2; ///< of a value on the links
  double activationBytes = 2;
  std::vector<std::string> notes; ///< what was assumed
};

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_DEVICERATES_H
