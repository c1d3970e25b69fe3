//===- BlockScaledTest.cpp - e4m3 tensors and their scales, packed and refused ---===//
#include "TestTensors.h"
#include "k2c/Model/ModelSpec.h"
#include "k2c/Weights/Packer.h"
#include "k2c/Weights/TensorFamily.h"
#include "k2c/Weights/WeightIndex.h"
#include <functional>
#include <gtest/gtest.h>
#include <limits>

using namespace k2c;
using namespace k2c::test;

namespace {

constexpr int64_t blockRows = 16, blockColumns = 32;

/// A checkpoint whose matrices are random codes (no NaN) and scales 1, 2, 3, ... by rows of blocks.
struct Checkpoint {
  MemoryTensors tensors;

  void add(const std::string &name, int64_t rows, int64_t columns) {
    std::vector<uint8_t> codes(rows * columns);
    for (size_t i = 0; i < codes.size(); ++i)
      codes[i] = uint8_t(i * 89 % 251) & 0xf7; // bit 3 clear: no code is NaN
    tensors.add(name, DType::F8E4M3, {rows, columns}, codes);
    int64_t down = (rows + blockRows - 1) / blockRows, across = (columns + blockColumns - 1) / blockColumns;
    std::vector<float> scales(down * across);
    for (size_t i = 0; i < scales.size(); ++i)
      scales[i] = float(i + 1);
    tensors.add(name + scaleSuffix, DType::F32, {down, across}, scales);
  }
  SourceTensor source(const std::string &name, std::vector<int64_t> shape) const {
    SourceTensor tensor{name, std::move(shape), {}, false};
    tensor.stored = tensors.find(name)->shape;
    tensor.scales = SourceScales{name + scaleSuffix, blockRows, blockColumns};
    return tensor;
  }
};

PanelLayout blocks(int64_t count, int64_t n, int64_t k, int64_t sharedColumns, int64_t sharedRows, int64_t parts = 1) {
  return {{DType::F8E4M3, count, n, k, parts, sharedColumns, sharedRows}};
}

/// The packed bytes, or the error.
Expected<std::string> pack(const MemoryTensors &tensors, WeightSlot slot) {
  TemporaryFolder folder;
  int64_t payload = payloadBytes(slot.transform);
  Expected<PackReport> report = packWeights(WeightMap{{std::move(slot)}}, tensors, folder.path, {"", 1, nullptr});
  if (!report)
    return report.takeError();
  auto index = readWeightIndex(folder.path);
  return readFile(folder.path + "/weights/" + index->slots[0].ranges[0]->file).substr(0, payload);
}

/// Compares with element (i, j) of the published matrix that `place` names for (matrix, n, k).
void expectPacked(const Checkpoint &checkpoint, const WeightSlot &slot,
                  const std::function<std::tuple<std::string, int64_t, int64_t>(int64_t, int64_t, int64_t)> &place) {
  const Matrix &matrix = *matrixOf(slot.transform);
  const MatrixLayout layout =
      layoutOf(matrix, std::holds_alternative<RowLayout>(slot.transform) ? WeightLayout::Rows : WeightLayout::Panels);
  auto offsets = [&](int64_t m, int64_t n, int64_t k) {
    return std::visit([&](const auto &known) { return std::pair(known.offset(m, n, k), known.scaleOffset(m, n, k)); },
                      layout);
  };
  Expected<std::string> bytes = pack(checkpoint.tensors, slot);
  ASSERT_TRUE(bytes) << bytes.error().text();
  ASSERT_EQ(int64_t(bytes->size()), payloadBytes(slot.transform));
  for (int64_t m = 0; m < matrix.count; ++m)
    for (int64_t n = 0; n < matrix.n; ++n)
      for (int64_t k = 0; k < matrix.k; ++k) {
        auto [element, scaleAt] = offsets(m, n, k);
        auto [name, i, j] = place(m, n, k);
        int64_t columns = checkpoint.tensors.find(name)->shape[1], across = (columns + blockColumns - 1) / blockColumns;
        float scale;
        std::memcpy(&scale, bytes->data() + scaleAt, sizeof scale);
        ASSERT_EQ(uint8_t((*bytes)[element]), checkpoint.tensors.elements<uint8_t>(name)[i * columns + j]);
        ASSERT_EQ(scale, float(i / blockRows * across + j / blockColumns + 1)) << m << " " << n << " " << k;
      }
}

/// The error of packing one matrix [40][70] after `change`.
std::string failure(const std::function<void(Checkpoint &, WeightSlot &)> &change) {
  Checkpoint checkpoint;
  checkpoint.add("w", 40, 70);
  WeightSlot slot{0, "w", 0, {checkpoint.source("w", {40, 70})}, blocks(1, 40, 70, blockRows, blockColumns)};
  change(checkpoint, slot);
  Expected<std::string> bytes = pack(checkpoint.tensors, slot);
  return bytes ? "" : bytes.error().where + ": " + bytes.error().message;
}

std::string withScale(float scale) {
  return failure([&](Checkpoint &checkpoint, WeightSlot &) {
    std::vector<float> scales(9, 1.0f);
    scales[5] = scale;
    checkpoint.tensors.add("w_scale_inv", DType::F32, {3, 3}, scales);
  });
}

} // namespace

TEST(BlockScaled, PanelsAreElementsThenScalesOnCacheLines) {
  PanelLayout layout = blocks(2, 40, 70, 16, 32); // two panels of 32 x 70, three by two scales each
  EXPECT_EQ(layout.panelBytes(), 2304);           // 2240 + 24, up to a multiple of 64
  EXPECT_EQ(layout.bytes(), 2 * 2 * 2304);
  EXPECT_EQ(layout.offset(1, 35, 3), 3 * 2304 + 3 * 32 + 3);
  EXPECT_EQ(layout.scaleOffset(1, 20, 64), 2 * 2304 + 2240 + (2 * 2 + 1) * 4);
}

TEST(BlockScaled, PartialBlocksAtBothEdges) {
  Checkpoint checkpoint;
  checkpoint.add("w", 70, 75);
  expectPacked(checkpoint, {0, "w", 0, {checkpoint.source("w", {70, 75})}, blocks(1, 70, 75, blockRows, blockColumns)},
               [](int64_t, int64_t n, int64_t k) { return std::tuple("w", n, k); });
}

TEST(BlockScaled, GateAndUpOfExpertsHaveTheirOwn) {
  Checkpoint checkpoint;
  WeightSlot slot{0, "gate_up", 1, {}, blocks(2, 2 * 37, 40, blockRows, blockColumns, 2)};
  for (const char *name : {"0.gate", "0.up", "1.gate", "1.up"}) {
    checkpoint.add(name, 37, 40);
    slot.sources.push_back(checkpoint.source(name, {37, 40}));
  }
  expectPacked(checkpoint, slot, [](int64_t e, int64_t n, int64_t k) {
    return std::tuple(std::to_string(e) + (n < 37 ? ".gate" : ".up"), n % 37, k);
  });
}

TEST(BlockScaled, RowsHoldGateThenUpAndTheScalesOfBoth) {
  Checkpoint checkpoint;
  WeightSlot slot{0, "gate_up", 1, {}, RowLayout{blocks(2, 2 * 37, 40, blockRows, blockColumns, 2).matrix}};
  for (const char *name : {"0.gate", "0.up", "1.gate", "1.up"}) {
    checkpoint.add(name, 37, 40);
    slot.sources.push_back(checkpoint.source(name, {37, 40}));
  }
  expectPacked(checkpoint, slot, [](int64_t e, int64_t n, int64_t k) {
    return std::tuple(std::to_string(e) + (n < 37 ? ".gate" : ".up"), n % 37, k);
  });
}

TEST(BlockScaled, SlicesKeepTheBlocksOfThePublishedMatrix) {
  constexpr int64_t heads = 3, nope = 8, value = 20, latent = 70, head = nope + value; // 28 rows: blocks of 4
  Checkpoint checkpoint;
  checkpoint.add("kv_b", heads * head, latent);
  SourceTensor source = checkpoint.source("kv_b", {heads, head, latent});
  source.slice = TensorSlice{1, nope, head};
  expectPacked(checkpoint, {0, "uv", 0, {source}, blocks(heads, value, latent, 4, blockColumns)},
               [](int64_t h, int64_t n, int64_t k) { return std::tuple("kv_b", h * head + nope + n, k); });
  source.slice = TensorSlice{1, 0, nope};
  source.transpose = true;
  expectPacked(checkpoint, {0, "uk_t", 0, {source}, blocks(heads, latent, nope, blockColumns, 4)},
               [](int64_t h, int64_t n, int64_t k) { return std::tuple("kv_b", h * head + k, n); });
}

TEST(BlockScaled, ScalesArePartOfTheContent) {
  auto blob = [](float scale) {
    Checkpoint checkpoint;
    checkpoint.add("w", 40, 70);
    checkpoint.tensors.add("w_scale_inv", DType::F32, {3, 3}, std::vector<float>(9, scale));
    WeightMap map{{{0, "w", 0, {checkpoint.source("w", {40, 70})}, blocks(1, 40, 70, blockRows, blockColumns)}}};
    TemporaryFolder folder;
    EXPECT_TRUE(packWeights(map, checkpoint.tensors, folder.path));
    return readWeightIndex(folder.path)->slots[0].ranges[0]->file;
  };
  EXPECT_EQ(blob(1.0f), blob(1.0f));
  EXPECT_NE(blob(1.0f), blob(2.0f));
}

TEST(BlockScaled, TheMapKeepsWhereScalesAre) {
  TensorFamily family;
  family.name = "w";
  family.pattern = "l.{layer}.w";
  family.layers = IndexSet{{0, 1, 1}};
  family.shape = {40, 70};
  family.blocks = {blockRows, blockColumns};
  WeightMap map;
  appendSlots(map, family, blocks(1, 40, 70, blockRows, blockColumns));
  EXPECT_EQ(map.slots[0].sources[0].scales->name, "l.0.w_scale_inv");
  TemporaryFolder folder;
  ASSERT_TRUE(writeWeightMap(map, folder.path));
  Expected<WeightMap> read = readWeightMap(folder.path);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->slots[0].sources[0].scales->name, "l.0.w_scale_inv");
  EXPECT_EQ(read->slots[0].sources[0].scales->blockColumns, blockColumns);
  EXPECT_EQ(std::get<PanelLayout>(read->slots[0].transform).matrix.blockRows, blockColumns);
}

TEST(BlockScaled, NanCodesAreRefused) {
  auto withCode = [](uint8_t code) {
    return failure([&](Checkpoint &checkpoint, WeightSlot &) {
      std::vector<uint8_t> codes(40 * 70);
      codes[3 * 70 + 5] = code;
      checkpoint.tensors.add("w", DType::F8E4M3, {40, 70}, codes);
    });
  };
  EXPECT_EQ(withCode(0x7e), "");
  EXPECT_EQ(withCode(0x7f), "tensor 'w': element 215 is NaN or infinite");
  EXPECT_EQ(withCode(0xff), "tensor 'w': element 215 is NaN or infinite");
}

TEST(BlockScaled, ScalesThatAreNoScalesAreRefused) {
  std::string start = "tensor 'w_scale_inv': scale [1, 2] is ", end = ", not zero or a number from 2^-126 to 2^119";
  for (float fine : {0.0f, 0x1p-126f, 0x1p119f})
    EXPECT_EQ(withScale(fine), "");
  EXPECT_EQ(withScale(-0.5f), start + "-0.5" + end);
  EXPECT_EQ(withScale(0x1p120f), start + "1.32923e+36" + end);
  EXPECT_EQ(withScale(0x1p-127f), start + "5.87747e-39" + end);
  EXPECT_EQ(withScale(std::numeric_limits<float>::infinity()), start + "inf" + end);
  EXPECT_EQ(withScale(std::numeric_limits<float>::quiet_NaN()), start + "nan" + end);
}

TEST(BlockScaled, ScalesOfAnotherShapeOrTypeAreRefused) {
  EXPECT_EQ(failure([](Checkpoint &checkpoint, WeightSlot &) {
              checkpoint.tensors.add("w_scale_inv", DType::F32, {3, 2}, std::vector<float>(6, 1.0f));
            }),
            "tensor 'w_scale_inv': has shape [3, 2], [40, 70] in blocks of [16, 32] has scales [3, 3]");
  EXPECT_EQ(failure([](Checkpoint &checkpoint, WeightSlot &) {
              checkpoint.tensors.add("w_scale_inv", DType::BF16, {3, 3}, std::vector<uint16_t>(9, 0x3f80));
            }),
            "tensor 'w_scale_inv': is stored as bf16, scales are f32");
  EXPECT_EQ(failure([](Checkpoint &, WeightSlot &slot) { slot.sources[0].scales->name = "none"; }),
            "tensor 'none': is not in the checkpoint");
}

TEST(BlockScaled, ALayoutThatSharesTooMuchIsRefused) {
  EXPECT_EQ(failure([](Checkpoint &, WeightSlot &slot) { slot.transform = blocks(1, 40, 70, 16, 64); }),
            "tensor 'w': elements 0 to 63 of row 0 have two scales, the layout has one for them");
  EXPECT_EQ(failure([](Checkpoint &, WeightSlot &slot) { slot.transform = blocks(1, 40, 70, 32, 32); }),
            "weights: rows 0 to 16 have several scales, the layout has one for them");
}

TEST(BlockScaled, PanelsAndSourcesAgreeOnScales) {
  EXPECT_EQ(failure([](Checkpoint &, WeightSlot &slot) { slot.sources[0].scales.reset(); }),
            "weights 'w' (slot 0): tensor 'w' has no scales, its matrices do");
  EXPECT_EQ(failure([](Checkpoint &, WeightSlot &slot) { slot.transform = PanelLayout{{DType::BF16, 1, 40, 70}}; }),
            "weights 'w' (slot 0): tensor 'w' has scales, its matrices have none");
  EXPECT_EQ(
      failure([](Checkpoint &, WeightSlot &slot) { std::get<PanelLayout>(slot.transform).matrix.blockRows = 48; }),
      "weights 'w' (slot 0): scales of 16 columns x 48 rows do not fit matrices of f8E4M3FN");
  EXPECT_EQ(failure([](Checkpoint &, WeightSlot &slot) { slot.sources[0].scales->blockRows = 0; }),
            "weights 'w' (slot 0): tensor 'w' is in blocks of 0 x 32");
  EXPECT_EQ(failure([](Checkpoint &, WeightSlot &slot) { slot.transform = RowMajor{DType::F8E4M3, 2800}; }),
            "weights 'w' (slot 0): elements of f8E4M3FN: scaled blocks are packed in matrices only");
}
