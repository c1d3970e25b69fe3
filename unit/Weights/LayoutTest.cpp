//===- LayoutTest.cpp - Packed bytes against an element-by-element reference ---===//
//
// The reference places every element of W[n][k] by the formula of the layout; the packer never sees it.
//
//===----------------------------------------------------------------------===//
#include "SourceReader.h"
#include "TestTensors.h"
#include "k2c/Weights/Packer.h"
#include "k2c/Weights/WeightIndex.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::test;

namespace {

/// Packs one slot and returns its payload as elements.
template <class Element> std::vector<Element> pack(const MemoryTensors &tensors, WeightSlot slot) {
  TemporaryFolder folder;
  int64_t payload = payloadBytes(slot.transform);
  Expected<PackReport> report = packWeights(WeightMap{{std::move(slot)}}, tensors, folder.path, {"", 1, nullptr});
  EXPECT_TRUE(report) << (report ? "" : report.error().text());
  if (!report)
    return {};
  auto index = readWeightIndex(folder.path);
  std::string bytes = readFile(folder.path + "/weights/" + index->slots[0].ranges[0]->file);
  EXPECT_EQ(int64_t(bytes.size()) % blobAlignment, 0);
  EXPECT_EQ(bytes.find_first_not_of('\0', payload), std::string::npos) << "padding of the blob";
  std::vector<Element> elements(payload / sizeof(Element));
  std::memcpy(elements.data(), bytes.data(), payload);
  return elements;
}

/// [matrix][panel][k / kStep][32][kStep]; `at` gives W of (matrix, column, row), columns n: gate first, then up.
template <class Element, class At> std::vector<Element> reference(const PanelLayout &layout, At at) {
  const Matrix &w = layout.matrix;
  std::vector<Element> out(layout.bytes() / sizeof(Element));
  int64_t share = 32 / w.parts, half = w.n / w.parts, step = w.kStep();
  for (int64_t matrix = 0; matrix < w.count; ++matrix)
    for (int64_t column = 0; column < w.n; ++column)
      for (int64_t row = 0; row < w.k; ++row) {
        int64_t part = column / half, inPart = column % half;
        int64_t lane = part * share + inPart % share;
        int64_t panel = matrix * panelCount(w) + inPart / share;
        int64_t index = panel * layout.panelElements() + row / step * 32 * step + lane * step + row % step;
        EXPECT_EQ(index * int64_t(sizeof(Element)), layout.offset(matrix, column, row)) << "what kernels read";
        out[index] = at(matrix, column, row);
      }
  return out;
}

PanelLayout panels(DType type, int64_t count, int64_t n, int64_t k, int64_t parts = 1) {
  return {{type, count, n, k, parts}};
}

} // namespace

TEST(Panels, Bf16PairsWithOddSizes) {
  MemoryTensors tensors;
  tensors.addRandom("w", DType::BF16, {33, 7});
  auto w = tensors.elements<uint16_t>("w");
  PanelLayout layout = panels(DType::BF16, 1, 33, 7);
  auto packed = pack<uint16_t>(tensors, {0, "w", 0, {{"w", {33, 7}, {}, false}}, layout});
  EXPECT_EQ(packed.size(), 2u * 4 * 32 * 2);
  EXPECT_EQ(packed, reference<uint16_t>(layout, [&](int64_t, int64_t n, int64_t k) { return w[n * 7 + k]; }));
}

TEST(Panels, F32WithOddSizes) {
  MemoryTensors tensors;
  tensors.addRandom("w", DType::F32, {33, 7});
  auto w = tensors.elements<uint32_t>("w");
  PanelLayout layout = panels(DType::F32, 1, 33, 7);
  auto packed = pack<uint32_t>(tensors, {0, "w", 0, {{"w", {33, 7}, {}, false}}, layout});
  EXPECT_EQ(packed, reference<uint32_t>(layout, [&](int64_t, int64_t n, int64_t k) { return w[n * 7 + k]; }));
}

TEST(Panels,
     LargerThanOneBatch) { // 64 panels of 32 * 1030 bf16: four batches of rows
  MemoryTensors tensors;
  tensors.addRandom("w", DType::BF16, {2047, 1030});
  auto w = tensors.elements<uint16_t>("w");
  PanelLayout layout = panels(DType::BF16, 1, 2047, 1030);
  auto packed = pack<uint16_t>(tensors, {0, "w", 0, {{"w", {2047, 1030}, {}, false}}, layout});
  EXPECT_EQ(packed, reference<uint16_t>(layout, [&](int64_t, int64_t n, int64_t k) { return w[n * 1030 + k]; }));
}

TEST(Panels, GateAndUpInterleaveForEachExpert) {
  MemoryTensors tensors;
  WeightSlot slot{0, "gate_up", 1, {}, panels(DType::BF16, 3, 2 * 19, 5, 2)};
  std::vector<std::vector<uint16_t>> parts;
  for (int expert = 0; expert < 3; ++expert)
    for (const char *part : {"gate", "up"}) {
      std::string name = std::to_string(expert) + "." + part;
      tensors.addRandom(name, DType::BF16, {19, 5});
      parts.push_back(tensors.elements<uint16_t>(name));
      slot.sources.push_back({name, {19, 5}, {}, false});
    }
  auto packed = pack<uint16_t>(tensors, slot);
  EXPECT_EQ(packed, reference<uint16_t>(std::get<PanelLayout>(slot.transform), [&](int64_t e, int64_t n, int64_t k) {
              return parts[2 * e + n / 19][n % 19 * 5 + k];
            }));
}

TEST(Panels, MergedExpertsGiveGateAndUpBySlices) {
  MemoryTensors tensors; // [expert][gate rows, up rows][in]
  tensors.addRandom("gate_up", DType::F32, {3, 38, 5});
  auto w = tensors.elements<uint32_t>("gate_up");
  PanelLayout layout = panels(DType::F32, 3, 38, 5, 2);
  WeightSlot slot{
      0,
      "gate_up",
      1,
      {{"gate_up", {3, 38, 5}, TensorSlice{1, 0, 19}, false}, {"gate_up", {3, 38, 5}, TensorSlice{1, 19, 38}, false}},
      layout};
  EXPECT_EQ(pack<uint32_t>(tensors, slot),
            reference<uint32_t>(layout, [&](int64_t e, int64_t n, int64_t k) { return w[(e * 38 + n) * 5 + k]; }));
}

TEST(Panels, SourcesFollowOneAnother) { // q, k, v as one matrix; panels cross
                                        // the borders
  MemoryTensors tensors;
  std::vector<uint16_t> all;
  WeightSlot slot{0, "qkv", 0, {}, panels(DType::BF16, 1, 40 + 9 + 9, 6)};
  for (auto [name, rows] : {std::pair<const char *, int64_t>{"q", 40}, {"k", 9}, {"v", 9}}) {
    tensors.addRandom(name, DType::BF16, {rows, 6});
    auto part = tensors.elements<uint16_t>(name);
    all.insert(all.end(), part.begin(), part.end());
    slot.sources.push_back({name, {rows, 6}, {}, false});
  }
  EXPECT_EQ(pack<uint16_t>(tensors, slot),
            reference<uint16_t>(std::get<PanelLayout>(slot.transform),
                                [&](int64_t, int64_t n, int64_t k) { return all[n * 6 + k]; }));
}

TEST(Panels, SlicesOfKvBAndTheirTranspose) {
  constexpr int64_t heads = 3, nope = 10, value = 6, latent = 35;
  MemoryTensors tensors;
  tensors.addRandom("kv_b", DType::BF16, {heads * (nope + value), latent});
  auto w = tensors.elements<uint16_t>("kv_b");
  SourceTensor source{"kv_b", {heads, nope + value, latent},   TensorSlice{1, 0, nope}, false,
                      {},     {heads * (nope + value), latent}};
  PanelLayout uk = panels(DType::BF16, heads, nope, latent);
  EXPECT_EQ(pack<uint16_t>(tensors, {0, "uk", 0, {source}, uk}),
            reference<uint16_t>(
                uk, [&](int64_t h, int64_t n, int64_t k) { return w[(h * (nope + value) + n) * latent + k]; }));
  source.transpose = true; // absorbed: latent columns out of nope inputs
  PanelLayout absorbed = panels(DType::BF16, heads, latent, nope);
  EXPECT_EQ(pack<uint16_t>(tensors, {0, "absorb", 0, {source}, absorbed}),
            reference<uint16_t>(
                absorbed, [&](int64_t h, int64_t n, int64_t k) { return w[(h * (nope + value) + k) * latent + n]; }));
}

TEST(Rows, CopyKeepsBits) {
  MemoryTensors tensors;
  std::vector<uint32_t> bits = {0x7f7fffff, 0xff7fffff, 0x80000001, 0x00800000, 0x007fffff, 0x80000000, 1};
  tensors.add("norm", DType::F32, {7}, bits);
  EXPECT_EQ(pack<uint32_t>(tensors, {0, "norm", 0, {{"norm", {7}, {}, false}}, RowMajor{DType::F32, 7}}), bits);
}

TEST(Rows, Bf16WidensExactly) {
  MemoryTensors tensors;
  tensors.add("norm", DType::BF16, {4}, std::vector<uint16_t>{0x7f7f, 0x0001, 0xff01, 0x3f81});
  EXPECT_EQ(pack<uint32_t>(tensors, {0, "norm", 0, {{"norm", {4}, {}, false}}, RowMajor{DType::F32, 4}}),
            (std::vector<uint32_t>{0x7f7f0000, 0x00010000, 0xff010000, 0x3f810000}));
}

TEST(Rows, EveryFiniteF16WidensExactly) {
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i)
    halves[i] = (i >> 10 & 31) == 31 ? 0 : uint16_t(i);
  MemoryTensors tensors;
  tensors.add("h", DType::F16, {65536}, halves);
  auto wide = pack<uint32_t>(tensors, {0, "h", 0, {{"h", {65536}, {}, false}}, RowMajor{DType::F32, 65536}});
  ASSERT_EQ(wide.size(), halves.size());
  for (uint32_t half = 0; half < 65536; ++half) {
    uint32_t exponent = halves[half] >> 10 & 31, mantissa = halves[half] & 1023, expected;
    float value = exponent ? std::ldexp(float(mantissa + 1024), int(exponent) - 25) : std::ldexp(float(mantissa), -24);
    std::memcpy(&expected, &value, 4);
    expected |= uint32_t(halves[half] >> 15) << 31;
    ASSERT_EQ(wide[half], expected) << half;
  }
}

TEST(Rows, ColumnSliceAndTranspose) {
  MemoryTensors tensors;
  tensors.addRandom("w", DType::BF16, {4, 6});
  auto w = tensors.elements<uint16_t>("w");
  SourceTensor source{"w", {4, 6}, TensorSlice{1, 2, 5}, false};
  std::vector<uint16_t> plain, transposed;
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t column = 2; column < 5; ++column)
      plain.push_back(w[row * 6 + column]);
  for (int64_t column = 2; column < 5; ++column)
    for (int64_t row = 0; row < 4; ++row)
      transposed.push_back(w[row * 6 + column]);
  EXPECT_EQ(pack<uint16_t>(tensors, {0, "w", 0, {source}, RowMajor{DType::BF16, 12}}), plain);
  source.transpose = true;
  EXPECT_EQ(pack<uint16_t>(tensors, {0, "w", 0, {source}, RowMajor{DType::BF16, 12}}), transposed);
}

TEST(Rows, PartOfASlice) {
  MemoryTensors tensors;
  tensors.addRandom("w", DType::BF16, {4, 6, 2});
  auto w = tensors.elements<uint16_t>("w");
  for (int64_t dimension = 0; dimension < 3; ++dimension) {
    SourceTensor source{"w", {4, 6, 2}, TensorSlice{1, 1, 5}, false};
    const int64_t sizes[] = {4, 4, 2}, half = sizes[dimension] / 2;
    source.part = TensorSlice{dimension, half, 2 * half};
    std::vector<uint16_t> expected;
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 4; ++j)
        for (int64_t k = 0; k < 2; ++k)
          if (const int64_t at[] = {i, j, k}; at[dimension] >= half)
            expected.push_back(w[(i * 6 + j + 1) * 2 + k]);
    EXPECT_EQ(pack<uint16_t>(tensors, {0, "w", 0, {source}, RowMajor{DType::BF16, 16}}), expected) << dimension;
  }
}

TEST(Rows, MoreThanTheSourcesHaveAreRefused) {
  MemoryTensors tensors;
  tensors.addRandom("w", DType::F32, {2, 3});
  const SourceTensor source{"w", {2, 3}, {}, false};
  Expected<weights::SourceReader> reader = weights::SourceReader::open(tensors, source, DType::F32);
  ASSERT_TRUE(reader) << reader.error().text();
  weights::RowStream stream({*reader});
  std::vector<float> rows(4 * 3);
  Status status = stream.next(4, reinterpret_cast<char *>(rows.data()), 3);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "weights: the sources end 2 rows early");
}

TEST(Tables, ComeFromTheirGenerator) {
  Table table{3000000, "", [](int64_t first, char *out, int64_t count) {
                for (int64_t i = 0; i < count; ++i)
                  out[i] = char((first + i) * 7 >> 3);
              }};
  auto bytes = pack<char>(MemoryTensors(), {0, "rope", {}, {}, table});
  std::vector<char> expected(3000000);
  table.generate(0, expected.data(), 3000000);
  EXPECT_TRUE(bytes == expected);
}

/// Elements of rows that a layout pads to 16 bytes; the padding is zero.
static void expectRows(DType type, int64_t n, int64_t k) {
  MemoryTensors tensors;
  std::vector<uint16_t> stored(2 * n * k);
  for (size_t i = 0; i < stored.size(); ++i)
    stored[i] = uint16_t(0x3000 + i * 7919 % 0x2000);
  tensors.add("w", DType::BF16, {2, n, k}, stored);
  const RowLayout layout{{type, 2, n, k}};
  auto bytes = pack<char>(tensors, WeightSlot{0, "w", 0, {{"w", {2, n, k}, {}, false}}, layout});
  ASSERT_EQ(int64_t(bytes.size()), layout.bytes());
  std::vector<char> expected(layout.bytes());
  for (int64_t row = 0; row < 2 * n; ++row)
    for (int64_t i = 0; i < k; ++i) {
      uint32_t wide = uint32_t(stored[row * k + i]) << 16;
      char *to = expected.data() + layout.offset(row / n, row % n, i);
      type == DType::F32 ? std::memcpy(to, &wide, 4) : std::memcpy(to, &stored[row * k + i], 2);
    }
  EXPECT_TRUE(bytes == expected) << n << " x " << k;
}

TEST(MatrixRows, AreTheTensorsRowsPadded) {
  expectRows(DType::BF16, 33, 7);
  expectRows(DType::BF16, 3, 8);
  expectRows(DType::F32, 5, 9);
}

TEST(MatrixRows, LargerThanOneBatch) { expectRows(DType::BF16, 1100, 1030); } // of 2 MiB
