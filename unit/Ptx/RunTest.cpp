// Which lanes, warps and CTAs run, and what ends a launch.
#include "TestKernel.h"

#include <algorithm>
#include <numeric>

using namespace k2c;
using namespace k2c::ptx;

namespace {

const std::string begin = "ld.param.u64 %d8, [out]; mov.u32 %r8, %tid.x; mul.wide.u32 %d9, %r8, 4; "
                          "add.s64 %d9, %d8, %d9;\n"; // %d9: the thread's own word

TEST(Run, EveryThreadOfEveryCtaRunsOnce) {
  TestKernel kernel("ld.param.u64 %d8, [out]; mov.u32 %r0, %ctaid.y; mov.u32 %r1, %nctaid.x; mov.u32 %r2, %ctaid.x;\n"
                    "mad.lo.u32 %r0, %r0, %r1, %r2; mov.u32 %r1, %ntid.x; mov.u32 %r2, %ntid.y;\n"
                    "mul.lo.u32 %r3, %r1, %r2; mov.u32 %r4, %tid.y; mov.u32 %r5, %tid.x;\n"
                    "mad.lo.u32 %r4, %r4, %r1, %r5; mad.lo.u32 %r0, %r0, %r3, %r4;\n"
                    "mul.wide.u32 %d9, %r0, 4; add.s64 %d9, %d8, %d9; red.global.add.u32 [%d9], 1;");
  kernel.launch.grid = {5, 3, 1};
  kernel.launch.block = {33, 2, 1};
  kernel.memory.markWritten(kernel.out.data(), kernel.out.size() * 4);
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(std::accumulate(kernel.out.begin(), kernel.out.end(), 0u), 5u * 3 * 33 * 2);
  EXPECT_EQ(*std::max_element(kernel.out.begin(), kernel.out.end()), 1u);
}

TEST(Run, LanesPartAndMeet) {
  TestKernel kernel(begin +
                    "and.b32 %r0, %r8, 1; setp.eq.b32 %p0, %r0, 0;\n@%p0 bra Even;\nmov.b32 %r1, 100;\nbra Join;\n"
                    "Even:\nmov.b32 %r1, 200;\nJoin:\nvote.sync.ballot.b32 %r2, %p0, -1;\n"
                    "add.s32 %r1, %r1, %r2; st.global.b32 [%d9], %r1;");
  kernel.launch.block = {32, 1, 1};
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.out[0], 0x55555555u + 200);
  EXPECT_EQ(kernel.out[1], 0x55555555u + 100);
}

TEST(Run, LanesThatWaitForOthersOfTheirWarpGoOn) { // independent thread scheduling
  TestKernel kernel(begin + "setp.eq.b32 %p0, %r8, 31;\n@%p0 bra Give;\n"
                            "Wait: ld.relaxed.gpu.global.b32 %r1, [%d8+124]; setp.ne.b32 %p1, %r1, 7;\n@%p1 bra Wait;\n"
                            "bra Join;\nGive: mov.b32 %r1, 7; st.relaxed.gpu.global.b32 [%d8+124], %r1;\n"
                            "Join: st.global.b32 [%d9], 9;");
  kernel.launch.block = {32, 1, 1};
  kernel.memory.markWritten(kernel.out.data(), kernel.out.size() * 4);
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.out[5], 9u);
}

TEST(Run, LanesThatEndAreNotWaitedFor) {
  TestKernel kernel(begin +
                    "setp.gt.u32 %p0, %r8, 9;\n@%p0 exit;\nbar.sync 0;\nshfl.sync.idx.b32 %r1, %r8, 9, 31, -1;\n"
                    "st.global.b32 [%d9], %r1;");
  kernel.launch.block = {40, 1, 1};
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.out[0], 9u);
}

TEST(Run, ALaunchRunsAWhileAtATime) {
  TestKernel kernel(begin + "mov.b32 %r0, 0;\nMore: add.s32 %r0, %r0, 1; setp.lt.s32 %p0, %r0, 1000;\n"
                            "@%p0 bra More;\nst.global.b32 [%d9], %r0;");
  kernel.launch.grid = {2, 1, 1};
  Expected<Module> module = parse(kernel.text, "test.ptx");
  Expected<Kernel> decoded = Kernel::decode(*module, "k");
  const void *given[] = {kernel.out.data(), kernel.in.data()};
  kernel.launch.parameters = {&given[0], &given[1]};
  Execution execution(*decoded, kernel.launch, kernel.memory, kernel.options);
  int parts = 1;
  for (Expected<bool> isDone = execution.goOn(1000); isDone && !*isDone; isDone = execution.goOn(1000))
    ++parts;
  EXPECT_EQ(kernel.out[0], 1000u);
  EXPECT_GE(parts, 6); // of 6,000 instructions
  EXPECT_LE(execution.counts().instructions, 6100u);
}

TEST(Run, InstructionsOfWarpsAreCounted) {
  TestKernel kernel("mov.b32 %r0, 1;\nmov.b32 %r0, 2;\nret;");
  kernel.launch.block = {48, 1, 1};
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.counts.instructions, 2u * 3);
  EXPECT_EQ(kernel.counts.lanes, 48u * 3);
}

TEST(Run, ASeedGivesAnOrderOfWarps) {
  std::vector<std::vector<uint32_t>> orders;
  for (const uint64_t seed : {1, 2, 3, 4, 1}) {
    TestKernel kernel("ld.param.u64 %d8, [out]; mov.u32 %r0, %ctaid.x; atom.global.add.u32 %r1, [%d8], 1;\n"
                      "mul.wide.u32 %d9, %r1, 4; add.s64 %d9, %d8, %d9; st.global.b32 [%d9+4], %r0;");
    kernel.launch.grid = {12, 1, 1};
    kernel.memory.markWritten(kernel.out.data(), 4);
    kernel.options.seed = seed;
    EXPECT_EQ(kernel.run(), "");
    orders.emplace_back(kernel.out.begin() + 1, kernel.out.begin() + 13);
  }
  EXPECT_EQ(orders[0], orders[4]);
  EXPECT_FALSE(orders[0] == orders[1] && orders[1] == orders[2] && orders[2] == orders[3]);
}

TEST(Run, LanesExchangeValues) {
  struct Shuffle {
    const char *instruction;
    uint32_t lane0, lane31;
  };
  const Shuffle all[] = {{"shfl.sync.up.b32 %r1|%p0, %r8, 1, 0, -1;", 0, 30},
                         {"shfl.sync.down.b32 %r1|%p0, %r8, 1, 31, -1;", 1, 31},
                         {"shfl.sync.bfly.b32 %r1|%p0, %r8, 16, 31, -1;", 16, 15},
                         {"shfl.sync.idx.b32 %r1|%p0, %r8, 3, 0x181f, -1;", 3, 27}, // segments of 8
                         {"redux.sync.max.u32 %r1, %r8, -1;", 31, 31},
                         {"match.any.sync.b32 %r1, %r8, -1;", 1, 0x80000000},
                         {"activemask.b32 %r1;", 0xffffffff, 0xffffffff},
                         {"elect.sync %r1|%p0, -1;", 0, 0}};
  for (const Shuffle &one : all) {
    TestKernel kernel(begin + one.instruction + "\nst.global.b32 [%d9], %r1;");
    kernel.launch.block = {32, 1, 1};
    ASSERT_EQ(kernel.run(), "") << one.instruction;
    EXPECT_EQ(kernel.out[0], one.lane0) << one.instruction;
    EXPECT_EQ(kernel.out[31], one.lane31) << one.instruction;
  }
}

TEST(Run, WhatALaunchCannotBeIsRefused) {
  TestKernel kernel("ret;", ".reqntid 64");
  EXPECT_TRUE(
      says(kernel.run(), "is of blocks of (64, 1, 1) and is launched in blocks of (1, 1, 1); launch it as it says"));
  kernel.launch.block = {64, 1, 1};
  kernel.launch.grid = {3, 1, 1};
  kernel.launch.cluster = {2, 1, 1};
  EXPECT_TRUE(
      says(kernel.run(), "has a grid of (3, 1, 1), which clusters of (2, 1, 1) do not divide; launch whole clusters"));
  kernel.launch.grid = {0, 1, 1};
  EXPECT_TRUE(says(kernel.run(),
                   "cannot run with a grid of (0, 1, 1), blocks of (64, 1, 1) and clusters of (2, 1, 1); blocks have "
                   "up to 1024 threads, clusters up to 16 blocks"));
  kernel.launch = {};
  kernel.launch.block = {64, 1, 1};
  kernel.launch.sharedBytes = 1 << 20;
  EXPECT_TRUE(says(kernel.run(), "needs 1052672 bytes of shared memory, and there are 232448; launch it with fewer"));
}

TEST(Run, AThreadHasWhatADeviceGives) {
  EXPECT_TRUE(says(TestKernel(".local .b8 all[524289];").run(), "524289 bytes of local memory, and there are 524288"));
  EXPECT_EQ(TestKernel(".local .b8 all[524288];").run(), "");
}

TEST(Run, ALaunchIsAsTheKernelSays) {
  TestKernel cluster("ret;", ".reqnctapercluster 2");
  cluster.launch.grid = {4, 1, 1};
  cluster.launch.cluster = {4, 1, 1};
  EXPECT_TRUE(says(cluster.run(),
                   "is of clusters of (2, 1, 1) and is launched in clusters of (4, 1, 1); launch it as it "
                   "says"));
  TestKernel bounded("ret;", ".maxntid 32");
  bounded.launch.block = {33, 1, 1};
  EXPECT_TRUE(says(bounded.run(), "is of blocks of up to 32 threads and is launched with 33; launch fewer"));
  const std::string most = "2147483648, 2147483648, 2147483648"; // which is 0 in 64 bits
  EXPECT_TRUE(says(TestKernel("ret;", ".reqntid " + most).run(),
                   "is of blocks of (2147483648, 2147483648, 2147483648) and is launched in blocks of (1, 1, 1)"));
  EXPECT_TRUE(says(TestKernel("ret;", ".reqnctapercluster " + most).run(), "cannot run with a grid of (1, 1, 1)"));
  EXPECT_EQ(TestKernel("ret;", ".maxntid " + most).run(), "");
  Expected<Module> module = parse(moduleOf("ret;"), "test.ptx");
  ASSERT_TRUE(module);
  Expected<Kernel> kernel = Kernel::decode(*module, "k");
  ASSERT_TRUE(kernel);
  Expected<Counts> ran = run(*kernel, {}, bounded.memory, {});
  ASSERT_FALSE(ran);
  EXPECT_TRUE(says(ran.error().text(), "has 2 parameters and is given 0; give as many"));
  Expected<Kernel> other = Kernel::decode(*module, "other");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().text(), "test.ptx: there is no entry 'other'; name an entry of the module");
}

TEST(Run, AFindingNamesKernelLineCtaAndWarp) {
  TestKernel kernel("mov.u32 %r0, %ctaid.x;\nsetp.eq.b32 %p0, %r0, 2;\n@%p0 trap;");
  kernel.launch.grid = {4, 1, 1};
  EXPECT_EQ(kernel.run(), "test.ptx:10: kernel 'k', CTA (2, 0, 0), warp 0, lanes 0x1, 'trap': the kernel traps");
}

TEST(Run, ARegisterThatWasNeverWrittenIsNotRead) {
  TestKernel kernel(begin + "setp.gt.u32 %p0, %r8, 3;\n@%p0 mov.b32 %r1, 5;\nadd.s32 %r2, %r1, 1;");
  kernel.launch.block = {8, 1, 1};
  EXPECT_TRUE(says(kernel.run(),
                   "test.ptx:11: kernel 'k', CTA (0, 0, 0), warp 0, lanes 0xf, 'add.s32': it reads register "
                   "'%r1', which was never written; write it on every path"));
  TestKernel written(begin + "mov.b32 %r1, 4; setp.gt.u32 %p0, %r8, 3;\n@%p0 mov.b32 %r1, 5;\nadd.s32 %r2, %r1, 1;");
  written.launch.block = {8, 1, 1};
  EXPECT_EQ(written.run(), "");
}

TEST(Run, LanesWhoseGuardDoesNotHoldReadTheGuardAlone) {
  const auto stored = [](const std::string &written, const std::string &guarded) {
    TestKernel kernel(begin + "setp.gt.u32 %p0, %r8, 3;\n@%p0 mov.b32 %r1, 5;\n" + written + "\n@%p1 " + guarded);
    kernel.launch.block = {8, 1, 1};
    return kernel.run();
  };
  const std::string store = "st.global.b32 [%d9], %r1;", load = "ld.global.b32 %r2, [%d0];";
  EXPECT_EQ(stored("setp.gt.u32 %p1, %r8, 3;", store), "");
  EXPECT_EQ(stored("setp.gt.u32 %p1, %r8, 31;", store), "") << "it holds for no lane";
  EXPECT_EQ(stored("setp.gt.u32 %p1, %r8, 31;", load), "");
  EXPECT_TRUE(says(stored("setp.gt.u32 %p1, %r8, 2;", store),
                   "test.ptx:12: kernel 'k', CTA (0, 0, 0), warp 0, lanes 0x8, 'st.global.b32': it reads register "
                   "'%r1', which was never written"));
  EXPECT_TRUE(says(stored("setp.gt.u32 %p1, %r8, 3;", load), "lanes 0xf0, 'ld.global.b32': it reads register '%d0'"));
  EXPECT_TRUE(says(stored("setp.gt.u32 %p2, %r8, 4; @%p2 setp.gt.u32 %p1, %r8, 3;", store),
                   "lanes 0x1f, 'st.global.b32': it reads register '%p1', which was never written"));
}

TEST(Run, AKernelThatDoesNotEndIsEnded) {
  TestKernel kernel("L: bra L;");
  kernel.options.idleInstructions = 1000;
  EXPECT_TRUE(says(kernel.run(), "no warp has written memory or passed a barrier for 10"));
  TestKernel writes("L: st.shared.b32 [tile], 1; bra L;");
  writes.options.maxInstructions = 1000;
  EXPECT_TRUE(says(writes.run(), "the kernel has not ended after 10"));
}

TEST(Run, LanesOfDifferentMasksMeetApart) { // tiles of cooperative groups
  TestKernel kernel(begin + "setp.lt.u32 %p0, %r8, 8; selp.b32 %r0, 0xff, 0xff00, %p0;\n"
                            "redux.sync.add.u32 %r1, %r8, %r0;\nst.global.b32 [%d9], %r1;");
  kernel.launch.block = {16, 1, 1};
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.out[0], 28u);
  EXPECT_EQ(kernel.out[15], 92u);
}

TEST(Run, LanesOfAMaskNameThemselves) {
  TestKernel kernel(begin + "mov.b32 %r0, 3;\nshfl.sync.idx.b32 %r1, %r8, 0, 31, %r0;");
  kernel.launch.block = {4, 1, 1};
  EXPECT_TRUE(says(kernel.run(), "they are no members of its mask; let all who meet name themselves"));
  TestKernel absent(begin + "shfl.sync.idx.b32 %r1, %r8, 9, 31, -1;");
  absent.launch.block = {4, 1, 1};
  EXPECT_TRUE(says(absent.run(), "they read lanes that do not take part; name those in the mask"));
}

} // namespace
