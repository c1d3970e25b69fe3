// Litmus kernels in pairs: each is right, and with one thing missing it is a race, in whatever order warps run.
#include "TestKernel.h"

using namespace k2c;
using namespace k2c::ptx;

namespace {

/// Thread 0 of the first CTA or warp gives, that of the second takes: %p0 is set for who gives, %r8 = 0 for both.
const std::string acrossCtas = "ld.param.u64 %d8, [out]; mov.u32 %r9, %ctaid.x; setp.eq.b32 %p0, %r9, 0;\n";
const std::string acrossWarps =
    "ld.param.u64 %d8, [out]; mov.u32 %r9, %tid.x; and.b32 %r8, %r9, 31; setp.ne.b32 %p1, %r8, 0;\n"
    "@%p1 exit;\nsetp.lt.u32 %p0, %r9, 32;\n";

struct Litmus {
  const char *name;
  bool isAcrossCtas;
  const char *right, *wrong;
};

/// What takes waits for a flag, so that the data are there when it reads them.
#define GIVE(order) "@!%p0 bra Take;\nst.global.b32 [%d8], 5;\n" order "\nret;\nTake:\n"
#define WAIT(load) "Wait: " load "\nsetp.eq.b32 %p2, %r1, 0;\n@%p2 bra Wait;\n"
#define READ "ld.global.b32 %r2, [%d8];"

const Litmus all[] = {
    {"message passing, release and acquire", true,
     GIVE("st.release.gpu.global.b32 [%d8+64], 1;") WAIT("ld.acquire.gpu.global.b32 %r1, [%d8+64];") READ,
     GIVE("st.relaxed.gpu.global.b32 [%d8+64], 1;") WAIT("ld.acquire.gpu.global.b32 %r1, [%d8+64];") READ},
    {"message passing, the reader acquires", true,
     GIVE("st.release.gpu.global.b32 [%d8+64], 1;") WAIT("ld.acquire.gpu.global.b32 %r1, [%d8+64];") READ,
     GIVE("st.release.gpu.global.b32 [%d8+64], 1;") WAIT("ld.relaxed.gpu.global.b32 %r1, [%d8+64];") READ},
    {"message passing, a scope that holds both", true,
     GIVE("st.release.gpu.global.b32 [%d8+64], 1;") WAIT("ld.acquire.gpu.global.b32 %r1, [%d8+64];") READ,
     GIVE("st.release.cta.global.b32 [%d8+64], 1;") WAIT("ld.acquire.gpu.global.b32 %r1, [%d8+64];") READ},
    {"message passing within a CTA", false,
     GIVE("st.release.cta.global.b32 [%d8+64], 1;") WAIT("ld.acquire.cta.global.b32 %r1, [%d8+64];") READ,
     GIVE("st.global.b32 [%d8+64], 1;") WAIT("ld.acquire.cta.global.b32 %r1, [%d8+64];") READ},
    {"message passing with fences", true,
     GIVE("fence.acq_rel.gpu; st.relaxed.gpu.global.b32 [%d8+64], 1;")
         WAIT("ld.relaxed.gpu.global.b32 %r1, [%d8+64];") "fence.acq_rel.gpu;\n" READ,
     GIVE("fence.acq_rel.gpu; st.relaxed.gpu.global.b32 [%d8+64], 1;") WAIT("ld.relaxed.gpu.global.b32 %r1, [%d8+64];")
         READ},
    {"the writer's fence", true,
     GIVE("membar.gl; st.relaxed.gpu.global.b32 [%d8+64], 1;")
         WAIT("ld.volatile.global.b32 %r1, [%d8+64];") "membar.gl;\n" READ,
     GIVE("st.relaxed.gpu.global.b32 [%d8+64], 1; membar.gl;")
         WAIT("ld.volatile.global.b32 %r1, [%d8+64];") "membar.gl;\n" READ},
    {"a fence of a scope that holds both", true,
     GIVE("fence.acq_rel.gpu; st.relaxed.gpu.global.b32 [%d8+64], 1;")
         WAIT("ld.relaxed.gpu.global.b32 %r1, [%d8+64];") "fence.acq_rel.gpu;\n" READ,
     GIVE("fence.acq_rel.cta; st.relaxed.gpu.global.b32 [%d8+64], 1;")
         WAIT("ld.relaxed.gpu.global.b32 %r1, [%d8+64];") "fence.acq_rel.gpu;\n" READ},
    {"a counter that releases and acquires", true,
     GIVE("red.release.gpu.global.add.u32 [%d8+64], 1;") WAIT("atom.acquire.gpu.global.add.u32 %r1, [%d8+64], 0;") READ,
     GIVE("red.relaxed.gpu.global.add.u32 [%d8+64], 1;") WAIT("atom.acquire.gpu.global.add.u32 %r1, [%d8+64], 0;")
         READ},
    {"strong accesses of the flag itself", true,
     "@!%p0 bra Take;\nst.relaxed.gpu.global.b32 [%d8], 5;\nret;\nTake: ld.relaxed.gpu.global.b32 %r1, [%d8];",
     "@!%p0 bra Take;\nst.relaxed.gpu.global.b32 [%d8], 5;\nret;\nTake: ld.global.b32 %r1, [%d8];"},
    {"strong accesses whose scopes hold each other", true, "red.relaxed.gpu.global.add.u32 [%d8], 5;",
     "red.relaxed.cta.global.add.u32 [%d8], 5;"},
    {"reads of two", true, "ld.global.b32 %r1, [%d8];", "ld.global.b32 %r1, [%d8]; st.global.b32 [%d8], 1;"},
    {"words of two", true, "mul.wide.u32 %d0, %r9, 4; add.s64 %d0, %d0, %d8; st.global.b32 [%d0], 1;",
     "mul.wide.u32 %d0, %r9, 4; add.s64 %d0, %d0, %d8; st.global.b32 [%d0], 1; st.global.b64 [%d8], 1;"},
    {"bytes of a word", true, "cvt.u64.u32 %d0, %r9; add.s64 %d0, %d0, %d8; st.global.b8 [%d0], 1;",
     "cvt.u64.u32 %d0, %r9; add.s64 %d0, %d0, %d8; st.global.b8 [%d0], 1; ld.global.b16 %h0, [%d8];"},
};

std::string verdict(const Litmus &litmus, const char *body, uint64_t seed) {
  TestKernel kernel((litmus.isAcrossCtas ? acrossCtas : acrossWarps) + body);
  kernel.memory.markWritten(kernel.out.data(), kernel.out.size() * 4);
  kernel.launch.grid = {litmus.isAcrossCtas ? 2u : 1u, 1, 1};
  kernel.launch.block = {litmus.isAcrossCtas ? 1u : 64u, 1, 1};
  kernel.options.isStrict = true;
  kernel.options.seed = seed;
  return kernel.run();
}

TEST(Races, LitmusKernels) {
  for (const Litmus &litmus : all)
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      EXPECT_EQ(verdict(litmus, litmus.right, seed), "") << litmus.name;
      EXPECT_TRUE(says(verdict(litmus, litmus.wrong, seed), "and nothing orders it with '")) << litmus.name;
    }
}

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
