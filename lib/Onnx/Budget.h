//===- Budget.h - how large a graph may become in memory ----------------------===//
#ifndef K2C_LIB_ONNX_BUDGET_H
#define K2C_LIB_ONNX_BUDGET_H

#include <cstdint>

namespace k2c::onnx {

/// The memory that the description of a graph takes: nodes, names, attributes, shapes and what tensors keep in typed
/// fields, but no bytes of weights that are read from files. An empty node is 2 bytes of a file and hundreds in memory,
/// and a few nested functions make millions of nodes, so each is counted before it is made.
class Budget {
public:
  /// Three million nodes; one for each matrix of all experts of the largest published models takes a third of it.
  static constexpr int64_t limitBytes = int64_t(1) << 30;
  /// What a node, an attribute, a tensor or a value takes beside its text: a bit more than its struct.
  static constexpr int64_t recordBytes = 320;

  /// Counts `bytes`, not negative. False: they do not fit.
  bool take(int64_t bytes) {
    if (bytes > limitBytes - taken)
      return false;
    taken += bytes;
    return true;
  }

private:
  int64_t taken = 0;
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_BUDGET_H
