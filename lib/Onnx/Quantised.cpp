//===- Quantised.cpp - weights that are stored as few bits and scales --------------===//
//
// Weights are read in runs along their last axis. In a run each part of a weight is a range of its constant, read at
// once where its elements lie side by side, as they do in all formats but transposed ones.
//
//===----------------------------------------------------------------------===//
#include "Quantised.h"

#include "Elements.h"
#include "k2c/Support/Join.h"
#include <algorithm>
#include <cstring>

namespace k2c::onnx {

/// Bound of the weights of one constant as floats, so that sums over constants do not overflow.
constexpr int64_t maxBytes = int64_t(1) << 50;

int64_t Quantised::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

std::vector<std::pair<const QuantisedPart *, const char *>> Quantised::parts() const {
  std::vector<std::pair<const QuantisedPart *, const char *>> out = {{&numbers, "numbers"}};
  if (scales)
    out.emplace_back(&*scales, "scales");
  if (zeros)
    out.emplace_back(&*zeros, "zero points");
  return out;
}

/// Which weights have a scale in common.
static std::string scalesText(const Quantised &weights) {
  if (weights.block > 0)
    return " in blocks of " + std::to_string(weights.block);
  const std::vector<int64_t> strides = weights.scales ? weights.scales->strides : std::vector<int64_t>{0};
  const bool isOne = std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 0; });
  return isOne ? " with one scale" : strides.back() != 0 ? " with a scale a column" : " with a scale a row";
}

std::string Quantised::format() const {
  const ElementType type = numbers.tensor.type;
  return (isWhole(type) ? std::to_string(bitWidth(type)) + "-bit" : name(type)) + " weights" + scalesText(*this);
}

/// The highest element number that a part is asked for; none: it is beyond all numbers, or the lowest is below 0.
static std::optional<int64_t> lastOf(const QuantisedPart &part, const std::vector<int64_t> &shape) {
  int64_t last = part.offset, lowest = part.offset;
  for (size_t i = 0; i < shape.size(); i++) {
    int64_t reach = 0, &end = part.strides[i] < 0 ? lowest : last;
    if (shape[i] < 1 || part.blocks[i] < 1 ||
        __builtin_mul_overflow((shape[i] - 1) / part.blocks[i], part.strides[i], &reach) ||
        __builtin_add_overflow(end, reach, &end))
      return std::nullopt;
  }
  return lowest < 0 ? std::nullopt : std::optional(last);
}

std::optional<std::string> outsideOf(const Quantised &weights) {
  int64_t bytes = sizeof(float);
  for (int64_t size : weights.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes) || bytes > maxBytes)
      return "weights of shape " + shapeText(weights.shape) + " are too many";
  for (const auto &[part, what] : weights.parts()) {
    const std::optional<int64_t> last = lastOf(*part, weights.shape);
    if (!last || *last >= part->tensor.elements())
      return std::string(what) + " of its weights are read beyond the " + std::to_string(part->tensor.elements()) +
             " elements of '" + shortened(part->tensor.name, maxQuoted / 2) + "'";
  }
  return std::nullopt;
}

/// Elements [first, first + count) of a tensor.
static Status readElements(const Files &files, const Tensor &tensor, int64_t first, int64_t count, float *out) {
  const int64_t bits = bitWidth(tensor.type), begin = first * bits / 8, end = ((first + count) * bits + 7) / 8;
  if (tensor.file < 0) {
    widenElements(tensor.type, tensor.bytes->data() + begin, first - begin * 8 / bits, count, out);
    return Status::success();
  }
  std::string bytes(size_t(end - begin), '\0');
  if (Status status = files.read(tensor.file, tensor.offset + begin, bytes.data(), end - begin); !status)
    return status;
  widenElements(tensor.type, bytes.data(), first - begin * 8 / bits, count, out);
  return Status::success();
}

/// A part of the weights [column, column + count) of a run that begins at element `run` of the part.
static Status readPart(const Files &files, const QuantisedPart &part, int64_t run, int64_t column, int64_t count,
                       float *out) {
  const int64_t stride = part.strides.back(), block = part.blocks.back();
  const int64_t begin = stride == 0 ? 0 : column / block, end = stride == 0 ? 1 : (column + count - 1) / block + 1;
  std::vector<float> each(size_t(end - begin));
  if (stride == 0 || stride == 1) {
    if (Status status = readElements(files, part.tensor, run + begin * stride, end - begin, each.data()); !status)
      return status;
  } else {
    for (int64_t i = begin; i < end; i++)
      if (Status status = readElements(files, part.tensor, run + i * stride, 1, &each[size_t(i - begin)]); !status)
        return status;
  }
  for (int64_t i = 0; i < count; i++)
    out[i] = each[size_t(stride == 0 ? 0 : (column + i) / block - begin)];
  return Status::success();
}

/// Where the run begins that has weight `first`, in elements of a part.
static int64_t runOf(const QuantisedPart &part, const std::vector<int64_t> &shape, int64_t first) {
  int64_t out = part.offset, rest = first / shape.back();
  for (size_t i = shape.size() - 1; i-- > 0; rest /= shape[i])
    out += rest % shape[i] / part.blocks[i] * part.strides[i];
  return out;
}

Status readQuantised(const Files &files, const Quantised &weights, int64_t first, int64_t count, float *out) {
  std::vector<float> scales, zeros;
  const int64_t width = weights.shape.back();
  while (count > 0) {
    const int64_t column = first % width, taken = std::min(count, width - column);
    const auto read = [&](const QuantisedPart &part, float *to) {
      return readPart(files, part, runOf(part, weights.shape, first), column, taken, to);
    };
    scales.assign(size_t(taken), weights.scale);
    zeros.assign(size_t(taken), weights.zero);
    if (Status status = read(weights.numbers, out); !status)
      return status;
    if (weights.scales)
      if (Status status = read(*weights.scales, scales.data()); !status)
        return status;
    if (weights.zeros)
      if (Status status = read(*weights.zeros, zeros.data()); !status)
        return status;
    for (int64_t i = 0; i < taken; i++)
      out[i] = (out[i] - zeros[size_t(i)]) * scales[size_t(i)];
    first += taken;
    count -= taken;
    out += taken;
  }
  return Status::success();
}

} // namespace k2c::onnx
