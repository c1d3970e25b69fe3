//===- SweepTest.cpp - Every kernel in steps of every kind, looked at for races -------------------------===//
//
// A kernel of each kind that a description can be of, for warps of an emulated GPU, in twenty steps: no rows, tails of
// tiles, all tokens at one expert, contexts around a page and beyond 4,096, pages anywhere. Each is launched under ten
// seeds, on one to three CTAs, with races looked for; nothing may be found, and what is left in memory has the bits
// that evaluate() leaves. Without K2C_SWEEP in the environment each kernel has a few of these launches, other ones than
// the kernel before.
//
//===----------------------------------------------------------------------===//
#include "EffectsWorld.h"
#include "EmitTest.h"
#include "GpuKernel.h"
#include "Lists.h"
#include <cstdlib>
#include <numeric>
#include <set>

namespace k2c::test {
namespace {

/// A kernel, and the largest step that its attention is split in.
struct Entry {
  std::string name;
  KernelBody body;
  int64_t splitTokens = 0;
};

constexpr int64_t longest = 4200; ///< positions

Rows slots(int64_t width, DType type = DType::F32) { return rowsOf(width, type, RowSpace::Slot); }

/// With `gap` elements between rows: without, rows of whole 16 bytes are aligned, which is other code.
LinearDesc linear(DType x, DType w, int64_t n, int64_t k, int64_t gap = 0) {
  LinearDesc d;
  d.x = {RowSpace::Token, k, k + gap, x};
  d.y = {RowSpace::Token, n, n + 1, x};
  d.w = Matrix{w, 1, n, k};
  d.order = {k, leafCount(k)};
  return d;
}

LinearDesc joinedLinear() {
  LinearDesc d = linear(DType::F32, DType::BF16, 70, 192);
  d.normEps = 1e-6;
  d.epilogue = epilogueOf(DType::F32, {LinearDesc::Bias, LinearDesc::Residual});
  d.residual = {RowSpace::Token, 70, 72, DType::F32};
  return d;
}

LinearDesc gatedLinear(DType type) {
  LinearDesc d = linear(type, DType::BF16, 2 * 48, 96);
  d.w.parts = 2;
  d.y = rowsOf(48, type);
  d.epilogue = epilogueOf(type, {LinearDesc::UpSum});
  return d;
}

LinearDesc scaledLinear() {
  LinearDesc d = linear(DType::F32, DType::F8E4M3, 70, 200);
  d.w.blockColumns = d.w.blockRows = 64;
  return d;
}

/// Of experts: gate and up, or down.
LinearDesc groupedLinear(DType type, DType w, bool isGated) {
  LinearDesc d = linear(type, w, isGated ? 2 * 33 : 40, isGated ? 40 : 34);
  d.x.space = d.y.space = RowSpace::Slot;
  d.w.count = experts;
  d.grouped = true;
  d.slotsPerToken = topK;
  if (w == DType::F8E4M3)
    d.w.blockColumns = d.w.blockRows = 16;
  if (isGated) {
    d.w.parts = 2;
    d.y = slots(33, type);
  }
  d.epilogue = epilogueOf(type, {isGated ? LinearDesc::UpSum : LinearDesc::SlotWeight});
  return d;
}

/// As many as a CTA has warps.
LinearDesc manyLeaves(LinearDesc d) {
  d.x = {d.x.space, 2048, 2048, d.x.type};
  d.w.k = 2048;
  d.order = {2048, leafCount(2048)};
  return d;
}

HeadLinearDesc headLinear(DType type, FormFilter rows) {
  HeadLinearDesc d{rowsOf(3 * 40, type), rowsOf(3 * 33, type), 3, 40, {DType::BF16, 3, 33, 40}, {40, 1}};
  d.rows = rows;
  return d;
}

AttentionShape shape(int64_t heads, DType cache) { return {heads, 0.5, 0, true, cache}; }

GqaAttentionDesc grouped(DType type) { return {shape(4, type), 2, 24, 20, rowsOf(4 * 24, type), rowsOf(4 * 20, type)}; }

AbsorbedAttentionDesc absorbed(DType type) {
  return {shape(5, type), 36, 8, rowsOf(5 * 36, type), rowsOf(5 * 8, type), rowsOf(5 * 36, type), 8};
}

ExpandedAttentionDesc expanded(DType type, DType cache) {
  ExpandedAttentionDesc d;
  d.shape = shape(3, cache);
  d.latent = 40;
  d.nope = 20;
  d.rope = 6;
  d.value = 35;
  d.q = rowsOf(3 * 26, type);
  d.o = rowsOf(3 * 35, type);
  d.uk = {DType::BF16, 3, 20, 40};
  d.uv = {DType::BF16, 3, 35, 40};
  return d;
}

RoutingDesc routing(int64_t experts, int64_t topK, int64_t groups, Scoring scoring) {
  RoutingDesc d;
  d.logits = rowsOf(experts);
  d.experts = experts;
  d.topK = topK;
  d.groups = groups;
  d.topkGroups = (groups + 1) / 2;
  d.scoring = scoring;
  d.bias = scoring == Scoring::Sigmoid;
  return d;
}

RoutingDesc boundRouting() {
  RoutingDesc d = routing(experts, topK, 1, Scoring::Softmax);
  d.bound = {ranks, expertSlots, 1, 0};
  return d;
}

std::vector<Entry> ofRows() {
  return {{"embed", EmbedDesc{8, 70, DType::BF16, rowsOf(70)}},
          {"embed_bf16", EmbedDesc{8, 70, DType::BF16, rowsOf(70, DType::BF16)}},
          {"rms_norm", RmsNormDesc{rowsOf(70), rowsOf(70), 1e-6, DType::BF16}},
          {"rms_norm_heads", RmsNormDesc{rowsOf(99, DType::BF16), rowsOf(99, DType::BF16), 1e-6, DType::F32, 3}},
          {"rotary", RotaryDesc{rowsOf(60), rowsOf(60), 3, 20, 4, 16, longest}},
          {"rotary_interleaved", RotaryDesc{rowsOf(60), rowsOf(60), 3, 20, 0, 20, longest, true}},
          {"append", AppendDesc{{rowsOf(36), rowsOf(7)}, {DType::F32, DType::BF16}}},
          {"add", addition(rowsOf(70, DType::BF16), rowsOf(70, DType::BF16), rowsOf(70, DType::BF16))},
          {"clip", clip(rowsOf(33), rowsOf(33), 0.5)},
          {"gated_silu", gatedSilu(slots(66), slots(33), topK)},
          {"output_rows", OutputRowsDesc{rowsOf(70), rowsOf(70, DType::F32, RowSpace::Output)}},
          {"capture", CaptureDesc{rowsOf(40, DType::BF16)}},
          {"token_ids", TokenIdsDesc{}},
          {"lookup", LookupDesc{8, DType::F32, rowsOf(70)}},
          {"block_argmax", BlockArgmaxDesc{rowsOf(170, DType::F32, RowSpace::Output), 48}},
          {"block_argmax_whole", BlockArgmaxDesc{rowsOf(128, DType::F32, RowSpace::Output), 64}},
          {"greedy_sample", GreedySampleDesc{rowsOf(170, DType::F32, RowSpace::Output), 35}}};
}

std::vector<Entry> ofMatrices() {
  return {{"linear", linear(DType::F32, DType::F32, 33, 132)},
          {"linear_gaps", linear(DType::F32, DType::F32, 33, 130, 3)},
          {"linear_pairs_gaps", linear(DType::BF16, DType::BF16, 40, 131, 1)},
          {"linear_pairs", linear(DType::BF16, DType::BF16, 3 * 32 + 5, 256)},
          {"linear_leaves", linear(DType::F32, DType::BF16, 64, 1030)},
          {"linear_four_leaves", linear(DType::F32, DType::F32, 40, 2177, 2)},
          {"linear_eight_leaves_pairs", linear(DType::BF16, DType::BF16, 33, 4096)},
          {"linear_joined", joinedLinear()},
          {"linear_gated", gatedLinear(DType::F32)},
          {"linear_gated_pairs", gatedLinear(DType::BF16)},
          {"linear_scaled", scaledLinear()},
          {"experts", groupedLinear(DType::F32, DType::BF16, true)},
          {"experts_pairs", groupedLinear(DType::BF16, DType::BF16, true)},
          {"experts_down", groupedLinear(DType::F32, DType::BF16, false)},
          {"experts_leaves", manyLeaves(groupedLinear(DType::BF16, DType::BF16, true))},
          {"experts_scaled", groupedLinear(DType::F32, DType::F8E4M3, true)},
          {"head_linear", headLinear(DType::F32, FormFilter::All)},
          {"head_linear_absorbed", headLinear(DType::BF16, FormFilter::Absorbed)}};
}

std::vector<Entry> ofCaches() {
  return {{"gqa", grouped(DType::F32)},
          {"gqa_pairs", grouped(DType::BF16)},
          {"gqa_split", grouped(DType::F32), 20},
          {"absorbed", absorbed(DType::F32)},
          {"absorbed_pairs", absorbed(DType::BF16)},
          {"absorbed_split", absorbed(DType::BF16), 20},
          {"expanded", expanded(DType::F32, DType::F32)},
          {"expanded_mixed", expanded(DType::F32, DType::BF16)},
          {"expanded_pairs", expanded(DType::BF16, DType::BF16)}};
}

std::vector<Entry> ofRoutes() {
  return {{"routing_groups", routing(24, 4, 6, Scoring::Sigmoid)},
          {"routing", routing(37, 8, 1, Scoring::Softmax)},
          {"routing_bound", boundRouting()},
          {"permutation", PermutationDesc{61, 6}},
          {"permutation_few", PermutationDesc{experts, topK}},
          {"permute", PermuteDesc{rowsOf(70), slots(70), experts, topK}},
          {"unpermute", UnpermuteDesc{slots(70), rowsOf(70), experts, topK, 4}},
          {"unpermute_bf16", UnpermuteDesc{slots(33, DType::BF16), rowsOf(33, DType::BF16), experts, topK, 2}}};
}

std::vector<Entry> ofExchanges() {
  return {{"locate", LocateDesc{experts, topK, 6, 3}},
          {"route_plan", RoutePlanDesc{experts, topK, ranks, expertSlots}},
          {"pack", PackDesc{rowsOf(33), topK}},
          {"unpack", UnpackDesc{rowsOf(33), topK, ranks}},
          {"return_plan", ReturnPlanDesc{experts, topK, ranks, expertSlots}},
          {"reduce_subtrees", ReduceSubtreesDesc{slots(33), rowsOf(33), experts, topK, expertSlots, 4}},
          {"merge_subtrees", MergeSubtreesDesc{rowsOf(33), rowsOf(33), experts, topK, expertSlots, 4}},
          {"combine", CombineDesc{rowsOf(33), rowsOf(33), experts, topK, 4}},
          {"share_plan", SharePlanDesc{RowSpace::Token, ranks}},
          {"close_gaps", CloseGapsDesc{rowsOf(33), ranks}},
          {"share_return", ShareReturnDesc{ranks}},
          {"join_columns", JoinColumnsDesc{rowsOf(33), rowsOf(33 * ranks), ranks}},
          {"part_plan", PartPlanDesc{topK, ranks}},
          {"add_parts", AddPartsDesc{slots(33), slots(33), topK, ranks}}};
}

const std::vector<Entry> &entries() {
  static const std::vector<Entry> all = [] {
    std::vector<Entry> made;
    for (const auto &list : {ofRows(), ofMatrices(), ofCaches(), ofRoutes(), ofExchanges()})
      made.insert(made.end(), list.begin(), list.end());
    return made;
  }();
  return all;
}

/// Rows of the form that `body` is of, but for those of the second of several sequences; pages anywhere.
Scene sceneOf(const KernelBody &body, std::vector<Sequence> sequences, Choices choices, uint64_t seed) {
  const auto *heads = std::get_if<HeadLinearDesc>(&body);
  const bool isAbsorbed =
      std::holds_alternative<AbsorbedAttentionDesc>(body) || (heads && heads->rows == FormFilter::Absorbed);
  std::vector<int32_t> pages(size_t(TestStep::pageCount));
  std::iota(pages.begin(), pages.end(), 0);
  Random random(seed);
  for (size_t i = 0; i + 1 < pages.size(); ++i)
    std::swap(pages[i], pages[i + size_t(random.below(int64_t(pages.size() - i)))]);
  auto free = pages.begin();
  for (size_t i = 0; i < sequences.size(); ++i) {
    sequences[i].form = isAbsorbed != (i == 1) ? K2RT_FORM_ABSORBED : K2RT_FORM_EXPANDED;
    const int64_t used = (sequences[i].cached + sequences[i].rows + 63) / 64;
    EXPECT_LE(used, pages.end() - free) << "a page has one sequence";
    sequences[i].pages.assign(free, free + used);
    free += used;
  }
  return {std::move(sequences), choices};
}

/// Twenty steps, as {tokens that a sequence has, rows} of each sequence.
std::vector<Scene> scenesOf(const KernelBody &body) {
  const std::vector<std::pair<std::vector<Sequence>, Choices>> all = {
      {{}, Choices::Neighbours},
      {{{0, 1}}, Choices::Neighbours},
      {{{0, 2}}, Choices::Some},
      {{{0, 17}}, Choices::One},
      {{{0, 63}}, Choices::Neighbours},
      {{{0, 64}}, Choices::Some},
      {{{0, 65}}, Choices::Some},
      {{{0, 65}}, Choices::One},
      {{{0, 130}}, Choices::Some},
      {{{0, 1}, {0, 0}, {0, 1}, {0, 33}}, Choices::One},
      {{{63, 1}}, Choices::One},
      {{{64, 1}}, Choices::Some},
      {{{63, 2}, {64, 1}, {65, 1}}, Choices::Some},
      {{{62, 5}, {0, 9}, {63, 1}}, Choices::One},
      {{{0, 1}, {63, 1}, {64, 1}, {1023, 1}, {1024, 1}}, Choices::Some},
      {{{1020, 9}, {100, 3}}, Choices::Some},
      {{{2047, 1}, {3, 1}}, Choices::Neighbours},
      {{{4096, 1}}, Choices::Some},
      {{{4095, 2}, {64, 1}, {0, 1}}, Choices::Some},
      {{{4093, 4}, {63, 63}}, Choices::One},
  };
  std::vector<Scene> scenes;
  for (const auto &[sequences, choices] : all)
    scenes.push_back(sceneOf(body, sequences, choices, scenes.size() + 1));
  return scenes;
}

constexpr char fill = 0x11;

/// What regions hold, but for those that are destroyed.
std::vector<std::vector<char>> left(World &world) {
  std::vector<std::vector<char>> bytes;
  for (size_t i = 0; i < world.regions.size(); ++i)
    if (i >= world.arguments.size() || world.arguments[i].role == Operand::Role::Result ||
        !world.arguments[i].effect.isWritten() || world.arguments[i].role == Operand::Role::Plane)
      bytes.push_back(std::move(world.regions[i].bytes));
  return bytes;
}

class KernelSweep : public testing::TestWithParam<size_t> {
protected:
  void SetUp() override { useTarget(EmitTarget::GpuWarps); }

  const Entry &entry() const { return entries()[GetParam()]; }
  void compare(const Scene &scene, size_t number, const std::vector<uint64_t> &seeds) {
    const std::vector<Operand> arguments = operands({entry().name, entry().body});
    World expected(entry().body, arguments, fill, scene);
    expected.run();
    const std::vector<std::vector<char>> wanted = left(expected);
    for (const uint64_t seed : seeds) {
      World world(entry().body, arguments, fill, scene);
      const StrictLaunches strict(seed);
      world.run([&](const KernelDesc &desc, const k2rt_ir_step &step, const std::vector<void *> &args) {
        const Expected<CompiledKernel> kernel = compileForTarget(desc, entry().splitTokens);
        ASSERT_TRUE(kernel) << kernel.error().text();
        EXPECT_EQ(launchAll(*kernel, desc, step, args, int64_t(1 + seed % 3)), 0);
      });
      EXPECT_TRUE(left(world) == wanted) << entry().name << ", step " << number << ", seed " << seed;
    }
  }
};

TEST_P(KernelSweep, NothingIsFoundAndBitsAreThoseOfTheScalarReading) {
  const bool isWhole = std::getenv("K2C_SWEEP") != nullptr;
  const std::vector<Scene> scenes = scenesOf(entry().body);
  ASSERT_EQ(scenes.size(), 20u);
  std::vector<uint64_t> seeds(10);
  std::iota(seeds.begin(), seeds.end(), 1);
  for (size_t number = 0; number < scenes.size(); ++number)
    if (isWhole)
      compare(scenes[number], number, seeds);
    else if ((number + GetParam()) % 5 == 0)
      compare(scenes[number], number, {1 + (number + GetParam()) % 7});
}

INSTANTIATE_TEST_SUITE_P(Kernels, KernelSweep, testing::Range(size_t(0), entries().size()),
                         [](const auto &info) { return entries()[info.param].name; });

TEST(KernelSweepEntries, EveryKindHasOne) {
  std::set<size_t> kinds;
  for (const Entry &entry : entries())
    kinds.insert(entry.body.index());
  EXPECT_EQ(kinds.size(), std::variant_size_v<KernelBody>) << "a kernel of a new kind has no entry here";
}

} // namespace
} // namespace k2c::test
