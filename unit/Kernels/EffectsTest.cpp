//===- EffectsTest.cpp - Effects that are declared, and those there are -------===//
//
// Every kernel body runs on memory that is filled anew for each question, and what differs afterwards is what it does:
//
//   written   the bytes are not what they were, under one fill or under its complement
//   read      other bytes in the argument, or in one row of it, and something that is written comes out otherwise
//   by row    other bytes in row i, and only row i of what is written by row, or what no other row changes, differs;
//             and an item of the grid is a block of rows, whole
//
// The comparison takes the list of operands as an argument, so that a lie can be planted in it.
//
//===----------------------------------------------------------------------===//
#include "EffectsWorld.h"
#include "Lists.h"
#include "k2c/Kernels/TileConfig.h"
#include <numeric>
#include <set>

using namespace k2c;
using namespace k2c::test;

namespace {

constexpr char fill = 0x11;

/// What a body does, held against what `declared` says of its operands.
class Comparison {
public:
  Comparison(const KernelBody &body, std::vector<Operand> declared) : body(body), declared(std::move(declared)) {}

  /// One line for each lie; empty: what is declared is what is done.
  std::string lies() {
    compareWrites();
    compareGrid();
    for (size_t i = 0; i < declared.size(); ++i)
      compareReads(i);
    return std::accumulate(found.begin(), found.end(), std::string());
  }

private:
  using Bytes = std::vector<std::vector<char>>; ///< of each region
  using Change = std::function<void(World &)>;

  Bytes after(char fill, const Change &change = {}) const {
    World world(body, declared, fill);
    if (change)
      change(world);
    world.run();
    Bytes bytes;
    for (Region &region : world.regions)
      bytes.push_back(std::move(region.bytes));
    return bytes;
  }
  void lie(const std::string &name, const std::string &what) { found.push_back(name + " " + what + "; "); }
  void compareWrites();
  void compareGrid();
  void compareForm(const Region &region, size_t index);
  void compareReads(size_t index);
  void compareRows(size_t index);
  std::set<int64_t> changedRows(const Bytes &other, size_t index, int64_t rowBytes) const;

  KernelBody body;
  std::vector<Operand> declared;
  std::vector<std::string> found;
  std::vector<std::vector<bool>> written; ///< bytes of each region
  Bytes base;
};

void Comparison::compareWrites() {
  World first(body, declared, fill), second(body, declared, char(~fill));
  base = after(fill);
  Bytes others = after(char(~fill));
  for (size_t i = 0; i < first.regions.size(); ++i) {
    const Region &region = first.regions[i];
    std::vector<bool> &mine = written.emplace_back(region.bytes.size());
    bool isDefined = true;
    for (size_t at = 0; at < mine.size(); ++at) {
      mine[at] = base[i][at] != region.bytes[at] || others[i][at] != second.regions[i].bytes[at];
      isDefined &= !mine[at] || base[i][at] == others[i][at];
    }
    bool isWritten = std::find(mine.begin(), mine.end(), true) != mine.end();
    bool isCapture = i >= declared.size(), mayLeave = region.effect.isRead() && !isCapture;
    if (isWritten && !region.effect.isWritten())
      lie(region.name, "is written");
    if (!isWritten && region.effect.isWritten() && !mayLeave)
      lie(region.name, "is not written");
    if (isWritten && !region.effect.isRead() && !isDefined)
      lie(region.name, "is read before it is written");
    if (isWritten && region.rowBytes > 0 && !isCapture && declared[i].role == Operand::Role::Result)
      compareForm(region, i);
  }
}

bool namesForm(FormFilter named, int32_t form) {
  return named == FormFilter::All ||
         named == (form == K2RT_FORM_EXPANDED ? FormFilter::Expanded : FormFilter::Absorbed);
}

/// Rows of the form that is declared are written, all of them, and no others.
void Comparison::compareForm(const Region &region, size_t index) {
  if (declared[index].rows.space != RowSpace::Token)
    return;
  World world(body, declared, fill);
  for (int64_t row = 0; row < region.rows(); ++row) {
    bool isNamed = row < world.step.rows() && namesForm(region.effect.rows(), world.step.rowForm[row]);
    if (written[index][row * region.rowBytes] != isNamed)
      return lie(region.name, "does not define the rows of its form, and these alone");
  }
}

/// Rows, or bytes where there are none, that are written and differ from `base`.
std::set<int64_t> Comparison::changedRows(const Bytes &other, size_t index, int64_t rowBytes) const {
  std::set<int64_t> rows;
  for (size_t at = 0; at < other[index].size(); ++at)
    if (written[index][at] && other[index][at] != base[index][at])
      rows.insert(rowBytes ? int64_t(at) / rowBytes : int64_t(at));
  return rows;
}

/// Row i is item i, as others count it, only where the grid counts these rows, and nothing else.
void Comparison::compareGrid() {
  KernelDesc desc{"kernel", body};
  Grid grid = gridOf(desc, chooseTile(desc, TargetInfo{}));
  for (const Operand &operand : declared)
    if (operand.effect.isByRow() &&
        (grid.space != operand.rows.space || grid.rowsPerItem == 0 || grid.itemsPerBlock != 1))
      lie(operand.name, "has rows that are no items");
}

void Comparison::compareReads(size_t index) {
  const Operand &operand = declared[index];
  if (operand.role == Operand::Role::Step || operand.role == Operand::Role::Layer)
    return;
  Bytes other = after(fill, [&](World &world) { world.change(index, -1); });
  bool matters = false;
  for (size_t i = 0; i < written.size(); ++i)
    matters |= i != index && !changedRows(other, i, 0).empty();
  if (matters != operand.effect.isRead())
    lie(operand.name, matters ? "is read" : "is not read");
  if (operand.effect.isByRow())
    compareRows(index);
}

/// Row i of the operand decides row i of results by row, and of all else what no other row decides.
void Comparison::compareRows(size_t index) {
  World world(body, declared, fill);
  std::vector<std::set<int64_t>> decided(world.regions.size());
  for (int64_t row = 0; row < world.regions[index].rows(); ++row) {
    Bytes other = after(fill, [&](World &changed) { changed.change(index, row); });
    for (size_t i = 0; i < world.regions.size(); ++i) {
      const Region &region = world.regions[i];
      bool inRows = region.effect.isByRow() && region.effect.isWritten();
      for (int64_t at : changedRows(other, i, inRows ? region.rowBytes : 0))
        if (i != index && (inRows ? at != row : !decided[i].insert(at).second))
          return lie(declared[index].name, "is not read row by row");
    }
  }
}

std::string liesOf(const KernelBody &body, const std::function<void(std::vector<Operand> &)> &plant = {}) {
  std::vector<Operand> declared = operands({"kernel", body});
  if (plant)
    plant(declared);
  return Comparison(body, declared).lies();
}

Matrix matrix(int64_t n, int64_t k, int64_t count = 1) { return {DType::F32, count, n, k}; }
Rows slots(int64_t width) { return rowsOf(width, DType::F32, RowSpace::Slot); }

LinearDesc fusedLinear() {
  LinearDesc d;
  d.x = rowsOf(32);
  d.y = d.residual = rowsOf(64);
  d.w = matrix(64, 32);
  d.order = {32, 1};
  d.normEps = 1e-6;
  d.normWeight = d.biasType = DType::F32;
  d.epilogue = epilogueOf(DType::F32, {LinearDesc::Bias, LinearDesc::Residual});
  return d;
}

LinearDesc groupedLinear() {
  LinearDesc d;
  d.x = d.y = slots(32);
  d.w = matrix(32, 32, experts);
  d.order = {32, 1};
  d.grouped = true;
  d.epilogue = epilogueOf(DType::F32, {LinearDesc::SlotWeight});
  d.slotsPerToken = topK;
  return d;
}

HeadLinearDesc headLinear() {
  HeadLinearDesc d{rowsOf(16), rowsOf(16), 2, 8, matrix(8, 8, 2), {8, 1}};
  d.rows = FormFilter::Absorbed;
  return d;
}

AttentionShape shape() { return {2, 0.5, 0, true, DType::F32}; }

ExpandedAttentionDesc expandedAttention() {
  ExpandedAttentionDesc d;
  d.shape = shape();
  d.latent = d.nope = d.value = 8;
  d.rope = 4;
  d.q = rowsOf(24);
  d.o = rowsOf(16);
  d.uk = d.uv = matrix(8, 8, 2);
  return d;
}

RoutingDesc selection() {
  RoutingDesc d;
  d.logits = rowsOf(experts);
  d.experts = experts;
  d.topK = topK;
  d.bias = true;
  return d;
}

RoutingDesc boundSelection() {
  RoutingDesc d = selection();
  d.bias = false; // a row chooses its node
  d.bound = {ranks, expertSlots, 1, 0};
  return d;
}

/// A body of each kind, in the order of KernelBody, and every part of a linear and of a router.
std::vector<KernelBody> bodies() {
  return {EmbedDesc{8, 6, DType::F32, rowsOf(6)},
          RmsNormDesc{rowsOf(6), rowsOf(6), 1e-6, DType::F32},
          fusedLinear(),
          headLinear(),
          RotaryDesc{rowsOf(8), rowsOf(8), 2, 4, 0, 4, 16, false},
          AppendDesc{{rowsOf(4), rowsOf(6)}, {DType::F32, DType::F32}},
          GqaAttentionDesc{shape(), 1, 8, 8, rowsOf(16), rowsOf(16)},
          AbsorbedAttentionDesc{shape(), 8, 4, rowsOf(16), rowsOf(8), rowsOf(16), 4},
          expandedAttention(),
          selection(),
          PermutationDesc{experts, topK},
          PermuteDesc{rowsOf(4), slots(4), experts, topK},
          UnpermuteDesc{slots(4), rowsOf(4), experts, topK, 4},
          addition(rowsOf(6), rowsOf(6), rowsOf(6)),
          clip(rowsOf(6), rowsOf(6), 0.5),
          gatedSilu(rowsOf(12), rowsOf(6)),
          OutputRowsDesc{rowsOf(4), rowsOf(4, DType::F32, RowSpace::Output)},
          CaptureDesc{rowsOf(4)},
          LocateDesc{experts, topK, 6, 3},
          RoutePlanDesc{experts, topK, ranks, expertSlots},
          PackDesc{rowsOf(4), topK},
          UnpackDesc{rowsOf(4), topK, ranks},
          ReturnPlanDesc{experts, topK, ranks, expertSlots},
          ReduceSubtreesDesc{slots(4), rowsOf(4), experts, topK, expertSlots, 4},
          MergeSubtreesDesc{rowsOf(4), rowsOf(4), experts, topK, expertSlots, 4},
          CombineDesc{rowsOf(4), rowsOf(4), experts, topK, 4},
          TokenIdsDesc{},
          LookupDesc{8, DType::F32, rowsOf(6)},
          SharePlanDesc{RowSpace::Token, ranks},
          CloseGapsDesc{rowsOf(4), ranks},
          ShareReturnDesc{ranks},
          JoinColumnsDesc{rowsOf(4), rowsOf(4 * ranks), ranks},
          PartPlanDesc{topK, ranks},
          AddPartsDesc{slots(4), slots(4), topK, ranks},
          BlockArgmaxDesc{rowsOf(12, DType::F32, RowSpace::Output), 5},
          GreedySampleDesc{rowsOf(12, DType::F32, RowSpace::Output), 4},
          groupedLinear(),
          boundSelection()};
}

Operand &named(std::vector<Operand> &list, const std::string &name) {
  return *std::find_if(list.begin(), list.end(), [&](const Operand &operand) { return operand.name == name; });
}

} // namespace

TEST(Effects, WhatIsDeclaredIsWhatEveryKernelDoes) {
  std::set<size_t> kinds;
  for (const KernelBody &body : bodies()) {
    EXPECT_EQ(liesOf(body), "") << "kernel " << body.index();
    kinds.insert(body.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<KernelBody>) << "a body has no example here";
}

// A lie in the list of any body, one for each thing that a list says.
TEST(Effects, APlantedLieIsReported) {
  auto lie = [](const KernelBody &body, const std::string &name, const Effect &effect) {
    return liesOf(body, [&](std::vector<Operand> &list) { named(list, name).effect = effect; });
  };
  std::vector<KernelBody> all = bodies();
  EXPECT_EQ(lie(AppendDesc{{rowsOf(4)}, {DType::F32}}, "plane0", Effect::reads()),
            "plane0 is written; plane0 is not read; ");
  EXPECT_EQ(lie(all[13], "input0", Effect::none()), "input0 is read; ");
  EXPECT_EQ(lie(all[13], "y", Effect::destroys()), "y is not read; ");
  EXPECT_EQ(lie(ReturnPlanDesc{experts, topK, ranks, expertSlots}, "held", Effect::none()), "held is read; ");
  EXPECT_EQ(lie(fusedLinear(), "x", Effect::reads().byRow()), "x has rows that are no items; ");
  for (size_t moves : {12, 16}) // of slots, and of output rows
    EXPECT_EQ(lie(all[moves], "x", Effect::reads().byRow()),
              "x has rows that are no items; x is not read row by row; ");
  EXPECT_EQ(lie(selection(), "step", Effect::captures({Capture::Experts})), "capture of weights is written; ");
  EXPECT_EQ(lie(CaptureDesc{rowsOf(4)}, "step", Effect::captures({Capture::Hidden, Capture::MaxLogit})),
            "capture of the largest logits is not written; ");
  EXPECT_EQ(lie(GreedySampleDesc{rowsOf(12, DType::F32, RowSpace::Output), 4}, "step", Effect::reads()),
            "samples is written; ");
  for (FormFilter form : {FormFilter::All, FormFilter::Expanded})
    EXPECT_EQ(lie(headLinear(), "y", Effect::writes(form)),
              "y does not define the rows of its form, and these alone; ");
}
