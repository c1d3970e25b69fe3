//===- FoldConstants.cpp - elements of constant tensors -----------------------------===//
//
// A constant is a leaf whose elements are numbers where their indices are. Small ones are read at once: integers and
// conditions that are equal everywhere, and what is 0 everywhere, are a number and no leaf, so that a mask of ones or a
// bias of zeros is none.
//
//===----------------------------------------------------------------------===//
#include "Elements.h"
#include "Fold.h"

#include <algorithm>
#include <cstring>

namespace k2c::onnx {

/// Bound of the elements of a constant that are looked at without being asked for.
constexpr int64_t maxExamined = int64_t(1) << 16;

/// Bound of the constants whose elements are read at once.
constexpr int64_t maxSmallBytes = maxFoldedElements * 8;

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
    if (const std::optional<double> element = decodeElement(constant->second.type, bytes->data(), i))
      out.push_back(*element);
  return size_t(index) < out.size() ? std::optional<double>(out[size_t(index)]) : std::nullopt;
}

std::vector<double> Fold::elementsOf(const Tensor &tensor, int64_t first, int64_t count) const {
  const int64_t bits = bitWidth(tensor.type);
  if (bits == 0 || first < 0 || count > tensor.elements() - first)
    return {};
  const int64_t begin = first * bits / 8, size = ((first + count) * bits + 7) / 8 - begin;
  std::string bytes(size_t(size), '\0');
  if (tensor.file < 0)
    bytes = tensor.bytes->substr(size_t(begin), bytes.size());
  else if (!graph.files->read(tensor.file, tensor.offset + begin, bytes.data(), size))
    return {};
  std::vector<double> out;
  for (int64_t i = 0; i < count; i++)
    if (const std::optional<double> element = decodeElement(tensor.type, bytes.data(), first - begin * 8 / bits + i))
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
    return decodeElement(tensor.type, bytes, 0);
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
