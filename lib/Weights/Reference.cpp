//===- Reference.cpp - Slots that are pieces of a checkpoint ----------------===//
//
// The bytes of a range are those that a packer would write; where each run of them is stored follows from the slices
// of the sources, so nothing is compared to find it:
//
//   gate  [n][k]  ->  piece at 0                 W_kvb  [heads][nope + value][k]  ->  for W_UK a piece for each head
//   up    [n][k]  ->  piece at n * row bytes
//
// Hashes are of the range as it lies in memory, made while its sources are read once, in the packer's order and with
// the packer's checks of what is read. So a program compares the same numbers whether it was packed or not.
//
// Rejected: pieces of a slot that is transposed, one for each element; packing what does not lie as it is read beside
// pieces of the rest. Who asks for weights as they are is told which are not, and packing has no cost that these few
// would not have.
//
//===----------------------------------------------------------------------===//
#include "Reference.h"

#include "OperandStream.h"
#include "base/Utf8.h"
#include <algorithm>

namespace k2c::weights {

static constexpr const char *remedy = "use --weights packed";

static Error refuse(const std::string &tensor, std::string message) {
  return Error{"tensor '" + shortened(tensor) + "'", std::move(message), remedy};
}

Status checkReference(const WeightSlot &slot) {
  for (const SourceTensor &source : slot.sources)
    if (source.transpose)
      return refuse(source.name,
                    "the program reads it transposed, so the checkpoint's bytes are not those of its memory");
  const auto *rows = std::get_if<RowLayout>(&slot.transform);
  if (const Matrix *matrix = matrixOf(slot.transform); matrix && !rows)
    return Error{"weights '" + shortened(slot.family) + "'",
                 "are read in panels of " + std::to_string(panelColumns) + " columns, tensors are stored in rows",
                 remedy};
  if (!rows)
    return Status::success();
  const int64_t stored = rows->matrix.k * byteWidth(rows->matrix.type);
  if (stored != rows->rowBytes() && !slot.sources.empty())
    return refuse(slot.sources.front().name, "its rows have " + std::to_string(stored) +
                                                 " bytes, the program reads rows of " +
                                                 std::to_string(rows->rowBytes()) + ", a multiple of 16");
  return Status::success();
}

namespace {

/// The pieces of a range, in the making. Runs that touch, in the file and in the range, are one.
class Pieces {
public:
  explicit Pieces(const TensorSource &tensors) : tensors(tensors) {}

  /// The bytes behind those that are there.
  void add(const std::string &tensor, int64_t byte, int64_t bytes) {
    const TensorPlace place = tensors.place(tensor);
    const FilePiece piece{place.file, place.offset + byte, bytes, end};
    end += bytes;
    if (!pieces.empty() && touch(pieces.back(), piece))
      pieces.back().bytes += bytes;
    else if (bytes > 0)
      pieces.push_back(piece);
  }
  /// What follows lies from byte `at` of the range on.
  void moveTo(int64_t at) { end = at; }
  std::vector<FilePiece> take() { return std::move(pieces); }

private:
  static bool touch(const FilePiece &a, const FilePiece &b) {
    return a.file == b.file && a.offset + a.bytes == b.offset && a.at + a.bytes == b.at;
  }

  const TensorSource &tensors;
  std::vector<FilePiece> pieces;
  int64_t end = 0;
};

} // namespace

Expected<std::vector<FilePiece>> piecesOf(const WeightSlot &slot, const TensorSource &tensors) {
  if (Status status = checkReference(slot); !status)
    return status.takeError();
  Expected<OperandStream> stream = OperandStream::open(tensors, slot);
  if (!stream)
    return stream.takeError();
  const Matrix *matrix = matrixOf(slot.transform);
  const DType read = matrix ? matrix->type : std::get<RowMajor>(slot.transform).type;
  for (const SourceTensor &source : slot.sources)
    if (Expected<StoredTensor> stored = tensors.find(source.name); stored->type != read)
      return refuse(source.name, "is stored as " + std::string(name(stored->type)) + ", the program reads it as " +
                                     std::string(name(read)));
  Pieces pieces(tensors);
  const SourceReader::VisitRun add = [&](const std::string &tensor, int64_t byte, int64_t bytes) {
    pieces.add(tensor, byte, bytes);
  };
  auto addRows = [&](const SourceReader &reader, int64_t first, int64_t rows) { reader.visitRows(first, rows, add); };
  if (!matrix) {
    stream->rowsOf(0).take(INT64_MAX, addRows);
    return pieces.take();
  }
  const RowLayout &layout = std::get<RowLayout>(slot.transform);
  for (int64_t m = 0; m < matrix->count; ++m) {
    std::vector<std::pair<const SourceReader *, int64_t>> scaled; // the first row of each block of columns
    for (int64_t part = 0; part < matrix->parts; ++part) {
      int64_t row = 0; // of the part
      stream->rowsOf(part).take(matrix->partColumns(), [&](const SourceReader &reader, int64_t first, int64_t rows) {
        addRows(reader, first, rows);
        for (int64_t end = row + rows, at = first; row < end; ++row, ++at)
          if (matrix->isScaled() && row % matrix->blockColumns == 0)
            scaled.emplace_back(&reader, at);
      });
    }
    for (const auto &[reader, row] : scaled)
      reader->visitScales(row, matrix->blockRows, add);
    pieces.moveTo((m + 1) * layout.matrixBytes());
  }
  return pieces.take();
}

Expected<PackedSlot> referToOperand(const WeightSlot &slot, const TensorSource &tensors, const Meter &meter) {
  PackedSlot referred;
  for (int64_t i = 0; i < std::max<int64_t>(slot.experts, 1); ++i) {
    const WeightSlot part = slot.experts > 0 ? slotOfExpert(slot, i) : slot;
    Expected<std::vector<FilePiece>> pieces = piecesOf(part, tensors);
    if (!pieces)
      return pieces.takeError();
    Expected<OperandStream> stream = OperandStream::open(tensors, part);
    if (!stream)
      return stream.takeError();
    RunningDigest digest;
    Status status = stream->pack([&](const char *data, int64_t count) -> Status {
      if (!meter(count))
        return Error{"weights '" + shortened(slot.family) + "'", "stopped", ""};
      digest.update(data, count);
      return Status::success();
    });
    if (!status)
      return status.takeError();
    BlobRange range = digest.finishRange(stream->rangeName());
    range.pieces = std::move(*pieces);
    referred.ranges.push_back(std::move(range));
  }
  return referred;
}

} // namespace k2c::weights
