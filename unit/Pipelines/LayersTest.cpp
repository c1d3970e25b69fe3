//===- LayersTest.cpp - layers that carry two tensors and read a third ----===//
//
// What four layers of two kinds compute, beside the same written out in C++. All values are small integers, so that no
// order of a sum matters, and any value of a wrong place is another number.
//
//===----------------------------------------------------------------------===//
#include "TestProgram.h"
#include <array>

using namespace k2c;
using test::hidden;

namespace {

constexpr int64_t wide = 16, rows = 3, layers = 4;

constexpr const char *twoTensors = R"(
!x = tensor<?x8xf32, #nn.rows<token>>
!y = tensor<?x16xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 4, seq = 2, context = 64>} {
  nn.weights @x "x" : tensor<16x8xf32>
  nn.weights @y "y" : tensor<16x16xf32>
  nn.weights @t "t" : tensor<16x8xf32>
  nn.weights @narrow "{layer}.narrow" over (layer = 0 to 4) : tensor<8x16xf32>
  nn.weights @widen "{layer}.widen" over (layer = 0 to 4) : tensor<16x8xf32>
  nn.weights @last "last" : tensor<8x16xf32>
  nn.layer @both(%layer: index, %x: !x, %y: !y, %t: !x, %b: !nn.batch) -> (!x, !y) {
    %m = nn.linear %y, @narrow[%layer] : !y -> !x
    %x1 = nn.add %x, %m : !x
    %u = nn.add %x1, %t : !x
    %n = nn.linear %u, @widen[%layer] : !x -> !y
    %y1 = nn.add %y, %n : !y
    nn.yield %x1, %y1 : !x, !y
  }
  nn.layer @narrow_only(%layer: index, %x: !x, %y: !y, %t: !x, %b: !nn.batch) -> (!x, !y) {
    %m = nn.linear %y, @narrow[%layer] : !y -> !x
    %u = nn.add %t, %m : !x
    %x1 = nn.add %x, %u : !x
    nn.yield %x1, %y : !x, !y
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %x = nn.embed @x, %b : !x
    %y = nn.embed @y, %b : !y
    %t = nn.embed @t, %b : !x
    %z:2 = nn.layers %x, %y reads %t, %b [@both[0 to 1], (@narrow_only, @both)[1 to 4]] : !x, !y reads !x
    %l = nn.linear %z#1, @last : !y -> !x
    %s = nn.add %z#0, %l : !x
    %r = nn.add %s, %t : !x
    nn.capture %r, %b embed : !x
    return
  }
}
)";

/// From -2 to 2, and another table for each family and layer.
float weight(llvm::StringRef family, int64_t layer, int64_t n, int64_t k) {
  const int64_t own = family.front() + 5 * layer;
  return float((n * 7 + k * 3 + own * own + n * k) % 5 - 2);
}

/// Row n of W x.
float linear(llvm::StringRef family, int64_t layer, int64_t n, llvm::ArrayRef<float> x) {
  float sum = 0;
  for (auto [k, value] : llvm::enumerate(x))
    sum += weight(family, layer, n, int64_t(k)) * value;
  return sum;
}

/// The row of token `id`.
std::array<float, hidden> expected(int64_t id) {
  std::array<float, hidden> x, t;
  std::array<float, wide> y;
  for (int64_t k = 0; k < hidden; ++k)
    x[k] = weight("x", 0, id, k), t[k] = weight("t", 0, id, k);
  for (int64_t k = 0; k < wide; ++k)
    y[k] = weight("y", 0, id, k);
  for (int64_t layer = 0; layer < layers; ++layer) {
    const bool isBoth = layer == 0 || layer == 2;
    std::array<float, hidden> u;
    for (int64_t k = 0; k < hidden; ++k) {
      x[k] += linear("narrow", layer, k, y) + (isBoth ? 0 : t[k]);
      u[k] = x[k] + t[k];
    }
    for (int64_t k = 0; isBoth && k < wide; ++k)
      y[k] += linear("widen", layer, k, u);
  }
  for (int64_t k = 0; k < hidden; ++k)
    x[k] += linear("last", 0, k, y) + t[k];
  return x;
}

using Layers = test::TestProgram;

} // namespace

TEST_F(Layers, CarryTwoTensorsAndReadAThird) {
  compile(twoTensors, weight);
  ASSERT_EQ(run("serve"), 0);
  const int64_t ids[rows] = {3, 5, 7};
  for (int64_t row = 0; row < rows; ++row) {
    const std::array<float, hidden> wanted = expected(ids[row]);
    for (int64_t k = 0; k < hidden; ++k)
      EXPECT_EQ(captured[row * hidden + k], wanted[k]) << row << ", " << k;
  }
}
