//===- OperandStream.cpp - One operand, from tensors to packed bytes ------===//
//
// A panel is a transpose of 32 rows in units of kStep elements:
//
//   rows    r0: a0 a1 a2 a3 ...        panel (kStep 2)   a0 a1 | b0 b1 | ... 32 rows
//           r1: b0 b1 b2 b3 ...                          a2 a3 | b2 b3 | ...
//
// so bf16 (kStep 2) and f32 (kStep 1) are the same transpose of 32-bit units. Block-scaled panels are a transpose of
// bytes, and of the scales behind it. Rows are read a few panels at a time.
//
//===----------------------------------------------------------------------===//
#include "OperandStream.h"
#include "base/Utf8.h"

#include <algorithm>
#include <array>

namespace k2c::weights {

/// Bytes of rows in memory at a time (one panel when a panel is larger).
constexpr int64_t batchBytes = 2 << 20;
/// Part of every blob name: changes when the same transform would give other bytes.
constexpr const char *layoutVersion = "k2c-layout-1";

//===----------------------------------------------------------------------===//
// Opening and checking
//===----------------------------------------------------------------------===//

static std::string recipeOf(const Transform &transform) {
  std::string text = layoutVersion;
  if (const auto *rows = std::get_if<RowMajor>(&transform))
    return text + " rows " + std::string(name(rows->type)) + " " + std::to_string(rows->elements);
  const auto &panels = std::get<PanelLayout>(transform);
  text += " panels " + std::string(name(panels.type));
  for (int64_t number : {PanelLayout::columns, panels.kStep(), panels.matrices, panels.n, panels.k, panels.interleave})
    text += " " + std::to_string(number);
  if (panels.isScaled())
    text += " scales " + std::to_string(panels.scaleColumns) + " " + std::to_string(panels.scaleRows);
  return text;
}

static std::string recipeOf(const SourceTensor &source, DType stored) {
  std::string text = " source " + std::string(name(stored));
  for (int64_t dimension : source.shape)
    text += " " + std::to_string(dimension);
  if (source.slice)
    text += " slice " + std::to_string(source.slice->dimension) + " " + std::to_string(source.slice->from) + " " +
            std::to_string(source.slice->to);
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
  const auto *panels = std::get_if<PanelLayout>(&slot.transform);
  if (Status status = check(slot); !status)
    return status.takeError();
  OperandStream stream(slot);
  stream.recipe = recipeOf(slot.transform);
  size_t interleave = panels ? panels->interleave : 1;
  std::vector<std::vector<SourceReader>> readers(interleave);
  for (size_t i = 0; i < slot.sources.size(); ++i) {
    auto reader = SourceReader::open(tensors, slot.sources[i], rows ? rows->type : panels->type);
    if (!reader)
      return reader.takeError();
    stream.recipe += recipeOf(slot.sources[i], reader->stored());
    if (panels && reader->columns() != panels->k)
      return mismatch(slot, "columns (tensor '" + shortened(slot.sources[i].name) + "')", reader->columns(), panels->k);
    if (rows && !slot.sources[i].transpose)
      reader->flatten();
    readers[i % interleave].push_back(std::move(*reader));
  }
  int64_t wanted = rows ? rows->elements : panels->matrices * panels->n / int64_t(interleave), have = 0;
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

std::string OperandStream::blobName() const {
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
static void transposePanel(const std::array<const char *, PanelLayout::columns> &rows, int64_t units, char *out) {
  constexpr int64_t block = 64 / int64_t(sizeof(Unit)), columns = PanelLayout::columns;
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
  int64_t share = PanelLayout::columns / layout.interleave; ///< rows a part gives to a panel
  int64_t units = (layout.k + layout.kStep() - 1) / layout.kStep();
  int64_t stride = units * layout.kStep(), rowBytes = stride * byteWidth(layout.type);
  int64_t panels = std::max<int64_t>(1, std::min(batchBytes / (PanelLayout::columns * rowBytes), layout.panels()));
  ScaleGroups groups;
  // Never written past k: the padding of a row stays zero. Rows past n point to a row of zeros.
  std::vector<std::vector<char>> rows;
  std::vector<std::vector<float>> scales;
  std::vector<char> zeros = std::vector<char>(rowBytes);

  explicit PanelBatch(const PanelLayout &layout)
      : layout(layout), rows(layout.interleave, std::vector<char>(panels * share * rowBytes)) {
    if (!layout.isScaled())
      return;
    groups = {layout.scaleColumns, layout.scaleRows, layout.scaleSteps()};
    scales.assign(layout.interleave, std::vector<float>(panels * share / groups.rows * groups.stride));
  }

  Status read(std::vector<RowStream> &parts, int64_t count) {
    for (int64_t part = 0; part < layout.interleave; ++part)
      if (Status status = layout.isScaled()
                              ? parts[part].next(count, rows[part].data(), stride, groups, scales[part].data())
                              : parts[part].next(count, rows[part].data(), stride);
          !status)
        return status;
    return Status::success();
  }

  /// Panel `p` of the batch, whose parts have `count` rows; `out` is zero where nothing is written.
  void write(int64_t p, int64_t count, char *out) const {
    std::array<const char *, PanelLayout::columns> sources;
    for (int64_t column = 0; column < PanelLayout::columns; ++column) {
      int64_t row = p * share + column % share;
      sources[column] = row < count ? rows[column / share].data() + row * rowBytes : zeros.data();
    }
    if (!layout.isScaled())
      return transposePanel<uint32_t>(sources, units, out);
    transposePanel<uint8_t>(sources, units, out);
    writeScales(p, count, reinterpret_cast<float *>(out + layout.panelElements()));
  }

  void writeScales(int64_t p, int64_t count, float *out) const {
    int64_t perPanel = PanelLayout::columns / groups.rows, perPart = share / groups.rows;
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
  int64_t partRows = layout.n / layout.interleave; // of one matrix
  std::vector<char> out(batch.panels * layout.panelBytes());
  for (int64_t matrix = 0; matrix < layout.matrices; ++matrix)
    for (int64_t panel = 0; panel < layout.panels(); panel += batch.panels) {
      int64_t panels = std::min(batch.panels, layout.panels() - panel);
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

} // namespace k2c::weights
