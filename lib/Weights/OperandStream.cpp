//===- OperandStream.cpp - One operand, from tensors to packed bytes ------===//
//
// A panel is a transpose of 32 rows in units of kStep elements:
//
//   rows    r0: a0 a1 a2 a3 ...        panel (kStep 2)   a0 a1 | b0 b1 | ... 32 rows
//           r1: b0 b1 b2 b3 ...                          a2 a3 | b2 b3 | ...
//
// so bf16 (kStep 2) and f32 (kStep 1) are the same transpose of 32-bit units. Block-scaled panels are a transpose of
// bytes, and of the scales behind it. Rows are read a few panels at a time. Matrices in rows are copied, padded.
//
//===----------------------------------------------------------------------===//
#include "OperandStream.h"
#include "base/Utf8.h"

#include <algorithm>
#include <array>

namespace k2c::weights {

/// Bytes of rows in memory at a time (one panel when a panel is larger).
constexpr int64_t batchBytes = 2 << 20;
/// Part of the name of every range: changes when the same transform would give other bytes.
constexpr const char *layoutVersion = "k2c-layout-1";

//===----------------------------------------------------------------------===//
// Opening and checking
//===----------------------------------------------------------------------===//

static std::string recipeOf(const Transform &transform) {
  std::string text = layoutVersion;
  if (const auto *rows = std::get_if<RowMajor>(&transform))
    return text + " rows " + std::string(name(rows->type)) + " " + std::to_string(rows->elements);
  const Matrix &matrix = *matrixOf(transform);
  const auto *panels = std::get_if<PanelLayout>(&transform);
  text += (panels ? " panels " : " matrix_rows ") + std::string(name(matrix.type));
  if (panels)
    text += " " + std::to_string(panelColumns) + " " + std::to_string(matrix.kStep());
  for (int64_t number : {matrix.count, matrix.n, matrix.k, matrix.parts})
    text += " " + std::to_string(number);
  if (matrix.isScaled())
    text += " scales " + std::to_string(panels ? panels->scaleColumns() : matrix.blockColumns) + " " +
            std::to_string(matrix.blockRows);
  return text;
}

static std::string recipeOf(const SourceTensor &source, DType stored) {
  std::string text = " source " + std::string(name(stored));
  for (int64_t dimension : source.shape)
    text += " " + std::to_string(dimension);
  for (const auto &[word, slice] : {std::pair{" slice ", &source.slice}, std::pair{" part ", &source.part}})
    if (*slice)
      text += word + std::to_string((*slice)->dimension) + " " + std::to_string((*slice)->from) + " " +
              std::to_string((*slice)->to);
  if (source.scales)
    text += " blocks " + std::to_string(source.scales->blockRows) + " " + std::to_string(source.scales->blockColumns);
  return text + (source.transpose ? " transpose" : "");
}

static Error mismatch(const WeightSlot &slot, const std::string &what, int64_t have, int64_t want) {
  std::string layer = slot.layer ? " of layer " + std::to_string(*slot.layer) : "";
  return Error{"weights '" + shortened(slot.family) + "'" + layer,
               "the sources give " + std::to_string(have) + " " + what + ", the layout holds " + std::to_string(want),
               "compile again from this checkpoint"};
}

Expected<OperandStream> OperandStream::open(const TensorSource &tensors, const WeightSlot &slot) {
  const auto *rows = std::get_if<RowMajor>(&slot.transform);
  const Matrix *matrix = matrixOf(slot.transform);
  if (Status status = check(slot); !status)
    return status.takeError();
  OperandStream stream(slot);
  stream.recipe = recipeOf(slot.transform);
  const size_t partCount = matrix ? matrix->parts : 1;
  std::vector<std::vector<SourceReader>> readers(partCount);
  for (size_t i = 0; i < slot.sources.size(); ++i) {
    auto reader = SourceReader::open(tensors, slot.sources[i], rows ? rows->type : matrix->type);
    if (!reader)
      return reader.takeError();
    stream.recipe += recipeOf(slot.sources[i], reader->stored());
    if (matrix && reader->columns() != matrix->k)
      return mismatch(slot, "columns (tensor '" + shortened(slot.sources[i].name) + "')", reader->columns(), matrix->k);
    if (rows && !slot.sources[i].transpose)
      reader->flatten();
    readers[i % partCount].push_back(std::move(*reader));
  }
  int64_t wanted = rows ? rows->elements : matrix->count * matrix->partColumns(), have = 0;
  for (std::vector<SourceReader> &part : readers) {
    for (const SourceReader &reader : part)
      have += reader.rows() * (rows ? reader.columns() : 1);
    if (have != wanted)
      return mismatch(slot, rows ? "elements" : "rows", have, wanted);
    have = 0;
    stream.parts.emplace_back(std::move(part));
  }
  return stream;
}

std::string OperandStream::rangeName() const {
  RunningHash hash;
  hash.update(recipe.data(), recipe.size());
  for (const RowStream &part : parts) {
    std::string digest = part.hash.text128();
    hash.update(digest.data(), digest.size());
  }
  return hash.text128();
}

//===----------------------------------------------------------------------===//
// Streaming
//===----------------------------------------------------------------------===//

Status OperandStream::skim() {
  return pack([](const char *, int64_t) { return Status::success(); });
}

Status OperandStream::pack(const Sink &sink) {
  if (const auto *rows = std::get_if<RowMajor>(&slot->transform))
    return packRows(*rows, sink);
  if (const auto *rows = std::get_if<RowLayout>(&slot->transform))
    return packMatrixRows(*rows, sink);
  return packPanels(std::get<PanelLayout>(slot->transform), sink);
}

Status OperandStream::packRows(const RowMajor &layout, const Sink &sink) {
  RowStream &rows = parts[0];
  std::vector<char> block;
  while (std::optional<int64_t> length = rows.rowLength()) {
    int64_t rowBytes = std::max<int64_t>(1, *length * byteWidth(layout.type));
    int64_t count = std::min(rows.rowsLeftInSource(), std::max<int64_t>(1, batchBytes / rowBytes));
    block.resize(count * rowBytes);
    if (Status status = rows.next(count, block.data(), *length); !status)
      return status;
    if (Status status = sink(block.data(), count * *length * byteWidth(layout.type)); !status)
      return status;
  }
  return Status::success();
}

/// One panel: `rows[c]` has `units` units; out[u][c] = rows[c][u]. In blocks that stay in the first-level cache.
template <class Unit>
static void transposePanel(const std::array<const char *, panelColumns> &rows, int64_t units, char *out) {
  constexpr int64_t block = 64 / int64_t(sizeof(Unit)), columns = panelColumns;
  auto *target = reinterpret_cast<Unit *>(out);
  for (int64_t begin = 0; begin < units; begin += block) {
    int64_t end = std::min(units, begin + block);
    for (int64_t column = 0; column < columns; ++column) {
      auto *row = reinterpret_cast<const Unit *>(rows[column]);
      for (int64_t unit = begin; unit < end; ++unit)
        target[unit * columns + column] = row[unit];
    }
  }
}

/// A few panels in the making: the rows of each part, and the scales of their groups.
struct OperandStream::PanelBatch {
  const PanelLayout &layout;
  const Matrix &matrix = layout.matrix;
  int64_t share = panelColumns / matrix.parts; ///< rows a part gives to a panel
  int64_t units = (matrix.k + matrix.kStep() - 1) / matrix.kStep();
  int64_t stride = units * matrix.kStep(), rowBytes = stride * byteWidth(matrix.type);
  int64_t panels = std::max<int64_t>(1, std::min(batchBytes / (panelColumns * rowBytes), panelCount(matrix)));
  ScaleGroups groups;
  // Never written past k: the padding of a row stays zero. Rows past n point to a row of zeros.
  std::vector<std::vector<char>> rows;
  std::vector<std::vector<float>> scales;
  std::vector<char> zeros = std::vector<char>(rowBytes);

  explicit PanelBatch(const PanelLayout &layout)
      : layout(layout), rows(matrix.parts, std::vector<char>(panels * share * rowBytes)) {
    if (!matrix.isScaled())
      return;
    groups = {layout.scaleColumns(), matrix.blockRows, (matrix.k + matrix.blockRows - 1) / matrix.blockRows};
    scales.assign(matrix.parts, std::vector<float>(panels * share / groups.rows * groups.stride));
  }

  Status read(std::vector<RowStream> &parts, int64_t count) {
    for (int64_t part = 0; part < matrix.parts; ++part) {
      float *ofPart = matrix.isScaled() ? scales[part].data() : nullptr;
      if (Status status = parts[part].next(count, rows[part].data(), stride, groups, ofPart); !status)
        return status;
    }
    return Status::success();
  }

  /// Panel `p` of the batch, whose parts have `count` rows; `out` is zero where nothing is written.
  void write(int64_t p, int64_t count, char *out) const {
    std::array<const char *, panelColumns> sources;
    for (int64_t column = 0; column < panelColumns; ++column) {
      int64_t row = p * share + column % share;
      sources[column] = row < count ? rows[column / share].data() + row * rowBytes : zeros.data();
    }
    if (!matrix.isScaled())
      return transposePanel<uint32_t>(sources, units, out);
    transposePanel<uint8_t>(sources, units, out);
    writeScales(p, count, reinterpret_cast<float *>(out + layout.panelElements()));
  }

  void writeScales(int64_t p, int64_t count, float *out) const {
    int64_t perPanel = panelColumns / groups.rows, perPart = share / groups.rows;
    for (int64_t group = 0; group < perPanel; ++group) {
      int64_t inPart = p * perPart + group % perPart;
      const float *from = scales[group / perPart].data() + inPart * groups.stride;
      for (int64_t step = 0; step < groups.stride; ++step)
        out[step * perPanel + group] = inPart * groups.rows < count ? from[step] : 0;
    }
  }
};

Status OperandStream::packPanels(const PanelLayout &layout, const Sink &sink) {
  PanelBatch batch(layout);
  const int64_t partRows = layout.matrix.partColumns(), count = panelCount(layout.matrix); // of one matrix
  std::vector<char> out(batch.panels * layout.panelBytes());
  for (int64_t matrix = 0; matrix < layout.matrix.count; ++matrix)
    for (int64_t panel = 0; panel < count; panel += batch.panels) {
      int64_t panels = std::min(batch.panels, count - panel);
      int64_t rows = std::min(panels * batch.share, partRows - panel * batch.share);
      if (Status status = batch.read(parts, rows); !status)
        return status;
      for (int64_t p = 0; p < panels; ++p)
        batch.write(p, rows, out.data() + p * layout.panelBytes());
      if (Status status = sink(out.data(), panels * layout.panelBytes()); !status)
        return status;
    }
  return Status::success();
}

/// Matrix by matrix, gate before up; the scales are kept until the elements are written.
Status OperandStream::packMatrixRows(const RowLayout &layout, const Sink &sink) {
  const Matrix &matrix = layout.matrix;
  const int64_t stride = layout.rowBytes() / byteWidth(matrix.type), group = std::max<int64_t>(1, matrix.blockColumns);
  const int64_t batch = std::max<int64_t>(1, batchBytes / layout.rowBytes() / group) * group; // whole blocks of rows
  const ScaleGroups groups = {group, matrix.blockRows, matrix.isScaled() ? layout.scaleSteps() : 0};
  std::vector<char> rows(std::min(batch, matrix.partColumns()) * layout.rowBytes()); // padding stays zero
  std::vector<char> tail(layout.matrixBytes() - layout.elementBytes());
  for (int64_t m = 0; m < matrix.count; ++m) {
    for (int64_t part = 0; part < matrix.parts; ++part)
      for (int64_t row = 0; row < matrix.partColumns(); row += batch) {
        const int64_t count = std::min(batch, matrix.partColumns() - row);
        float *scales = matrix.isScaled() ? reinterpret_cast<float *>(tail.data()) +
                                                (part * layout.partBlocks() + row / group) * groups.stride
                                          : nullptr;
        if (Status status = parts[part].next(count, rows.data(), stride, groups, scales); !status)
          return status;
        if (Status status = sink(rows.data(), count * layout.rowBytes()); !status)
          return status;
      }
    if (Status status = sink(tail.data(), int64_t(tail.size())); !status)
      return status;
  }
  return Status::success();
}

} // namespace k2c::weights
