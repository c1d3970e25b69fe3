//===- Orders.cpp - The orders of numerics N1, N3, N5, from shapes alone ------===//
//
// Where a contraction is cut, where a softmax restarts, how many leaves a combine tree has. Evaluation, emission and
// partitioning all ask here.
//
//===----------------------------------------------------------------------===//
#include "k2c/Kernels/KernelDesc.h"
#include "k2rt/placement.h"

namespace k2c {

namespace {
constexpr int64_t leafUnit = 512;       // N1: K / 512 bounds the leaves
constexpr int64_t leafAlignment = 128;  // N1: leaves are rounded up to 128
constexpr int64_t maxLeaves = 8;        // N1
constexpr int64_t minRestart = 1024;    // N3
constexpr int64_t restartFraction = 16; // N3

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
} // namespace

int64_t leafCount(int64_t k) {
  int64_t leaves = 1;
  while (leaves < maxLeaves && leaves * 2 * leafUnit <= k)
    leaves *= 2;
  return leaves;
}

int64_t leafLength(int64_t k, int64_t leaves) { return ceilDiv(ceilDiv(k, leaves), leafAlignment) * leafAlignment; }

bool leavesComeOutEven(int64_t k, int64_t leaves, int64_t parts) {
  return leaves % parts == 0 && leafLength(k, leaves) * leaves == k;
}

int64_t softmaxRestart(int64_t position) {
  int64_t restart = minRestart;
  while (restart * restartFraction < position + 1)
    restart *= 2;
  return restart;
}

int64_t softmaxPartials(int64_t position) { return position / softmaxRestart(position) + 1; }

int64_t combineLeaves(int64_t experts) { return k2rt_combine_leaves(experts); }

} // namespace k2c
