// Races in shared memory, in whatever order warps run. (LitmusTest.cpp has the others)
#include "TestKernel.h"

using namespace k2c;
using namespace k2c::ptx;

namespace {

std::string ofBlock(const std::string &body, uint32_t threads) {
  TestKernel kernel("ld.param.u64 %d8, [out]; mov.u32 %r8, %tid.x; mov.u32 %r6, tile; shl.b32 %r5, %r8, 2;\n"
                    "add.s32 %r6, %r6, %r5; xor.b32 %r4, %r5, 4; mov.u32 %r3, tile; add.s32 %r4, %r4, %r3;\n" +
                    body);
  kernel.launch.block = {threads, 1, 1};
  kernel.options.isStrict = true;
  kernel.in[0] = 1;
  return kernel.run();
}

TEST(Races, ABarrierOrdersWarps) {
  const std::string write = "st.shared.b32 [%r6], %r8;\n", read = "ld.shared.b32 %r0, [%r4];\n";
  EXPECT_EQ(ofBlock(write + "bar.sync 0;\n" + read + "bar.sync 0;\n" + write, 64), "");
  EXPECT_TRUE(says(ofBlock(write + "bar.sync 0;\n" + read + write, 64),
                   "; let a barrier, or a release and an acquire, be between them"));
}

TEST(Races, LanesOfAWarpAreOrderedByItsBarrier) { // independent thread scheduling: no other order is promised
  const std::string write = "st.shared.b32 [%r6], %r8;\n", read = "ld.shared.b32 %r0, [%r4];\n";
  EXPECT_EQ(ofBlock(write + "bar.warp.sync -1;\n" + read, 32), "");
  EXPECT_TRUE(says(ofBlock(write + read, 32), "nothing orders it with 'st.shared.b32' at line 10 of CTA 0, warp 0"));
}

TEST(Races, ABarrierOfOtherWarpsOrdersNothing) {
  const std::string give =
      "setp.ge.u32 %p0, %r8, 32;\n@%p0 bra Take;\nst.shared.b32 [tile], 1;\nbar.arrive 1, 64;\nret;\n";
  const std::string one = "Take: setp.ne.b32 %p1, %r8, 32;\n";
  EXPECT_EQ(ofBlock(give + one + "bar.sync 1, 64;\n@%p1 ret;\nld.shared.b32 %r0, [tile];", 64)
                .find("nothing orders it with 'ld"),
            std::string::npos);
}

} // namespace
