//===- Tensors.cpp - reading parts of constants in another order ------------------------===//
//
// Exporters store the matrices of linear layers as they multiply rows, [depth, columns], and checkpoints as [columns,
// depth]. A run of rows of the latter is a run in every row of the former: one read each, and the elements go to their
// columns. Quantised weights are read likewise: their elements are those of a constant that no file has.
//
//===----------------------------------------------------------------------===//
#include "Tensors.h"

#include "base/Utf8.h"
#include "k2c/Support/Join.h"
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace k2c::onnx {

static std::optional<DType> storedType(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return DType::F32;
  case ElementType::F16:
    return DType::F16;
  case ElementType::BF16:
    return DType::BF16;
  default:
    return std::nullopt;
  }
}

/// What is wrong where the first or the last element that a view reads lies outside of the constant, or of so many
/// weights.
static std::optional<std::string> outsideOf(int64_t elements, const View &view) {
  // Views come from a graph's own numbers: strides may be negative, or beyond any size.
  int64_t least = view.offset, last = view.offset;
  for (size_t i = 0; i < view.shape.size(); i++) {
    int64_t reach = 0, &end = view.strides[i] < 0 ? least : last;
    if (view.shape[i] < 1 || __builtin_mul_overflow(view.shape[i] - 1, view.strides[i], &reach) ||
        __builtin_add_overflow(end, reach, &end))
      return "is read in parts of shape " + shapeText(view.shape) + " and strides " + shapeText(view.strides);
  }
  if (least >= 0 && last < elements)
    return std::nullopt;
  return "element " + std::to_string(least < 0 ? least : last) + " is read of " + std::to_string(elements);
}

Status OnnxTensors::add(const std::string &name, const Tensor &constant, const View &view) {
  const std::string place = "tensor '" + shortened(constant.name) + "'";
  const Quantised *const quantised = view.quantised.get();
  const std::optional<DType> type = quantised ? DType::F32 : storedType(constant.type);
  if (!type)
    return Error{place, "weights of type " + onnx::name(constant.type) + " are not in this build",
                 "export the model in FLOAT, FLOAT16 or BFLOAT16"};
  Entry entry{constant, *type, view.offset, view.shape, view.strides, view.shape.size() == 1, view.quantised};
  if (const std::optional<std::string> outside =
          outsideOf(quantised ? quantised->elements() : constant.elements(), view))
    return Error{place, *outside, "export the model again"};
  while (entry.shape.size() < 2) {
    entry.shape.insert(entry.shape.begin(), 1);
    entry.strides.insert(entry.strides.begin(), 0);
  }
  entries.emplace(name, std::move(entry));
  return Status::success();
}

Expected<StoredTensor> OnnxTensors::find(const std::string &name) const {
  const auto found = entries.find(name);
  if (found == entries.end())
    return Error{"tensor '" + shortened(name) + "'", "is not among the weights of the ONNX file", ""};
  StoredTensor out{found->second.type, found->second.shape};
  if (found->second.isVector)
    out.shape.erase(out.shape.begin());
  return out;
}

bool OnnxTensors::isTransposed(const std::string &name) const {
  const Entry &entry = entries.at(name);
  return entry.strides[0] == 1 && entry.strides[1] != 1;
}

Status OnnxTensors::readBytes(const Entry &entry, int64_t element, void *out, int64_t elements) const {
  const int64_t width = byteWidth(entry.type);
  if (entry.quantised) {
    std::vector<float> weights(static_cast<size_t>(elements)); // `out` may be at any byte
    Status status = readQuantised(*graphFiles, *entry.quantised, element, elements, weights.data());
    std::memcpy(out, weights.data(), weights.size() * sizeof(float));
    return status;
  }
  if (entry.constant.file >= 0)
    return graphFiles->read(entry.constant.file, entry.constant.offset + element * width, out, elements * width);
  std::memcpy(out, entry.constant.bytes->data() + element * width, size_t(elements * width));
  return Status::success();
}

/// Elements [column, column + count) of a row.
Status OnnxTensors::readPart(const Entry &entry, int64_t row, int64_t column, int64_t count, char *out) const {
  const int64_t begin = entry.offset + row * entry.strides[0] + column * entry.strides[1];
  if (entry.strides[1] == 1 || count == 1)
    return readBytes(entry, begin, out, count);
  for (int64_t i = 0; i < count; i++)
    if (Status status = readBytes(entry, begin + i * entry.strides[1], out + i * byteWidth(entry.type), 1); !status)
      return status;
  return Status::success();
}

Status OnnxTensors::readRows(const Entry &entry, int64_t first, int64_t count, char *out) const {
  const int64_t columns = entry.shape[1], width = byteWidth(entry.type);
  const int64_t begin = entry.offset + first * entry.strides[0];
  if (entry.strides[1] == 1 && (entry.strides[0] == columns || count == 1))
    return readBytes(entry, begin, out, count * columns);
  if (entry.strides[0] != 1) {
    for (int64_t row = 0; row < count; row++)
      if (Status status = readPart(entry, first + row, 0, columns, out + row * columns * width); !status)
        return status;
    return Status::success();
  }
  std::string run(size_t(count * width), '\0');
  for (int64_t column = 0; column < columns; column++) {
    if (Status status = readBytes(entry, begin + column * entry.strides[1], run.data(), count); !status)
      return status;
    for (int64_t row = 0; row < count; row++)
      std::memcpy(out + (row * columns + column) * width, run.data() + row * width, size_t(width));
  }
  return Status::success();
}

Status OnnxTensors::read(const std::string &name, int64_t offset, char *out, int64_t count) const {
  const Entry &entry = entries.at(name);
  const int64_t width = byteWidth(entry.type), columns = entry.shape[1];
  int64_t element = offset / width, left = count / width;
  while (left > 0) {
    const int64_t row = element / columns, column = element % columns;
    const bool isWhole = column == 0 && left >= columns;
    const int64_t taken = isWhole ? left / columns * columns : std::min(left, columns - column);
    Status status = isWhole ? readRows(entry, row, taken / columns, out) : readPart(entry, row, column, taken, out);
    if (!status)
      return status;
    element += taken;
    left -= taken;
    out += taken * width;
  }
  return Status::success();
}

std::vector<WidenedWeights> OnnxTensors::widened(const std::string &file) const {
  // Parts of the same weights, and constants that several of them have, count once.
  std::map<std::string, WidenedWeights> byFormat;
  std::set<const Quantised *> seen;
  std::set<ValueId> read;
  std::map<std::string, const Entry *> inOrder;
  for (const auto &[name, entry] : entries)
    if (entry.quantised)
      inOrder.emplace(name, &entry);
  for (const auto &[name, entry] : inOrder) {
    const Quantised &weights = *entry->quantised;
    if (!seen.insert(&weights).second)
      continue;
    WidenedWeights &of = byFormat[weights.format()];
    if (of.tensors++ == 0)
      of.place = file + ": tensor '" + shortened(entry->constant.name) + "'";
    of.widenedBytes += weights.elements() * int64_t(sizeof(float));
    for (const auto &[part, what] : weights.parts())
      if (read.insert(part->value).second)
        of.storedBytes += part->tensor.byteSize();
  }
  std::vector<WidenedWeights> out;
  for (auto &[format, of] : byFormat) {
    of.format = format;
    out.push_back(std::move(of));
  }
  return out;
}

TensorPlace OnnxTensors::place(const std::string &name) const {
  const Entry &entry = entries.at(name);
  return {entry.constant.file, entry.constant.offset + entry.offset * byteWidth(entry.type)};
}

std::vector<PieceFile> OnnxTensors::files() const {
  std::vector<PieceFile> out;
  for (const Files::File &file : graphFiles->files)
    out.push_back({file.name, file.bytes});
  return out;
}

} // namespace k2c::onnx
