// Who waits for whom, and what ends a launch in which nobody comes.
#include "TestKernel.h"

using namespace k2c;
using namespace k2c::ptx;

namespace {

const std::string begin =
    "ld.param.u64 %d8, [out]; mov.u32 %r8, %tid.x; shr.u32 %r7, %r8, 5;\n"
    "mov.u32 %r6, tile; shl.b32 %r5, %r8, 2; add.s32 %r6, %r6, %r5;\n"; // %r7: warp, %r6: own word

TEST(Barriers, AllSeeWhatAllHaveWritten) {
  TestKernel kernel(begin + "st.shared.b32 [%r6], %r8;\nbar.sync 0;\nld.shared.b32 %r0, [tile+508];\n"
                            "mul.wide.u32 %d0, %r8, 4; add.s64 %d0, %d8, %d0; st.global.b32 [%d0], %r0;");
  kernel.launch.block = {128, 1, 1};
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    kernel.options.seed = seed;
    kernel.options.isStrict = true;
    ASSERT_EQ(kernel.run(), "");
    EXPECT_EQ(kernel.out[0], 127u);
  }
}

TEST(Barriers, ProducersArriveAndConsumersWait) {
  TestKernel kernel(begin +
                    "setp.ne.b32 %p0, %r7, 0;\n@%p0 bra Consumer;\nst.shared.b32 [%r6], 5;\nbar.arrive 1, 64;\nret;\n"
                    "Consumer: bar.sync 1, 64;\nld.shared.b32 %r0, [tile+4]; st.global.b32 [%d8], %r0;");
  kernel.launch.block = {64, 1, 1};
  kernel.options.isStrict = true;
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.out[0], 5u);
}

TEST(Barriers, AClusterWaitsForAllOfItsCtas) {
  TestKernel kernel(
      begin + "mov.u32 %r0, %cluster_ctarank; st.shared.b32 [tile], %r0;\nbarrier.cluster.arrive.aligned;\n"
              "barrier.cluster.wait.aligned;\nxor.b32 %r1, %r0, 1; add.u32 %r1, %r1, 1; shl.b32 %r1, %r1, 24;\n"
              "mov.u32 %r2, tile; or.b32 %r1, %r1, %r2; ld.shared::cluster.b32 %r3, [%r1];\n"
              "mul.wide.u32 %d0, %r0, 4; add.s64 %d0, %d8, %d0; st.global.b32 [%d0], %r3;\n"
              "barrier.cluster.arrive;\nbarrier.cluster.wait;",
      ".explicitcluster\n.reqnctapercluster 2");
  kernel.launch.grid = {2, 1, 1};
  kernel.options.isStrict = true;
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.out[0], 1u);
  EXPECT_EQ(kernel.out[1], 0u);
}

struct Finding {
  const char *body, *message;
};

TEST(Barriers, ABarrierReducesPredicates) {
  TestKernel kernel(begin + "setp.lt.u32 %p0, %r8, 40;\nbar.red.popc.u32 %r0, 0, %p0;\nbar.red.and.pred %p1, 0, %p0;\n"
                            "bar.red.or.pred %p2, 1, 64, !%p0;\nselp.b32 %r1, 1, 0, %p1; selp.b32 %r2, 1, 0, %p2;\n"
                            "@!%p0 st.global.v4.b32 [%d8], {%r0, %r1, %r2, %r2};");
  kernel.launch.block = {64, 1, 1};
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.out[0], 40u);
  EXPECT_EQ(kernel.out[1], 0u);
  EXPECT_EQ(kernel.out[2], 1u);
}

TEST(Barriers, ADeadlockNamesWhoWaits) {
  const Finding all[] = {
      {"setp.eq.b32 %p0, %r7, 0;\n@%p0 bra End;\nbar.sync 1, 64;\nEnd: ret;",
       "no warp can go on; CTA and warp of who waits: (0, 0, 0).1 at line 12"},
      {"setp.lt.u32 %p0, %r8, 5;\n@%p0 bra Here;\nbar.sync 0;\nbra End;\nHere: bar.sync 0;\nEnd: ret;",
       "with some of its lanes, where all are needed"},
  };
  for (const Finding &one : all) {
    TestKernel kernel(begin + one.body);
    kernel.launch.block = {64, 1, 1};
    EXPECT_TRUE(says(kernel.run(), one.message)) << one.body;
  }
}

TEST(Barriers, NumbersOfThreadsAgree) {
  const Finding all[] = {
      {"mul.lo.u32 %r0, %r7, 32; add.u32 %r0, %r0, 64; bar.sync 1, %r0;", "threads here, and of "},
      {"setp.eq.b32 %p0, %r7, 0;\n@%p0 bra L;\nbar.sync 1;\nret;\nL: bar.sync 1, 64;",
       "threads for who has arrived (0: all); let all who meet there name the same number"},
      {"bar.sync 16;", "barrier 16 of 16"},
      {"bar.sync 1, 33;", "a barrier of 33 threads; give a multiple of 32"},
      {"barrier.sync %r8;", "its lanes name different barriers or numbers of threads"},
      {"barrier.cluster.wait;", "they have not arrived at the cluster's barrier; arrive before"},
      {"barrier.cluster.arrive; barrier.cluster.arrive;",
       "they have arrived at the cluster's barrier before; wait in between"},
  };
  for (const Finding &one : all) {
    TestKernel kernel(begin + one.body);
    kernel.launch.block = {64, 1, 1};
    EXPECT_TRUE(says(kernel.run(), one.message)) << one.body;
  }
}

TEST(Barriers, TooManyArrivalsAreNoticed) {
  TestKernel kernel(begin + "bar.arrive 1, 32;\nbar.arrive 1, 96;");
  kernel.launch.block = {64, 1, 1};
  EXPECT_NE(kernel.run(), "");
}

TEST(Barriers, WhatABarrierCannotBeIsRefused) {
  const Finding all[] = {{"bar.red.popc.pred %p1, 0, %p0;", "'bar.red.popc.pred' is not supported"},
                         {"bar.arrive 1;", "'bar.arrive' has 1 operands and takes 2"},
                         {"barrier.cluster.sync;", "'barrier.cluster.sync' is not supported"}};
  for (const Finding &one : all)
    EXPECT_TRUE(says(TestKernel(one.body).run(), one.message));
}

} // namespace
