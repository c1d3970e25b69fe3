//===- AccessTest.cpp - What kernels write, and which keep to their rows ------===//
#include "k2c/Kernels/Access.h"
#include "TestStep.h"

using namespace k2c;
using namespace k2c::test;

namespace {

constexpr int64_t tokens = 5;

/// Where a kernel's operands are activations, tables and the step, its results (f32), with row `poked` of each
/// activation that it touches by row replaced. -1: none.
std::vector<Array> resultsOf(const KernelBody &body, int64_t poked) {
  KernelDesc desc{"kernel", body};
  std::vector<Operand> list = operands(desc);
  std::vector<Access> touched = accesses(desc);
  TestStep step(TestStep::plain(tokens));
  Random random(7), other(8);
  std::vector<Array> arrays;
  for (size_t i = 0; i < list.size(); ++i) {
    int64_t width = list[i].rows.width, count = width > 0 ? tokens * width : list[i].elements;
    arrays.emplace_back(DType::F32, random.vector(count));
    for (int64_t j = 0; j < width && poked >= 0 && touched[i].byRow && !touched[i].writes; ++j)
      arrays[i].set(poked * width + j, other());
  }
  std::vector<void *> arguments;
  for (size_t i = 0; i < list.size(); ++i)
    arguments.push_back(list[i].role == Operand::Role::Step ? static_cast<void *>(&step.step) : arrays[i].data());
  EXPECT_TRUE(evaluate(desc, arguments.data(), step.step, WeightLayout::Panels));
  std::vector<Array> results;
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].role == Operand::Role::Result)
      results.push_back(arrays[i]);
  return results;
}

/// The operands, by name, that a kernel writes and that it touches row by row.
std::string text(const KernelBody &body) {
  KernelDesc desc{"kernel", body};
  std::vector<Operand> list = operands(desc);
  std::vector<Access> touched = accesses(desc);
  std::string names;
  for (size_t i = 0; i < list.size(); ++i)
    if (touched[i].writes || touched[i].byRow)
      names +=
          (names.empty() ? "" : " ") + list[i].name + (touched[i].writes ? "!" : "") + (touched[i].byRow ? "=" : "");
  return names;
}

} // namespace

// Row 2 of what goes in decides row 2 of what comes out, and no other.
TEST(Access, RowsDependOnTheirRowAlone) {
  RmsNormDesc norm{rowsOf(6), rowsOf(6), 1e-6, DType::F32};
  RotaryDesc rotary{rowsOf(8), rowsOf(8), 2, 4, 0, 4, 16, false};
  AddDesc add{rowsOf(6), rowsOf(6), rowsOf(6)};
  ClipDesc clip{rowsOf(6), rowsOf(6), 0.5};
  GatedActDesc gated{rowsOf(12), rowsOf(6), 1};
  for (const KernelBody &body : std::vector<KernelBody>{norm, rotary, add, clip, gated}) {
    std::vector<Array> before = resultsOf(body, -1), after = resultsOf(body, 2);
    int64_t width = before[0].size() / tokens;
    for (int64_t row = 0; row < tokens; ++row) {
      bool same = true;
      for (int64_t i = 0; i < width; ++i)
        same &= before[0][row * width + i] == after[0][row * width + i];
      EXPECT_EQ(same, row != 2) << "kernel " << body.index() << ", row " << row;
    }
  }
}

TEST(Access, ResultsPlanesAndWhatIsDestroyedAreWritten) {
  AppendDesc append;
  append.x = {rowsOf(4)};
  append.planes = {DType::F32};
  EXPECT_EQ(text(append), "x0= plane0!");
  EXPECT_EQ(text(CombineDesc{rowsOf(4, DType::F32, RowSpace::Slot), rowsOf(4), 8, 2, 4}), "x! experts= y!=");
  EXPECT_EQ(text(GatherDesc{rowsOf(4), rowsOf(4, DType::F32, RowSpace::Slot), 8, 2}), "x= y!");
  EXPECT_EQ(text(DispatchDesc{8, 2}), "plan!");
  EXPECT_EQ(text(ObserveDesc{rowsOf(4)}), "x=");
  EXPECT_EQ(text(WantRowsDesc{rowsOf(4), rowsOf(4, DType::F32, RowSpace::Want)}), "y!=");
  LinearDesc linear;
  linear.x = linear.y = rowsOf(32);
  linear.w.n = linear.w.k = 32;
  EXPECT_EQ(text(linear), "y!");
}

TEST(Access, FormsOfLatentAttentionWriteTheirRows) {
  HeadLinearDesc expand;
  expand.rows = FormFilter::Absorbed;
  EXPECT_EQ(writtenRows({"expand", expand}), FormFilter::Absorbed);
  EXPECT_EQ(writtenRows({"attention", ExpandedAttentionDesc{}}), FormFilter::Expanded);
  EXPECT_EQ(writtenRows({"add", AddDesc{}}), FormFilter::All);
}
