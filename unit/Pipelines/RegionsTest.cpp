//===- RegionsTest.cpp - branches around launches -----------------------------===//
//
// What a program computes that goes one of two ways, by the step's token rows or by the layer, beside the same written
// out in C++. All values are small integers.
//
//===----------------------------------------------------------------------===//
#include "TestProgram.h"
#include <array>

using namespace k2c;
using test::hidden;

namespace {

/// Steps of three tokens and more multiply, others add.
constexpr const char *byRows = R"(
!x = tensor<?x8xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 4, seq = 2, context = 64>} {
  nn.weights @x "x" : tensor<16x8xf32>
  nn.weights @w "w" : tensor<8x8xf32>
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %x = nn.embed @x, %b : !x
    %t = rt.rows token
    %three = arith.constant 3 : i64
    %many = arith.cmpi sge, %t, %three : i64
    %y = scf.if %many -> !x {
      %m = nn.linear %x, @w : !x -> !x
      scf.yield %m : !x
    } else {
      %s = nn.add %x, %x : !x
      scf.yield %s : !x
    }
    %r = nn.add %y, %x : !x
    nn.capture %r, %b embed : !x
    return
  }
}
)";

/// The first layer multiplies by its own weight, the others by another.
constexpr const char *byLayer = R"(
!x = tensor<?x8xf32, #nn.rows<token>>
module attributes {nn.limits = #nn.limits<token = 4, seq = 2, context = 64>} {
  nn.weights @x "x" : tensor<16x8xf32>
  nn.weights @v "{layer}.v" over (layer = 0 to 3) : tensor<8x8xf32>
  nn.weights @w "{layer}.w" over (layer = 0 to 3) : tensor<8x8xf32>
  nn.layer @layer(%layer: index, %x: !x, %b: !nn.batch) -> !x {
    %zero = arith.constant 0 : index
    %first = arith.cmpi eq, %layer, %zero : index
    %m = scf.if %first -> !x {
      %u = nn.linear %x, @v[%layer] : !x -> !x
      scf.yield %u : !x
    } else {
      %u = nn.linear %x, @w[%layer] : !x -> !x
      scf.yield %u : !x
    }
    %x1 = nn.add %x, %m : !x
    nn.yield %x1 : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %x = nn.embed @x, %b : !x
    %y = nn.layers %x, %b [@layer[0 to 3]] : !x
    nn.capture %y, %b embed : !x
    return
  }
}
)";

float weight(llvm::StringRef family, int64_t layer, int64_t n, int64_t k) {
  return float((n * 7 + k * 3 + family.front() + 2 * layer + n * k) % 5 - 2);
}

using Row = std::array<float, hidden>;

Row embedding(int64_t id) {
  Row x;
  for (int64_t k = 0; k < hidden; ++k)
    x[k] = weight("x", 0, id, k);
  return x;
}

Row linear(llvm::StringRef family, int64_t layer, const Row &x) {
  Row y = {};
  for (int64_t n = 0; n < hidden; ++n)
    for (int64_t k = 0; k < hidden; ++k)
      y[n] += weight(family, layer, n, k) * x[k];
  return y;
}

Row sum(Row x, const Row &y) {
  for (int64_t k = 0; k < hidden; ++k)
    x[k] += y[k];
  return x;
}

struct Regions : test::TestProgram {
  void expectRow(int64_t row, const Row &wanted) {
    for (int64_t k = 0; k < hidden; ++k)
      EXPECT_EQ(captured[row * hidden + k], wanted[k]) << row << ", " << k;
  }
};

constexpr int64_t ids[] = {3, 5, 7};

} // namespace

TEST_F(Regions, ABranchGoesTheWayOfTheStep) {
  compile(byRows, weight);
  ASSERT_EQ(run("serve"), 0);
  for (int64_t row = 0; row < 3; ++row)
    expectRow(row, sum(linear("w", 0, embedding(ids[row])), embedding(ids[row])));
  ASSERT_EQ(run("serve", 2), 0);
  for (int64_t row = 0; row < 2; ++row)
    expectRow(row, sum(sum(embedding(ids[row]), embedding(ids[row])), embedding(ids[row])));
}

TEST_F(Regions, ABranchGoesTheWayOfTheLayer) {
  compile(byLayer, weight);
  ASSERT_EQ(run("serve"), 0);
  for (int64_t row = 0; row < 3; ++row) {
    Row x = embedding(ids[row]);
    for (int64_t layer = 0; layer < 3; ++layer)
      x = sum(x, linear(layer == 0 ? "v" : "w", layer, x));
    expectRow(row, x);
  }
}
