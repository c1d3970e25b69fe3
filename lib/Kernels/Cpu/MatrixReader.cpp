//===- MatrixReader.cpp - The columns of a matrix, in the layout it has --------------------===//
#include "MatrixReader.h"

namespace k2c::emit {

namespace {

class PanelReader : public MatrixReader {
public:
  PanelReader(KernelBuilder &b, const Matrix &matrix, int64_t lanes)
      : MatrixReader(b, matrix, lanes), layout{matrix}, width(panelColumns / matrix.parts) {}

  Panel panel(Value base, Value m, Value index) const override {
    Value number = b.add(b.mul(m, panelCount(matrix)), index);
    return {b.atBytes(base, b.mul(number, layout.panelBytes())), {}};
  }
  Panel behind(const Panel &panel, int64_t count) const override {
    return {b.atBytes(panel.address, b.constant(count * layout.panelBytes())), {}};
  }
  PanelVector weights(const Panel &panel, const Columns &columns, Value k, Value scale) const override {
    Value step = b.at(panel.address, b.mul(k, panelColumns), matrix.type);
    Value address = b.at(step, b.mul(lane(columns), matrix.kStep()), matrix.type);
    if (!scale)
      return loadPanelVector(b, address, matrix.type, lanes);
    return scaledWeights(b, b.load(b.vec(b.builder().getI8Type(), lanes), address, matrix.type), scale);
  }
  /// One load for each group of columns with a scale.
  Value scales(const Panel &panel, const Columns &columns, Value k) const override {
    const int64_t group = layout.scaleColumns();
    Value table = b.at(panel.address, b.constant(layout.panelElements()), matrix.type);
    table = b.at(table, b.mul(b.div(k, matrix.blockRows), panelColumns / group), DType::F32);
    Value vector;
    for (int64_t first = 0; first < lanes; first += group) {
      Value index = b.div(b.add(lane(columns), first), group);
      Value scale = b.splat(b.loadFloats(b.at(table, index, DType::F32), DType::F32, 0), lanes);
      vector = vector ? b.select(b.laneMask(lanes, first, lanes), scale, vector) : scale;
    }
    return panelScale(b, vector);
  }

private:
  Value lane(const Columns &columns) const { return b.add(columns.first, columns.part * width); }

  PanelLayout layout;
  int64_t width; ///< columns that a panel has of a part
};

class RowReader : public MatrixReader {
public:
  RowReader(KernelBuilder &b, const Matrix &matrix, int64_t lanes)
      : MatrixReader(b, matrix, lanes), layout{matrix}, width(panelColumns / matrix.parts) {}

  Panel panel(Value base, Value m, Value index) const override {
    return {b.atBytes(base, b.mul(m, layout.matrixBytes())), b.mul(index, width)};
  }
  Panel behind(const Panel &panel, int64_t count) const override {
    return {panel.address, b.add(panel.first, count * width)};
  }
  PanelVector weights(const Panel &panel, const Columns &columns, Value k, Value scale) const override {
    Value lane = laneColumns(panel, columns);
    int64_t partBytes = matrix.partColumns() * layout.rowBytes();
    Value base = b.atBytes(panel.address, b.add(b.mul(k, byteWidth(matrix.type)), columns.part * partBytes));
    Type element = matrix.type == DType::F32    ? b.f32()
                   : matrix.type == DType::BF16 ? b.i32()
                                                : Type(b.builder().getI8Type());
    Value bytes = ofLaneParts(b.mul(lane, layout.rowBytes()), partBytes);
    Value raw = b.gather(b.vec(element, lanes), base, bytes, exists(lane), matrix.type);
    return scale ? scaledWeights(b, raw, scale) : PanelVector{raw, matrix.type};
  }
  Value scales(const Panel &panel, const Columns &columns, Value k) const override {
    Value lane = laneColumns(panel, columns);
    int64_t rowScales = layout.scaleSteps() * byteWidth(DType::F32);
    int64_t partBytes = layout.partBlocks() * rowScales;
    Value step = b.mul(b.div(k, matrix.blockRows), byteWidth(DType::F32));
    Value base = b.atBytes(panel.address, b.add(step, layout.elementBytes() + columns.part * partBytes));
    Value bytes = ofLaneParts(b.mul(b.div(lane, matrix.blockColumns), rowScales), partBytes);
    return panelScale(b, b.gather(b.vec(b.f32(), lanes), base, bytes, exists(lane), DType::F32));
  }

private:
  /// The lanes' columns in their part. A vector as wide as a panel has those of both parts.
  Value laneColumns(const Panel &panel, const Columns &columns) const {
    Value ids = b.laneIds(b.i64(), lanes);
    return b.add(b.splat(b.add(panel.first, columns.first), lanes), lanes > width ? b.rem(ids, width) : ids);
  }
  /// `bytes` of each lane, from the beginning of its part on, which is `partBytes` behind that before.
  Value ofLaneParts(Value bytes, int64_t partBytes) const {
    return lanes > width ? b.add(bytes, b.mul(b.div(b.laneIds(b.i64(), lanes), width), partBytes)) : bytes;
  }
  /// The last panel has lanes beyond the matrix.
  Value exists(Value lane) const { return b.compare(Compare::Lt, lane, matrix.partColumns()); }

  RowLayout layout;
  int64_t width; ///< columns that a panel has of a part
};

} // namespace

std::unique_ptr<MatrixReader> MatrixReader::create(KernelBuilder &b, const Matrix &matrix, const TileConfig &tile) {
  if (tile.weights == WeightLayout::Panels)
    return std::make_unique<PanelReader>(b, matrix, tile.lanes);
  return std::make_unique<RowReader>(b, matrix, tile.lanes);
}

} // namespace k2c::emit
