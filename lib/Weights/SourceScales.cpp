//===- SourceScales.cpp - The scales of block-scaled sources --------------===//
//
// The scale of an element is found by its row and column in the published matrix: a slice or a transpose moves elements
// and not the blocks they belong to. What kernels rely on is checked here: no negative scale, none that DAZ would
// take for zero, and none whose multiple of 2^8 (Generic/BlockScaled.cpp) is infinite.
//
//===----------------------------------------------------------------------===//
#include "SourceReader.h"
#include "base/Utf8.h"
#include "k2c/Support/Join.h"
#include "k2c/Support/Units.h"

#include <algorithm>

namespace k2c::weights {

constexpr float smallestScale = 0x1p-126f, largestScale = 0x1p119f;

static int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

Status SourceReader::openScales(const std::vector<int64_t> &published) {
  const SourceScales &wanted = *source->scales;
  if (published.size() != 2)
    return Error{"tensor '" + shortened(source->name) + "'",
                 "has " + std::to_string(published.size()) + " dimensions; a tensor in scaled blocks has 2",
                 "use the checkpoint whose config.json was compiled"};
  publishedColumns = published[1];
  scaleStride = ceilDivide(published[1], wanted.blockColumns);
  scaleCount = ceilDivide(published[0], wanted.blockRows) * scaleStride;
  Expected<StoredTensor> found = tensors->find(wanted.name);
  if (!found)
    return found.takeError();
  if (found->type != DType::F32)
    return Error{"tensor '" + shortened(wanted.name) + "'",
                 "is stored as " + std::string(name(found->type)) + ", scales are f32",
                 "use the checkpoint whose config.json was compiled"};
  std::vector<int64_t> expected = {scaleCount / std::max<int64_t>(scaleStride, 1), scaleStride};
  if (found->shape != expected)
    return Error{"tensor '" + shortened(wanted.name) + "'",
                 "has shape " + shapeText(found->shape) + ", " + shapeText(published) + " in blocks of " +
                     shapeText({wanted.blockRows, wanted.blockColumns}) + " has scales " + shapeText(expected),
                 "use the checkpoint whose config.json was compiled"};
  return Status::success();
}

Status SourceReader::loadScales(RunningHash &hash) {
  scales.resize(scaleCount);
  auto *bytes = reinterpret_cast<char *>(scales.data());
  if (Status status = tensors->read(source->scales->name, 0, bytes, scaleCount * int64_t(sizeof(float))); !status)
    return status;
  hash.update(bytes, scaleCount * int64_t(sizeof(float)));
  for (int64_t i = 0; i < scaleCount; ++i)
    if (float scale = scales[i]; scale != 0 && !(scale >= smallestScale && scale <= largestScale))
      return Error{"tensor '" + shortened(source->scales->name) + "'",
                   "scale [" + std::to_string(i / scaleStride) + ", " + std::to_string(i % scaleStride) + "] is " +
                       formatNumber(double(scale), 6) + ", not zero or a number from 2^-126 to 2^119",
                   "the checkpoint is damaged: download it again"};
  return Status::success();
}

/// Number of the scale of an element of the operand's rows.
int64_t SourceReader::blockOf(int64_t row, int64_t column) const {
  int64_t perMatrix = source->transpose ? matrixColumns : matrixRows, matrix = row / perMatrix;
  int64_t i = row % perMatrix, j = column;
  if (source->transpose)
    std::swap(i, j);
  int64_t element = elementAt((matrix * matrixRows + i) * matrixColumns + j);
  const SourceScales &blocks = *source->scales;
  return element / publishedColumns / blocks.blockRows * scaleStride + element % publishedColumns / blocks.blockColumns;
}

Status SourceReader::readScales(int64_t row, int64_t step, float *out, RunningHash &hash) {
  if (scales.empty())
    if (Status status = loadScales(hash); !status)
      return status;
  for (int64_t begin = 0; begin < columns(); begin += step) {
    int64_t block = blockOf(row, begin), last = std::min(begin + step, columns()) - 1;
    if (blockOf(row, last) != block)
      return Error{"tensor '" + shortened(source->name) + "'",
                   "elements " + std::to_string(begin) + " to " + std::to_string(last) + " of row " +
                       std::to_string(row) + " have two scales, the layout has one for them",
                   "compile again from this checkpoint"};
    out[begin / step] = scales[block];
  }
  return Status::success();
}

void SourceReader::visitScales(int64_t row, int64_t step, const VisitRun &visit) const {
  for (int64_t begin = 0; begin < columns(); begin += step)
    visit(source->scales->name, blockOf(row, begin) * int64_t(sizeof(float)), sizeof(float));
}

} // namespace k2c::weights
