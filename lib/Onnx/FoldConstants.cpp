//===- FoldConstants.cpp - elements of constant tensors -----------------------------===//
//
// A constant is a leaf whose elements are numbers where their indices are. Small ones are read at once: integers and
// conditions that are equal everywhere, and what is 0 everywhere, are a number and no leaf, so that a mask of ones or a
// bias of zeros is none.
//
//===----------------------------------------------------------------------===//
#include "Fold.h"

#include "k2c/Support/Half.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace k2c::onnx {

/// Bound of the elements of a constant that are looked at without being asked for.
constexpr int64_t maxExamined = int64_t(1) << 16;

/// Bound of the constants whose elements are read at once.
constexpr int64_t maxSmallBytes = maxFoldedElements * 8;

bool isWhole(ElementType type) {
  return type != ElementType::F32 && type != ElementType::F16 && type != ElementType::BF16 &&
         type != ElementType::F64 && type != ElementType::F8E4M3 && type != ElementType::F8E5M2;
}

static float fromBits(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// A floating-point number of 8 bits, by the bits of its mantissa. Those of 4 and 3 have no infinities; the others do.
static double fromEight(uint8_t bits, int mantissaBits, int bias) {
  const int mantissa = bits & ((1 << mantissaBits) - 1), exponent = (bits & 127) >> mantissaBits;
  const double sign = bits & 128 ? -1 : 1;
  const bool isFinite = mantissaBits == 3 ? (bits & 127) != 127 : exponent != 31;
  if (!isFinite)
    return mantissaBits == 3 || mantissa ? std::numeric_limits<double>::quiet_NaN()
                                         : sign * std::numeric_limits<double>::infinity();
  const int whole = exponent ? mantissa + (1 << mantissaBits) : mantissa;
  return sign * std::ldexp(whole, std::max(exponent, 1) - bias - mantissaBits);
}

/// Element `index` of elements of 4 bits, the first of a byte in its low half.
static double fromFour(const char *bytes, int64_t index, bool isSigned) {
  const int half = (uint8_t(bytes[index / 2]) >> (index % 2 * 4)) & 15;
  return isSigned && half > 7 ? half - 16 : half;
}

template <class T> static double load(const char *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return double(value);
}

/// Element `index` of tensor bytes, as a number; none: of a type that is not read so.
static std::optional<double> decode(ElementType type, const char *bytes, int64_t index) {
  const char *const at = bytes + index * bitWidth(type) / 8;
  switch (type) {
  case ElementType::U4:
  case ElementType::I4:
    return fromFour(bytes, index, type == ElementType::I4);
  case ElementType::F8E4M3:
    return fromEight(uint8_t(*at), 3, 7);
  case ElementType::F8E5M2:
    return fromEight(uint8_t(*at), 2, 15);
  case ElementType::F32:
    return load<float>(at);
  case ElementType::F64:
    return load<double>(at);
  case ElementType::I64:
    return load<int64_t>(at);
  case ElementType::I32:
    return load<int32_t>(at);
  case ElementType::I16:
    return load<int16_t>(at);
  case ElementType::I8:
    return load<int8_t>(at);
  case ElementType::U8:
  case ElementType::Bool:
    return load<uint8_t>(at);
  case ElementType::U16:
    return load<uint16_t>(at);
  case ElementType::U32:
    return load<uint32_t>(at);
  case ElementType::U64:
    return load<uint64_t>(at);
  case ElementType::F16:
    return fromBits(widenHalf(uint16_t(load<uint16_t>(at))));
  case ElementType::BF16:
    return fromBits(uint32_t(load<uint16_t>(at)) << 16);
  default:
    return std::nullopt;
  }
}

std::optional<double> Fold::constantAt(ValueId value, int64_t index) {
  const auto found = decoded.find(value);
  if (found != decoded.end())
    return size_t(index) < found->second.size() ? std::optional<double>(found->second[size_t(index)]) : std::nullopt;
  std::vector<double> &out = decoded[value];
  const auto constant = graph.constants.find(value);
  if (constant == graph.constants.end() || constant->second.elements() > maxFoldedElements ||
      bitWidth(constant->second.type) == 0)
    return std::nullopt;
  const Expected<std::string> bytes = readTensor(graph, constant->second, maxSmallBytes);
  if (!bytes)
    return std::nullopt;
  for (int64_t i = 0; i < constant->second.elements(); i++)
    if (const std::optional<double> element = decode(constant->second.type, bytes->data(), i))
      out.push_back(*element);
  return size_t(index) < out.size() ? std::optional<double>(out[size_t(index)]) : std::nullopt;
}

std::vector<double> Fold::elementsOf(const Tensor &tensor, int64_t first, int64_t count) const {
  const int64_t bits = bitWidth(tensor.type);
  if (bits % 8 || bits == 0 || first < 0 || count > tensor.elements() - first)
    return {};
  std::string bytes(size_t(count * bits / 8), '\0');
  if (tensor.file < 0)
    bytes = tensor.bytes->substr(size_t(first * bits / 8), bytes.size());
  else if (!graph.files->read(tensor.file, tensor.offset + first * bits / 8, bytes.data(), int64_t(bytes.size())))
    return {};
  std::vector<double> out;
  for (int64_t i = 0; i < count; i++)
    if (const std::optional<double> element = decode(tensor.type, bytes.data(), i))
      out.push_back(*element);
  return out;
}

/// The number that all elements of a constant are, of real ones only 0. Most are told by a few elements.
std::optional<double> Fold::uniformValue(ValueId value, const Tensor &tensor) {
  const int64_t width = bitWidth(tensor.type) / 8, count = tensor.elements();
  if (count == 0 || count > maxFoldedElements || width == 0)
    return std::nullopt;
  const auto elementAt = [&](int64_t index) -> std::optional<double> {
    char bytes[8] = {};
    if (tensor.file < 0)
      std::memcpy(bytes, tensor.bytes->data() + index * width, size_t(width));
    else if (!graph.files->read(tensor.file, tensor.offset + index * width, bytes, width))
      return std::nullopt;
    return decode(tensor.type, bytes, 0);
  };
  const std::optional<double> first = elementAt(0);
  bool isUniform = first && (isWhole(tensor.type) || *first == 0);
  for (int64_t i = 1; isUniform && i < 4; i++)
    isUniform = elementAt((count - 1) * i / 3) == first;
  if (!isUniform || !constantAt(value, 0))
    return std::nullopt;
  const std::vector<double> &all = decoded[value];
  return std::all_of(all.begin(), all.end(), [&](double element) { return element == *first; }) ? first : std::nullopt;
}

void Fold::addConstants() {
  std::vector<ValueId> order;
  for (const auto &[value, tensor] : graph.constants)
    if (bitWidth(tensor.type) != 0 && tensor.shape.size() < size_t(firstReduced)) // nodes that read others are refused
      order.push_back(value);
  std::sort(order.begin(), order.end());
  for (ValueId value : order) {
    const Tensor &tensor = graph.constants.at(value);
    LeafDefinition definition;
    definition.op = "constant";
    definition.numbers = {value};
    definition.isInteger = isWhole(tensor.type);
    for (int64_t size : tensor.shape)
      definition.shape.push_back(terms.number(double(size)));
    Folded folded{tensor.type, definition.shape, Term{}};
    // Integers that are not too many have bounds; weights of few bits need none.
    const bool isIndex = isWhole(tensor.type) && bitWidth(tensor.type) >= 32 && tensor.elements() > 0;
    if (isIndex && tensor.elements() <= maxExamined && constantAt(value, 0)) {
      const std::vector<double> &all = decoded[value];
      definition.min = int64_t(std::clamp(*std::min_element(all.begin(), all.end()), -9e18, 9e18));
    }
    const Leaf leaf = terms.leafOf(std::move(definition));
    // Integers and conditions that are all equal are a number, and so is what is 0 everywhere.
    const std::optional<double> all = uniformValue(value, tensor);
    folded.element = all ? terms.number(*all) : terms.element(leaf, variables(folded.shape));
    values[size_t(value)] = std::move(folded);
  }
}

} // namespace k2c::onnx
