//===- EntriesTest.cpp - a program that is entered at two places ----------===//
#include "TestProgram.h"

using namespace k2c;
using test::hidden;
using test::vocab;

namespace {

constexpr const char *twoEntries = R"(
!x = tensor<?x8xf32, #nn.rows<token>>
!v = tensor<?x8xf32, #nn.rows<output>>
!l = tensor<?x16xf32, #nn.rows<output>>
module attributes {nn.limits = #nn.limits<token = 4, seq = 2, context = 64>} {
  nn.weights @embed "embed" : tensor<16x8xf32>
  nn.weights @head "head" : tensor<16x8xf32>
  func.func @step(%b: !nn.batch) attributes {nn.entry = "serve"} {
    %x = nn.embed @embed, %b : !x
    %v = nn.output_rows %x, %b : !x -> !v
    %l = nn.linear %v, @head : !v -> !l
    nn.sample %l, %b : !l
    return
  }
  func.func @encode(%b: !nn.batch) attributes {nn.entry = "encode"} {
    %x = nn.embed @embed, %b : !x
    nn.capture %x, %b embed : !x
    return
  }
}
)";

float embedding(int64_t id, int64_t k) { return float(id * 3 + k % 5); }
float head(int64_t n, int64_t k) { return float((n + k) % 7); }
float weight(llvm::StringRef family, int64_t, int64_t n, int64_t k) {
  return family == "head" ? head(n, k) : embedding(n, k);
}

using Entries = test::TestProgram;

} // namespace

TEST_F(Entries, OfOneProgramRunApart) {
  compile(twoEntries, weight);
  ASSERT_EQ(entries.size(), 2u);
  ASSERT_EQ(run("encode"), 0);
  const int64_t ids[] = {3, 5, 7};
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t k = 0; k < hidden; ++k)
      EXPECT_EQ(captured[row * hidden + k], embedding(ids[row], k)) << row << ", " << k;
  EXPECT_EQ(logits, std::vector<float>(vocab, -1)) << "the other entry's";
  captured.assign(captured.size(), -1);
  ASSERT_EQ(run("serve"), 0);
  for (int64_t n = 0; n < vocab; ++n) {
    float sum = 0;
    for (int64_t k = 0; k < hidden; ++k)
      sum += embedding(7, k) * head(n, k);
    EXPECT_EQ(logits[n], sum) << n;
  }
  EXPECT_EQ(captured, std::vector<float>(3 * hidden, -1)) << "the other entry's";
}

TEST_F(Entries, ComputeTheSameWithMatricesInRows) {
  compile(twoEntries, weight);
  ASSERT_EQ(run("serve"), 0);
  const std::vector<float> inPanels = logits;
  compile(twoEntries, weight, kern::WeightLayout::Rows);
  EXPECT_EQ(weights[1]->size(), vocab * hidden) << "rows of 32 bytes need no padding";
  logits.assign(vocab, -1);
  ASSERT_EQ(run("serve"), 0);
  EXPECT_EQ(logits, inPanels);
}
