//===- SourceReader.h - The rows of an operand, in order ------------------===//
//
// Streams the sources of a slot as rows of the packed element type: reshape, slice, transpose and widening happen
// here, so that the packers see nothing but rows. Memory: one row block; for a transposed source, one matrix.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_WEIGHTS_SOURCEREADER_H
#define K2C_LIB_WEIGHTS_SOURCEREADER_H

#include "base/Hash.h"
#include "k2c/Weights/TensorSource.h"
#include "k2c/Weights/WeightMap.h"
#include <functional>

namespace k2c::weights {

/// One source tensor as rows of `columns()` elements.
class SourceReader {
public:
  /// Checks name, shape, slices and element type against what is stored. Errors name the tensor and both values.
  static Expected<SourceReader> open(const TensorSource &tensors, const SourceTensor &source, DType packed);

  /// Calls visit(name, byte, bytes) for the runs of stored bytes, in order, that are rows [first, first + count) as
  /// they are packed: of a source that is stored as it is packed, its rows one behind the other.
  using VisitRun = std::function<void(const std::string &name, int64_t byte, int64_t bytes)>;
  void visitRows(int64_t first, int64_t count, const VisitRun &visit) const;
  /// The same of the scales of row `row`, as readScales has them.
  void visitScales(int64_t row, int64_t step, const VisitRun &visit) const;

  int64_t rows() const { return matrices * (source->transpose ? matrixColumns : matrixRows); }
  int64_t columns() const { return source->transpose ? matrixRows : matrixColumns; }
  DType stored() const { return storedType; }
  int64_t packedWidth() const { return byteWidth(packedType); }

  /// From here on every element is a row of its own (a source that is not transposed): any number can be read at once.
  void flatten();

  /// Writes rows [first, first + count) to `out`, `stride` elements of the packed type from row to row, and feeds the
  /// stored bytes that were read to `hash`. Rows must be asked for once each, in ascending order.
  Status read(int64_t first, int64_t count, char *out, int64_t stride, RunningHash &hash);

  /// Block-scaled sources: writes the scale of each `step` consecutive elements of row `row` to `out`. The first call
  /// reads the scales and feeds them to `hash`. Errors: a scale that is negative or not a finite normal number; a step
  /// that straddles two blocks.
  Status readScales(int64_t row, int64_t step, float *out, RunningHash &hash);

private:
  Status openScales(const std::vector<int64_t> &published);
  Status loadScales(RunningHash &hash);
  int64_t elementAt(int64_t index) const;
  int64_t blockOf(int64_t row, int64_t column) const;
  Status readElements(int64_t first, int64_t count, char *out, RunningHash &hash) const;
  Status readTransposed(int64_t first, int64_t count, char *out, int64_t stride, RunningHash &hash);

  const TensorSource *tensors = nullptr;
  const SourceTensor *source = nullptr;
  DType storedType = DType::F32, packedType = DType::F32;
  /// Of a tensor [..][size][inner], `kept` of `size` remain, from `from` on.
  struct Cut {
    int64_t size = 1, from = 0, kept = 1, inner = 1;
    /// Where element `index` of what remains is in the tensor, and how many follow it there.
    int64_t at(int64_t index) const {
      return index / (kept * inner) * size * inner + from * inner + index % (kept * inner);
    }
    int64_t left(int64_t index) const { return kept * inner - index % (kept * inner); }
  };
  Expected<Cut> cut(const std::optional<TensorSlice> &slice, std::vector<int64_t> &shape) const;
  Cut slice, part; // of what the slice leaves
  // The last two dimensions of the sliced tensor, before the transpose, and how many such matrices there are.
  int64_t matrices = 1, matrixRows = 1, matrixColumns = 1;
  int64_t loaded = -1;     // the matrix in `block`, for a transposed source
  std::vector<char> block; // stored bytes of one row block or one matrix
  // Of a block-scaled source: columns of the published matrix, scales of one row of blocks, the scales when read.
  int64_t publishedColumns = 1, scaleStride = 0, scaleCount = 0;
  std::vector<float> scales;
};

/// Which elements of the rows share a scale: `rows` rows x `step` elements; `stride` scales for one group of rows.
struct ScaleGroups {
  int64_t rows = 1, step = 1, stride = 0;
};

/// The rows of several sources, one source after another.
class RowStream {
public:
  explicit RowStream(std::vector<SourceReader> readers) : readers(std::move(readers)) {}

  /// The next `count` rows, which have the same number of columns. With `scales`, of block-scaled sources: those of
  /// every `groups.rows` rows. Error: rows of a group differ.
  Status next(int64_t count, char *out, int64_t stride, const ScaleGroups &groups = {}, float *scales = nullptr);

  /// Takes the next `count` rows, or all that are left, without reading them: calls visit(reader, first, rows) for each
  /// source that has some.
  void take(int64_t count, const std::function<void(const SourceReader &, int64_t first, int64_t rows)> &visit);

  /// Columns of the next row; nothing at the end. Sources without rows are passed over.
  std::optional<int64_t> rowLength();
  /// Rows until the next source begins (after rowLength()).
  int64_t rowsLeftInSource() const { return readers[current].rows() - row; }
  /// Hash of the stored bytes read so far.
  RunningHash hash;

private:
  Status groupScales(int64_t index, const ScaleGroups &groups, float *scales);

  std::vector<SourceReader> readers;
  size_t current = 0;
  int64_t row = 0;
};

} // namespace k2c::weights

#endif // K2C_LIB_WEIGHTS_SOURCEREADER_H
