//===- PlannerTest.cpp - Certificates, refusals, remarks ----------------------===//
#include "k2c/Planner/Planner.h"
#include "TestModels.h"
#include "k2c/Planner/ComputeType.h"
#include <map>

using namespace k2c;
using namespace k2c::test;

namespace {

Plan planned(const ModelSpec &spec, const Limits &limits, const PlanOptions &options = {},
             const MeasuredSizes &measured = {}) {
  Expected<Plan> plan = planHost(spec, machine(gibibytes(1 << 14)), limits, options, measured);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().text());
  return plan ? *plan : Plan();
}

std::string refusal(const ModelSpec &spec, const Topology &topology, const Limits &limits,
                    const MeasuredSizes &measured = {}) {
  Expected<Plan> plan = planHost(spec, topology, limits, {}, measured);
  EXPECT_FALSE(plan);
  return plan ? "" : plan.error().text();
}

Limits limits(int64_t stepTokens, int64_t maxSequences, int64_t maxContext) {
  Limits result;
  result.stepTokens = stepTokens;
  result.maxSequences = maxSequences;
  result.maxContext = maxContext;
  return result;
}

} // namespace

TEST(ChooseCompute, FollowsMostElementsOfTheCheckpoint) {
  ModelSpec spec = tinyLlama();
  EXPECT_EQ(chooseCompute(spec, Bf16Unit::Avx512).type, DType::BF16);
  EXPECT_EQ(chooseCompute(spec, Bf16Unit::None).type, DType::F32);
  for (WeightFamily &family : spec.weights)
    if (family.shape.size() == 1)
      family.dtype = DType::F32;
  EXPECT_EQ(chooseCompute(spec, Bf16Unit::Avx512).reason,
            "the checkpoint is stored as bf16 and the target has AVX512-BF16");
  for (WeightFamily &family : spec.weights)
    if (family.shape.size() == 2)
      family.dtype = DType::F32;
  EXPECT_EQ(chooseCompute(spec, Bf16Unit::Avx512).reason, "the checkpoint is stored as f32");
}

TEST(ChooseCompute, OfNarrowedWeightsFollowsTheSource) {
  ModelSpec spec = tinyLlama();
  for (const WeightFamily &family : spec.weights)
    spec.narrowed.push_back(family.id);
  EXPECT_EQ(chooseCompute(spec, Bf16Unit::Avx512).reason, "the checkpoint is stored as f32");
}

TEST(Plan, DefaultLimits) {
  EXPECT_EQ(defaultLimits(published("kimi-k2")).maxContext, 8192);
  Limits tiny = defaultLimits(tinyLlama());
  EXPECT_EQ(tiny.maxContext, 256);
  EXPECT_EQ(tiny.stepTokens, 2048);
  EXPECT_EQ(tiny.maxSequences, 16);
  EXPECT_EQ(tiny.pages(), 16 * 4);
}

// Each blob is rounded up to 4096 bytes; a panel is 32 columns of bf16.
TEST(Plan, WeightsToTheByte) {
  Plan plan = planned(tinyLlama(), limits(64, 2, 256));
  std::map<std::string, int64_t> expected = {
      {"embed", 16384},         // 100 * 64 * 2 = 12800
      {"attention_norm", 8192}, // 2 layers * 64 * 2 = 128 each
      {"q", 16384},             // 2 layers * 2 panels * 64 * 64
      {"k", 8192},              // 2 layers * 1 panel
      {"v", 8192},              // as k
      {"o", 16384},             // as q
      {"mlp_norm", 8192},       // as attention_norm
      {"gate_up", 49152},       // 2 layers * 96 / 16 panels * 64 * 64
      {"down", 24576},          // 2 layers * 2 panels * 96 * 64
      {"final_norm", 4096},     // 128
      {"head", 16384},          // 100 columns are 4 panels * 64 * 64
      {"rope", 16384},          // 256 positions * 16 * 4
  };
  EXPECT_EQ(familyBytes(plan), expected);
  EXPECT_EQ(plan.memory.weights, Bytes(192512));
}

TEST(Plan, TiedEmbeddingsArePackedTwice) {
  Plan plan = planned(tinyLlama(true), limits(64, 2, 256));
  EXPECT_EQ(familyBytes(plan)["embed"], 16384);
  EXPECT_EQ(familyBytes(plan)["head"], 16384);
}

TEST(Plan, OnlyTheFormsOfLatentAttentionThatRunArePacked) {
  ModelSpec spec = published("kimi-k2");
  PlanOptions options;
  auto names = [&](MlaForms forms) {
    options.mla = forms;
    std::string text;
    for (const auto &[name, bytes] : familyBytes(planned(spec, defaultLimits(spec), options)))
      if (name.rfind("kv_b", 0) == 0)
        text += name + " " + std::to_string(bytes / 61) + " ";
    return text;
  };
  // FP8: 64 heads * 4 panels * (512 * 32 + 64 with the scales); absorbed: 64 heads * 16 panels * (128 * 32 + 64).
  EXPECT_EQ(names(MlaForms::Expanded), "kv_b.uk 4210688 kv_b.uv 4210688 ");
  EXPECT_EQ(names(MlaForms::Absorbed), "kv_b.uk_absorbed 4259840 kv_b.uv 4210688 ");
  EXPECT_EQ(names(MlaForms::Phased), "kv_b.uk 4210688 kv_b.uk_absorbed 4259840 kv_b.uv 4210688 ");
}

TEST(Plan, CacheAndLogits) { // 2 layers * (k 32 + v 32) * 4 bytes a token
  Plan plan = planned(tinyLlama(), limits(64, 2, 256));
  EXPECT_EQ(plan.cachePerToken, Bytes(512));
  EXPECT_EQ(plan.memory.cache, Bytes(512 * 2 * 256));
  EXPECT_EQ(planned(tinyLlama(), limits(64, 2, 65)).memory.cache, Bytes(512 * 2 * 128)) << "whole pages";
  EXPECT_EQ(plan.memory.logits, Bytes(2 * 100 * 4));
  ASSERT_EQ(plan.cache.size(), 2u);
  EXPECT_EQ(plan.cache[1].plane, "v");
  EXPECT_EQ(plan.cache[1].width, 32);
  EXPECT_EQ(plan.cache[1].pages, 8);
}

TEST(Plan, LatentCacheHasTwoPlanes) {
  ModelSpec spec = published("deepseek-v3");
  Plan plan = planned(spec, limits(2048, 1, 64));
  ASSERT_EQ(plan.cache.size(), 2u);
  EXPECT_EQ(plan.cache[0].plane, "latent");
  EXPECT_EQ(plan.cache[0].width, 512);
  EXPECT_EQ(plan.cache[1].width, 64);
  EXPECT_EQ(plan.cachePerToken, Bytes(61 * 576 * 4));
}

TEST(Plan, WhatTheCompilerKnowsIsAdded) {
  MeasuredSizes measured;
  measured.arena = Bytes(2000);
  measured.scratchPerWorker = Bytes(300);
  Plan plan = planned(tinyLlama(), limits(64, 2, 256), {}, measured);
  const MemoryCertificate &m = plan.memory;
  EXPECT_EQ(m.weights, Bytes(192512)) << "counted, as above";
  EXPECT_EQ(m.arena, Bytes(2000));
  EXPECT_EQ(m.scratch, Bytes(600)) << "two workers";
  EXPECT_EQ(m.total(), Bytes(2600) + m.weights + m.cache + m.logits + m.reserve);
}

/// A rank of eight has an eighth of the experts, all else as if it were alone, and what it exchanges.
TEST(Plan, ARankOfSeveralHasItsSlots) {
  const ModelSpec spec = published("olmoe-1b-7b"); // 64 experts
  Topology topology = *loadTopology("cpu4x2");
  topology.device.memory.value = gibibytes(1 << 14);
  Topology alone = topology;
  alone.tiers.clear();
  PlanOptions options;
  options.layout = compileLayout(spec, topology);
  const Expected<Plan> several = planHost(spec, topology, limits(64, 2, 128), options);
  const Expected<Plan> one = planHost(spec, alone, limits(64, 2, 128));
  ASSERT_TRUE(several && one);
  EXPECT_EQ(several->ranks, 8);
  EXPECT_EQ(several->expertSlots, 8);
  EXPECT_EQ(one->expertSlots, 64);
  EXPECT_EQ(several->expertBytes, one->expertBytes);
  EXPECT_EQ(several->memory.weights + Bytes(56 * one->expertBytes.value), one->memory.weights);
  EXPECT_EQ(several->memory.cache, one->memory.cache);
  EXPECT_EQ(several->memory.logits, one->memory.logits);
  EXPECT_EQ(one->memory.collectives, Bytes(0));
  // 16 layers have two tables of 64 experts.
  EXPECT_EQ(one->memory.reserve - several->memory.reserve, Bytes(16 * 2 * 56 * 512));
  EXPECT_EQ(several->remarks[0].text, "8 ranks of topology 'cpu4x2' as ep=8,dp=8: sequences of their own, and 8 slots "
                                      "each for the 64 experts of a layer");
  EXPECT_NE(several->remarks[1].text.find("the fullest rank needs "), std::string::npos) << several->remarks[1].text;
}

/// k2rt/reserve.h: rank 0 keeps the arrays and the record of a step and its samples for each rank, every rank a record
/// and its samples, and a process of ranks the arrays of MPI, whose are the larger of what transports keep.
TEST(Plan, CollectivesToTheByte) {
  const ModelSpec spec = published("olmoe-1b-7b");
  Topology topology = *loadTopology("cpu2x1");
  topology.device.memory.value = gibibytes(1 << 14);
  PlanOptions options;
  options.layout = compileLayout(spec, topology);
  const Expected<Plan> plan = planHost(spec, topology, limits(64, 3, 130), options);
  ASSERT_TRUE(plan);
  const int64_t rows = 64 * (24 + 8), sequences = 3 * 1024, tables = 2 * 3 * 3 * 4;
  const int64_t record = rows + sequences + tables + 3 * (130 + 1) * 4 + 64 * 18, samples = 64 * 4;
  const int64_t halves = 64 * 8 + (3 + 1) * 8 + 3 * 4;
  const int64_t library = 2560 * 1024;
  EXPECT_EQ(plan->memory.collectives.value,
            library + 256 * 1024 + 2 * (2 * record + samples) + record + samples + halves);
}

/// k2rt/reserve.h with 3 sequences of at most 130 tokens, steps of 64 and a vocabulary of 100; 4.3 bytes were measured
/// for each byte of a tokenizer's file, 5 are kept.
TEST(Plan, ReserveToTheByte) {
  MeasuredSizes measured;
  measured.tokenizerFile = Bytes(1000);
  const int64_t process = 576 * 1024 + 100 * 4;             // and a row of logits that is printed
  const int64_t rows = 64 * (24 + 8), sequences = 3 * 1024; // ids, forms, slots; parameters and state of each
  const int64_t tables = 2 * 3 * 3 * 4;                     // three pages of 64 tokens a sequence; lists as large
  const int64_t history = 3 * (130 + 1) * 4, alignment = 64 * 18;
  const int64_t tokenizer = 5 * 1000;
  const int64_t workers = 2 * (8 * 1024 + 100 * 8); // two cores: a stack, and a sampler's weight and id of each logit
  const MemoryCertificate memory = planned(tinyLlama(), limits(64, 3, 130), {}, measured).memory;
  EXPECT_EQ(memory.reserve.value, process + rows + sequences + tables + history + alignment + tokenizer + workers);
}

// 60 layers of kimi-k2 have two tables of 384 experts: what their entries take was measured, 440 bytes each.
TEST(Plan, ReserveCountsExperts) {
  const ModelSpec kimi = published("kimi-k2");
  ModelSpec dense = kimi;
  for (WeightFamily &family : dense.weights)
    family.experts = 0;
  const auto reserveOf = [](const ModelSpec &spec) { return planned(spec, limits(64, 3, 130)).memory.reserve.value; };
  EXPECT_EQ(reserveOf(kimi) - reserveOf(dense), 60 * 2 * 384 * 512);
}

TEST(Plan, RemarksSayWhy) {
  ModelSpec spec = published("kimi-k2");
  Plan plan = planned(spec, defaultLimits(spec));
  EXPECT_EQ(plan.expandedFrom, 171);
  ASSERT_EQ(plan.remarks.size(), 4u);
  EXPECT_EQ(plan.remarks[0].pass, "absorb-mla");
  EXPECT_EQ(plan.remarks[0].text, "prompt segments of 171 new tokens and more run expanded, others absorbed: both cost "
                                  "the same at 170.7 tokens on many keys");
  EXPECT_EQ(plan.remarks[1].metrics[0].first, "total_bytes");
  EXPECT_EQ(plan.remarks[1].metrics[0].second, double(plan.memory.total().value));
  EXPECT_NE(plan.remarks[3].text.find("50 GB/s, a test"), std::string::npos) << plan.remarks[3].text;
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

/// The limits that a refusal says fit.
void readLimitsThatFit(const std::string &text, long &context, long &sequences) {
  size_t at = text.find("lower --max-context");
  ASSERT_NE(at, std::string::npos) << text;
  ASSERT_EQ(std::sscanf(text.c_str() + at, "lower --max-context to at most %ld or --max-sequences to at most %ld",
                        &context, &sequences),
            2)
      << text;
}

TEST(PlanRefuses, MemoryThatDoesNotFitAndNamesLimitsThatDo) {
  ModelSpec spec = tinyLlama();
  Limits wanted = limits(64, 16, 256);
  Bytes needed = planned(spec, wanted).memory.total();
  Topology small = machine(needed - Bytes(600 << 10)); // of a cache of 2 MiB
  std::string text = refusal(spec, small, wanted);
  EXPECT_NE(text.find(" = " + formatCount(needed.value) + " bytes of "), std::string::npos) << text;
  EXPECT_EQ(text.find("--output-rows"), std::string::npos) << text;
  long context = 0, sequences = 0;
  ASSERT_NO_FATAL_FAILURE(readLimitsThatFit(text, context, sequences));
  EXPECT_TRUE(planHost(spec, small, limits(64, 16, context)));
  EXPECT_FALSE(planHost(spec, small, limits(64, 16, context + 1)));
  EXPECT_TRUE(planHost(spec, small, limits(64, sequences, 256)));
  EXPECT_FALSE(planHost(spec, small, limits(64, sequences + 1, 256)));
}

TEST(PlanRefuses, RowsOfLogitsThatDoNotFitAndNamesHowManyDo) {
  ModelSpec spec = tinyLlama();
  spec.vocab = 65536; // 256 KiB a row
  Limits wanted = limits(64, 16, 256);
  wanted.outputRows = 64;
  Topology small = machine(planned(spec, wanted).memory.total() - Bytes(4 << 20)); // more than the cache has
  std::string text = refusal(spec, small, wanted);
  EXPECT_NE(text.find("available (a test); lower --output-rows to at most 48"), std::string::npos) << text;
  wanted.outputRows = 48;
  EXPECT_TRUE(planHost(spec, small, wanted));
  wanted.outputRows = 49;
  EXPECT_FALSE(planHost(spec, small, wanted));
}

TEST(PlanRefuses, SaysThatNoLimitIsEnoughAlone) {
  ModelSpec spec = tinyLlama();
  spec.vocab = 65536;
  Limits wanted = limits(64, 16, 256), fewer = limits(64, 1, 1);
  wanted.outputRows = 64;
  fewer.outputRows = 1;
  const Bytes least = planned(spec, fewer).memory.total();
  std::string text = refusal(spec, machine(least), wanted);
  EXPECT_NE(text.find("none of the limits is enough alone: lower --max-context, --max-sequences and --output-rows "
                      "together; one sequence of one token takes " +
                      format(least)),
            std::string::npos)
      << text;
  text = refusal(spec, machine(least - Bytes(1)), wanted);
  EXPECT_NE(text.find("; one sequence of one token takes " + format(least) + ": lower --step-tokens, or choose"),
            std::string::npos)
      << text;
}

TEST(PlanRefuses, LimitsThatFitBesideWhatTheCompilerKnows) {
  ModelSpec spec = tinyLlama();
  Limits wanted = limits(64, 16, 256);
  MeasuredSizes measured;
  measured.arena = Bytes(5 << 20);
  Bytes needed = planHost(spec, machine(gibibytes(1)), wanted, {}, measured)->memory.total();
  Topology small = machine(needed - Bytes(600 << 10));
  std::string text = planHost(spec, small, wanted, {}, measured).error().text();
  long context = 0, sequences = 0;
  ASSERT_NO_FATAL_FAILURE(readLimitsThatFit(text, context, sequences));
  auto fits = [&](Limits asked) { return bool(planHost(spec, small, asked, {}, measured)); };
  EXPECT_TRUE(fits(limits(64, 16, context)));
  EXPECT_FALSE(fits(limits(64, 16, context + 1)));
  EXPECT_TRUE(fits(limits(64, sequences, 256)));
  EXPECT_FALSE(fits(limits(64, sequences + 1, 256)));
}

TEST(PlanRefuses, AnArenaThatNeverFits) {
  ModelSpec spec = tinyLlama();
  MeasuredSizes measured;
  measured.arena = gibibytes(2);
  EXPECT_NE(planHost(spec, machine(gibibytes(1)), limits(64, 16, 256), {}, measured)
                .error()
                .text()
                .find("; one sequence of one token takes 2.00 GiB (2.1"),
            std::string::npos);
}

TEST(PlanRefuses, OneByteTooLittle) {
  ModelSpec spec = tinyLlama();
  Bytes needed = planned(spec, limits(64, 16, 256)).memory.total();
  EXPECT_TRUE(planHost(spec, machine(needed), limits(64, 16, 256)));
  EXPECT_FALSE(planHost(spec, machine(needed - Bytes(1)), limits(64, 16, 256)));
}

TEST(PlanRefuses, WeightsThatNeverFit) {
  ModelSpec spec = published("kimi-k2");
  std::string text = refusal(spec, machine(gibibytes(24)), defaultLimits(spec));
  EXPECT_NE(text.find(" of 24.00 GiB (25.77 GB) = 25,769,803,776 bytes available (a test); the weights alone take "),
            std::string::npos)
      << text;
}

TEST(PlanRefuses, LayoutsThatDoNotCompile) {
  const ModelSpec spec = published("olmoe-1b-7b");
  EXPECT_EQ(refusal(spec, *loadTopology("cpu2x1"), defaultLimits(spec)),
            "--layout: ep is 1, topology 'cpu2x1' has 2 ranks, and in this build programs are of all of them; use "
            "ep=2,dp=2");
}

TEST(PlanRefuses, MemoryOfARankThatDoesNotFit) {
  const ModelSpec spec = published("olmoe-1b-7b");
  Topology topology = *loadTopology("cpu4x2");
  topology.device.memory.value = gibibytes(1);
  PlanOptions options;
  options.layout = compileLayout(spec, topology);
  const std::string text = planHost(spec, topology, limits(64, 1, 64), options).takeError().text();
  EXPECT_NE(text.find("on the fullest of 8 ranks needs "), std::string::npos) << text;
  EXPECT_NE(text.find(": choose a topology with more memory or more ranks"), std::string::npos) << text;
}

TEST(PlanRefuses, LimitsOutOfRange) {
  ModelSpec spec = tinyLlama();
  Topology large = machine(gibibytes(1 << 14));
  EXPECT_EQ(refusal(spec, large, limits(0, 1, 1)), "--step-tokens: is 0, must be 1 to 2147483647");
  EXPECT_EQ(refusal(spec, large, limits(1, -1, 1)), "--max-sequences: is -1, must be 1 to 2147483647");
  EXPECT_EQ(refusal(spec, large, limits(1, 1, 257)), "--max-context: is 257, must be 1 to 256");
  EXPECT_NE(refusal(spec, large, limits(1, INT32_MAX, 256)).find("pages a layer"), std::string::npos);
}

TEST(PlanRefuses, SizesThatWouldOverflow) {
  ModelSpec spec = tinyLlama();
  auto &gqa = std::get<GqaSpec>(spec.attentions["attention"]);
  gqa.kvHeads = gqa.headDim = int64_t(1) << 26;
  EXPECT_NE(refusal(spec, machine(gibibytes(1)), limits(1, 1 << 20, 256))
                .find("cache and rotary table need 1.93e+25 bytes; lower --max-context or --max-sequences"),
            std::string::npos);
}
