//===- SourceReader.cpp - The rows of an operand, in order ----------------===//
//
// A slice leaves runs of `kept * inner` elements in every `size * inner`, and a part of that has runs of its own; a
// read of consecutive elements is one file read for each run it touches. Nothing is ever asked for twice, so hashing on
// the way is one pass.
//
//===----------------------------------------------------------------------===//
#include "SourceReader.h"

#include "base/Utf8.h"
#include "k2c/Support/Half.h"
#include "k2c/Support/Join.h"
#include "k2c/Weights/Finite.h"

#include <algorithm>
#include <cstring>

namespace k2c::weights {

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Product of dimensions; -1 when one is negative or the product overflows.
static int64_t product(const std::vector<int64_t> &shape) {
  int64_t elements = 1;
  for (int64_t dimension : shape)
    if (dimension < 0 || __builtin_mul_overflow(elements, dimension, &elements))
      return -1;
  return elements;
}

static bool converts(DType stored, DType packed) {
  return stored == packed || (packed == DType::F32 && (stored == DType::BF16 || stored == DType::F16));
}

/// What `slice` leaves of a tensor of `shape`, which becomes the shape of that.
Expected<SourceReader::Cut> SourceReader::cut(const std::optional<TensorSlice> &slice,
                                              std::vector<int64_t> &shape) const {
  if (!slice)
    return Cut{1, 0, 1, product(shape)};
  if (slice->dimension < 0 || slice->dimension >= int64_t(shape.size()) || slice->from < 0 || slice->to < slice->from ||
      slice->to > shape[slice->dimension])
    return Error{"tensor '" + shortened(source->name) + "'",
                 "slice [" + std::to_string(slice->from) + ", " + std::to_string(slice->to) + ") of dimension " +
                     std::to_string(slice->dimension) + " is outside its shape " + shapeText(shape),
                 ""};
  const auto at = shape.begin() + slice->dimension;
  const Cut made{*at, slice->from, slice->to - slice->from, product({at + 1, shape.end()})};
  *at = made.kept;
  return made;
}

Expected<SourceReader> SourceReader::open(const TensorSource &tensors, const SourceTensor &source, DType packed) {
  Expected<StoredTensor> stored = tensors.find(source.name);
  if (!stored)
    return stored.takeError();
  int64_t elements = product(source.shape);
  if (stored->shape != source.storedShape())
    return Error{"tensor '" + shortened(source.name) + "'",
                 "has shape " + shapeText(stored->shape) + ", the program was compiled for " +
                     shapeText(source.storedShape()),
                 "use the checkpoint whose config.json was compiled"};
  if (source.shape.empty() || elements < 0 || elements != product(stored->shape))
    return Error{"tensor '" + shortened(source.name) + "'",
                 "has shape " + shapeText(stored->shape) + ", which does not read as " + shapeText(source.shape),
                 "the bundle is damaged: compile again"};
  if (!converts(stored->type, packed))
    return Error{"tensor '" + shortened(source.name) + "'",
                 "is stored as " + std::string(name(stored->type)) + ", the program was compiled for " +
                     std::string(name(packed)) + " weights",
                 "compile again from this checkpoint"};
  SourceReader reader;
  reader.tensors = &tensors;
  reader.source = &source;
  reader.storedType = stored->type;
  reader.packedType = packed;
  if (source.scales)
    if (Status status = reader.openScales(stored->shape); !status)
      return status.takeError();
  std::vector<int64_t> shape = source.shape;
  for (auto [slice, cut] : {std::pair{&source.slice, &reader.slice}, std::pair{&source.part, &reader.part}}) {
    Expected<Cut> made = reader.cut(*slice, shape);
    if (!made)
      return made.takeError();
    *cut = *made;
  }
  if (source.transpose && shape.size() < 2)
    return Error{"tensor '" + shortened(source.name) + "'",
                 "shape " + shapeText(shape) + " has no two dimensions to transpose", ""};
  reader.matrixColumns = shape.back();
  reader.matrixRows = shape.size() > 1 ? shape[shape.size() - 2] : 1;
  reader.matrices = shape.size() > 2 ? product({shape.begin(), shape.end() - 2}) : 1;
  return reader;
}

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

/// Writes `count` elements, `step` elements apart in `in`, as the packed type.
static void convert(const char *in, int64_t step, char *out, int64_t count, DType stored, DType packed) {
  int64_t width = byteWidth(stored);
  if (stored == packed && step == 1) {
    std::memcpy(out, in, count * width);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const char *element = in + i * step * width;
    if (stored == packed) {
      std::memcpy(out + i * width, element, width);
      continue;
    }
    uint16_t narrow;
    std::memcpy(&narrow, element, 2);
    const uint32_t wide = widen16(stored, narrow);
    std::memcpy(out + i * 4, &wide, 4);
  }
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Element of the stored tensor that is number `index` of what is read of it.
int64_t SourceReader::elementAt(int64_t index) const { return slice.at(part.at(index)); }

Status SourceReader::readElements(int64_t first, int64_t count, char *out, RunningHash &hash) const {
  int64_t width = byteWidth(storedType);
  while (count > 0) {
    int64_t length = std::min({count, part.left(first), slice.left(part.at(first))}), element = elementAt(first);
    if (Status status = readFinite(*tensors, source->name, storedType, element, length, out); !status)
      return status;
    hash.update(out, length * width);
    first += length;
    count -= length;
    out += length * width;
  }
  return Status::success();
}

void SourceReader::visitRows(int64_t first, int64_t count, const VisitRun &visit) const {
  const int64_t width = byteWidth(storedType), end = (first + count) * matrixColumns;
  for (int64_t at = first * matrixColumns; at < end;) {
    const int64_t length = std::min({end - at, part.left(at), slice.left(part.at(at))});
    visit(source->name, elementAt(at) * width, length * width);
    at += length;
  }
}

void SourceReader::flatten() {
  matrixRows *= matrices * matrixColumns;
  matrices = matrixColumns = 1;
}

Status SourceReader::read(int64_t first, int64_t count, char *out, int64_t stride, RunningHash &hash) {
  if (source->transpose)
    return readTransposed(first, count, out, stride, hash);
  bool dense = stride == matrixColumns;
  int64_t begin = first * matrixColumns, elements = count * matrixColumns;
  if (storedType == packedType && dense)
    return readElements(begin, elements, out, hash);
  block.resize(elements * byteWidth(storedType));
  if (Status status = readElements(begin, elements, block.data(), hash); !status)
    return status;
  if (dense) {
    convert(block.data(), 1, out, elements, storedType, packedType);
    return Status::success();
  }
  for (int64_t row = 0; row < count; ++row)
    convert(block.data() + row * matrixColumns * byteWidth(storedType), 1, out + row * stride * packedWidth(),
            matrixColumns, storedType, packedType);
  return Status::success();
}

Status SourceReader::readTransposed(int64_t first, int64_t count, char *out, int64_t stride, RunningHash &hash) {
  int64_t width = byteWidth(storedType);
  for (int64_t row = first; row < first + count; ++row, out += stride * packedWidth()) {
    int64_t wanted = row / matrixColumns, elements = matrixRows * matrixColumns;
    if (wanted != loaded) {
      block.resize(elements * width);
      if (Status status = readElements(wanted * elements, elements, block.data(), hash); !status)
        return status;
      loaded = wanted;
    }
    convert(block.data() + row % matrixColumns * width, matrixColumns, out, matrixRows, storedType, packedType);
  }
  return Status::success();
}

std::optional<int64_t> RowStream::rowLength() {
  while (current < readers.size() && row == readers[current].rows()) {
    ++current;
    row = 0;
  }
  if (current == readers.size())
    return std::nullopt;
  return readers[current].columns();
}

void RowStream::take(int64_t count,
                     const std::function<void(const SourceReader &, int64_t first, int64_t rows)> &visit) {
  while (count > 0 && rowLength()) {
    const int64_t length = std::min(count, rowsLeftInSource());
    visit(readers[current], row, length);
    row += length;
    count -= length;
  }
}

/// The scales of row number `index` of `count` when it begins a group; where it ends one, they must be the same.
Status RowStream::groupScales(int64_t index, const ScaleGroups &groups, float *scales) {
  float *group = scales + index / groups.rows * groups.stride;
  SourceReader &reader = readers[current];
  if (index % groups.rows == 0)
    return reader.readScales(row, groups.step, group, hash);
  std::vector<float> other(groups.stride);
  if (Status status = reader.readScales(row, groups.step, other.data(), hash); !status)
    return status;
  if (std::equal(other.begin(), other.end(), group))
    return Status::success();
  return Error{"weights",
               "rows " + std::to_string(index / groups.rows * groups.rows) + " to " + std::to_string(index) +
                   " have several scales, the layout has one for them",
               "compile again from this checkpoint"};
}

Status RowStream::next(int64_t count, char *out, int64_t stride, const ScaleGroups &groups, float *scales) {
  const int64_t total = count;
  while (count > 0) {
    if (!rowLength())
      return Error{"weights", "the sources end " + std::to_string(count) + " rows early", ""};
    int64_t length = std::min(count, rowsLeftInSource());
    SourceReader &reader = readers[current];
    if (Status status = reader.read(row, length, out, stride, hash); !status)
      return status;
    out += length * stride * reader.packedWidth();
    if (!scales) {
      count -= length;
      row += length;
      continue;
    }
    for (int64_t end = count - length; count > end; --count, ++row)
      if (Status status = groupScales(total - count, groups, scales); !status)
        return status;
  }
  return Status::success();
}

} // namespace k2c::weights
