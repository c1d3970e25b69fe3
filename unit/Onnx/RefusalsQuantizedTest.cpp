//===- RefusalsQuantizedTest.cpp - weights of few bits that are refused --------------===//
#include "RefusalSteps.h"

using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

/// MatMulNBits of rows of 32 columns and 8 rows of weights, two blocks each; attributes stand above those of a node
/// that is folded.
OneNode product(std::vector<Operand> inputs, const GraphBuilder::Attributes &attributes, const char *text) {
  GraphBuilder::Attributes all{{"N", 8}, {"K", 32}, {"block_size", 16}, {"bits", 4}};
  all.insert(all.end(), attributes.begin(), attributes.end());
  return {"com.microsoft:MatMulNBits", std::move(inputs), std::move(all), text};
}

TEST(RefusalsQuantized, ofProducts) {
  const Operand x = reals({3, 32}), weights = bytes({8, 2, 8}), scales = reals({8, 2});
  expectEach({
      product({x, weights, scales}, {}, ""),
      product({x, bytes({8, 2, 16}), scales, leftOut(), leftOut(), reals({8})}, {{"bits", 8}}, ""),
      product({x, weights, scales}, {{"bits", 3}}, "its weights have 3 bits, and 4 and 8 are read"),
      product({x, weights, scales}, {{"weight_prepacked", 1}},
              "weights that are packed for one device, and g_idx, are not understood"),
      product({x, weights, scales, leftOut(), leftOut(), reals({7})}, {}, "a bias of shape [7] does not fit 8 columns"),
      product({x, {ElementType::U8, {8, 2, 8}, std::nullopt}, scales}, {},
              "input 1, of 4-bit elements, is not a constant of bytes"),
      product({x, reals({8, 2, 8}), scales}, {}, "weights of 4 bits in FLOAT are not understood"),
      product({x, bytes({8, 2, 7}), scales}, {}, "weights of shape [8, 2, 14] do not fit rows of shape [8, 32]"),
      product({x, weights, scales}, {{"block_size", int64_t(1) << 62}},
              "weights of shape [8, 2, 16] do not fit rows of shape [8, 4"),
      product({x, weights, scales}, {{"block_size", 0}},
              "N 8, K 32, blocks of 0 and 4 bits do not fit rows of shape [3, 32]"),
      product({x, weights, scales}, {{"block_size", 3}}, "blocks of 3 are no power of 2 from 16 on"),
      product({x, weights, scales}, {{"block_size", 8}}, "blocks of 8 are no power of 2 from 16 on"),
      product({x, bytes({8, 2, 4}), scales}, {{"bits", 2}}, "its weights have 2 bits, and 4 and 8 are read"),
      product({x, weights, scales, integers({8, 2})}, {}, "weights of 4 bits in INT64 are not understood"),
      product({x, weights, integers({8, 2})}, {}, "scales of INT64 are not understood"),
      product({x, weights, reals({8, 3})}, {}, "scales of shape [8, 3] do not fit rows of shape [8, 2]"),
      product({x, weights, scales, reals({8, 3})}, {}, "zero points of shape [8, 3] do not fit rows of shape [8, 2]"),
  });
}

OneNode dequantised(std::vector<Operand> inputs, GraphBuilder::Attributes attributes, const char *text) {
  return {"DequantizeLinear", std::move(inputs), std::move(attributes), text};
}

TEST(RefusalsQuantized, ofElements) {
  const Operand x = {ElementType::I8, {4, 8}, std::nullopt}, scales = reals({8});
  expectEach({
      dequantised({x, scales}, {}, ""),
      dequantised({x, reals({4, 2}), {ElementType::I8, {4, 2}, std::nullopt}}, {{"block_size", 4}}, ""),
      dequantised({x, scales}, {{"axis", 2}}, "axis 2 of a tensor of rank 2 in blocks of 0 is not understood"),
      dequantised({x, {ElementType::F64, {8}, std::nullopt}}, {}, "scales of DOUBLE are not understood"),
      dequantised({x, {ElementType::BF16, {8}, std::nullopt}}, {}, ""),
      dequantised({x, reals({7})}, {}, "scales of shape [7] do not fit elements of shape [4, 8]"),
      dequantised({x, scales, {ElementType::I8, {7}, std::nullopt}}, {},
                  "zero points of shape [7] do not fit elements of shape [4, 8]"),
      dequantised({x, scales, {ElementType::U8, {8}, std::nullopt}}, {},
                  "zero points of UINT8 do not fit elements of INT8"),
      dequantised({x, reals({4, 3}), leftOut()}, {{"block_size", 3}}, ""),
      dequantised({x, reals({4, 2}), leftOut()}, {{"block_size", 3}},
                  "scales of shape [4, 2] do not fit elements of shape [4, 8]"),
      dequantised({x, scales}, {{"block_size", -1}}, "axis 1 of a tensor of rank 2 in blocks of -1 is not understood"),
  });
}

TEST(RefusalsQuantized, ofRealNumbers) {
  const Operand x = {ElementType::F8E4M3, {1, 2}, std::vector<double>{0x38, 0x40}};
  const auto zero = [](double bits) { return Operand{ElementType::F8E4M3, {}, std::vector<double>{bits}}; };
  expectEach({
      dequantised({x, number(2), zero(0)}, {}, ""),
      dequantised({x, number(2), zero(0x38)}, {},
                  "zero points other than 0 of elements of FLOAT8E4M3FN are not understood"),
  });
}

TEST(RefusalsQuantized, ofTypesThatAreNotRead) {
  const auto of = [](ElementType type) { return Operand{type, {4}, std::vector<double>{0, 0, 0, 0}}; };
  expectEach({
      dequantised({of(ElementType(25)), number(2)}, {}, "reads tensor 'x0' of type UINT2, which is not in this build"),
      dequantised({of(ElementType(23)), number(2)}, {},
                  "reads tensor 'x0' of type FLOAT4E2M1, which is not in this build"),
  });
}

OneNode looked(std::vector<Operand> inputs, const char *text, int64_t block = 16) {
  return {"com.microsoft:GatherBlockQuantized", std::move(inputs), {{"block_size", block}}, text};
}

TEST(RefusalsQuantized, ofTables) {
  const Operand table = bytes({10, 16}), which = integers({2, 3}), scales = reals({10, 2});
  expectEach({
      looked({table, which, scales}, ""),
      looked({reals({10, 16}), which, scales}, "a table of FLOAT of shape [10, 16] in blocks of 16 is not understood"),
      looked({table, which, scales}, "blocks of 0 are no power of 2 from 16 on", 0),
      looked({table, which, integers({10, 2})}, "scales of INT64 are not understood"),
      looked({table, which, reals({10, 3})},
             "scales of shape [10, 3], or their zero points, do not fit elements of shape [10, 32]"),
      looked({table, which, scales, bytes({10, 3})},
             "scales of shape [10, 2], or their zero points, do not fit elements of shape [10, 32]"),
  });
}

} // namespace
