//===- Quantised.h - weights that are stored as few bits and scales --------------===//
//
//   weight = (number - zero point) * scale
//
// Each of the three is a part of a constant that depends on the weight's indices alone: in a block of them, scale and
// zero point are one.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_ONNX_QUANTISED_H
#define K2C_LIB_ONNX_QUANTISED_H

#include "Graph.h"

namespace k2c::onnx {

/// What a constant has for the weight at indices i: its element number offset + sum over axes k of
/// floor(i_k / blocks[k]) * strides[k].
struct QuantisedPart {
  ValueId value = noValue;
  Tensor tensor; ///< where bytes are two numbers, of type UINT4 and so many more elements
  int64_t offset = 0;
  std::vector<int64_t> strides, blocks;
};

struct Quantised {
  std::vector<int64_t> shape; ///< of the weights, row-major; of rank 1 or more
  QuantisedPart numbers;
  std::optional<QuantisedPart> scales, zeros;
  float scale = 1, zero = 0; ///< of all, where there are no `scales`, no `zeros`
  int64_t block = 0;         ///< weights of an axis that have a scale in common, as the file says; 0: no blocks

  int64_t elements() const;
  /// Numbers, and of scales and zero points those that are there, with what they are.
  std::vector<std::pair<const QuantisedPart *, const char *>> parts() const;
  /// "4-bit weights in blocks of 32".
  std::string format() const;
};

/// What is wrong with a quantised weight: a part is read beyond the end of its constant, or there are more weights than
/// can be counted. None: nothing is.
std::optional<std::string> outsideOf(const Quantised &weights);

/// Weights [first, first + count) in their order, computed in float: (number - zero point) * scale, each operation
/// rounded once.
Status readQuantised(const Files &files, const Quantised &weights, int64_t first, int64_t count, float *out);

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_QUANTISED_H
