//===- CacheGroupsTest.cpp - a layer whose attentions lie in two cache groups -===//
//
// The groups hold different numbers of tokens of the sequence, in other pages. What each attention computes has the
// bits of the same program with one group, in a step that finds there what its group held.
//
//===----------------------------------------------------------------------===//
#include "TestProgram.h"

using namespace k2c;
using test::hidden;

namespace {

constexpr int64_t rows = 3, poolPages = 16, planeCount = 4;

constexpr const char *twoGroups = R"(
!x = tensor<?x8xf32, #nn.rows<token>>
!q = tensor<?x2x4xf32, #nn.rows<token>>
!kv = tensor<?x1x4xf32, #nn.rows<token>>
!view = !nn.kv_view<k = 1 x 4 x f32, v = 1 x 4 x f32>
!recent = !nn.kv_view<k = 1 x 4 x f32, v = 1 x 4 x f32, group = 1>
module attributes {nn.limits = #nn.limits<token = 4, seq = 2, context = 192>} {
  nn.weights @embed "embed" : tensor<16x8xf32>
  nn.weights @q "{layer}.q" over (layer = 0 to 1) : tensor<2x4x8xf32>
  nn.weights @k "{layer}.k" over (layer = 0 to 1) : tensor<1x4x8xf32>
  nn.weights @v "{layer}.v" over (layer = 0 to 1) : tensor<1x4x8xf32>
  nn.pool @cache over (layer = 0 to 1) planes (k = 1 x 4 x f32, v = 1 x 4 x f32) page 64 group 0
  nn.pool @recent over (layer = 0 to 1) planes (k = 1 x 4 x f32, v = 1 x 4 x f32) page 64 group 1
  nn.layer @layer(%l: index, %x: !x, %b: !nn.batch) -> !x {
    %q = nn.linear %x, @q[%l] : !x -> !q
    %k = nn.linear %x, @k[%l] : !x -> !kv
    %v = nn.linear %x, @v[%l] : !x -> !kv
    %all = nn.append @cache[%l], %k, %v, %b : !kv, !kv -> !view
    %last = nn.append @recent[%l], %k, %v, %b : !kv, !kv -> !recent
    %0 = nn.attention %q, %all, %b scale 5.0e-1 : !q, !view -> !q
    %1 = nn.attention %q, %last, %b scale 5.0e-1 : !q, !recent -> !q
    %ofAll = nn.reshape %0 : !q -> !x
    %ofLast = nn.reshape %1 : !q -> !x
    nn.capture %ofAll, %b embed : !x
    nn.capture %ofLast, %b hidden layer %l : !x
    %y = nn.add %ofAll, %ofLast : !x
    nn.yield %y : !x
  }
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %x = nn.embed @embed, %b : !x
    %y = nn.layers %x, %b [@layer[0 to 1]] : !x
    return
  }
}
)";

/// twoGroups with both pools in group 0.
std::string oneGroup() {
  std::string text = twoGroups;
  for (const auto &[from, to] : {std::pair(", group = 1", ""), std::pair("group 1", "group 0")})
    text.replace(text.find(from), std::strlen(from), to);
  return text;
}

float weight(llvm::StringRef family, int64_t, int64_t n, int64_t k) {
  return test::Random(uint64_t(family.front() * 1000 + n * 8 + k))();
}

struct CacheGroups : test::TestProgram {
  /// What both attentions give in a step that finds these groups, in a cache full of other tokens.
  std::pair<std::vector<float>, std::vector<float>> attend(const std::vector<Group> &groups) {
    planes.clear();
    for (uint64_t plane = 0; plane < planeCount; ++plane)
      planes.push_back(test::Random(plane).vector(poolPages * 64 * 4));
    captured.assign(2 * rows * hidden, -1);
    EXPECT_EQ(run("serve", 3, groups), 0);
    const auto second = captured.begin() + rows * hidden;
    return {{captured.begin(), second}, {second, captured.end()}};
  }
};

} // namespace

TEST_F(CacheGroups, HaveLengthsAndPagesOfTheirOwn) {
  const Group some[] = {{130, {5, 2, 9}}, {0, {7}}, {63, {3, 11}}, {64, {14, 1}}};
  compile(oneGroup().c_str(), weight);
  EXPECT_EQ(program->n_groups, 1);
  std::vector<std::pair<std::vector<float>, std::vector<float>>> alone;
  for (const Group &group : some)
    alone.push_back(attend({group}));
  compile(twoGroups, weight);
  EXPECT_EQ(program->n_groups, 2);
  for (size_t first = 0; first < std::size(some); ++first)
    for (size_t second = 0; second < std::size(some); ++second) {
      const auto [ofFirst, ofSecond] = attend({some[first], some[second]});
      EXPECT_EQ(ofFirst, alone[first].first) << first << ", " << second;
      EXPECT_EQ(ofSecond, alone[second].second) << first << ", " << second;
      EXPECT_EQ(alone[first].second == alone[second].second, first == second) << "a mistaken group would not show";
    }
}
