// Litmus kernels of what is there while a kernel runs: memory that nobody writes, mbarriers, what is
// in flight when a CTA ends, registers of warpgroups, and instructions that all lanes of a warp execute.
#include "Litmus.h"

using namespace k2c;
using namespace k2c::ptx;

namespace {

const Shape one{1, 1, 0, 1}, warp{1, 1, 0}, two{1, 2, 0}, ctas{2, 1, 0, 1};

const std::string made = "mbarrier.init.shared.b64 [tile+4088], 1;\nfence.mbarrier_init.release.cluster;\n";
const std::string landed = "W: mbarrier.try_wait.parity.shared.b64 %p0, [tile+4088], 0;\n@!%p0 bra W;\n";
const std::string copied = made +
                           "mbarrier.arrive.expect_tx.shared.b64 _, [tile+4088], 256;\n"
                           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d9], 256, "
                           "[tile+4088];\n" +
                           landed;
const std::string reused = made + "mbarrier.inval.shared.b64 [tile+4088];\nst.shared.b64 [tile+4088], 5;\n"
                                  "ld.shared.b64 %d0, [tile+4088];\n";
const Litmus states[] = {
    {"the non-coherent cache is for what nobody writes", two,
     "ld.global.nc.b32 %r0, [%d8];\nsetp.ne.b32 %p1, %r7, 0; @%p1 ret;\nst.global.b32 [%d8+4], 1;\n", "[%d8+4]",
     "[%d8]", "nothing orders it with 'ld.global.nc.b32' at line 10 of CTA 0"},
    {"the non-coherent cache does not see what its own thread has written", one,
     "st.global.b32 [%d8], 1;\nld.global.nc.b32 %r0, [%d8+4];\n", "[%d8+4]", "[%d8]",
     ": .nc is for what no thread of the launch writes"},
    {"a load and one of the non-coherent cache", one,
     "ld.global.b32 %r0, [%d8];\nld.global.nc.b32 %r0, [%d8];\nst.global.b32 [%d8+4], 1;\n", "[%d8+4]", "[%d8]",
     ": .nc is for what no thread of the launch writes"},
    {"an mbarrier that is done with", one, reused, "mbarrier.inval.shared.b64 [tile+4088];", "",
     "and an mbarrier is there; use mbarrier.inval before"},
    {"an mbarrier is not read", one, made + "st.shared.b32 [tile], 1; ld.shared.b32 %r0, [tile];\n",
     "ld.shared.b32 %r0, [tile]", "ld.shared.b32 %r0, [tile+4088]", "and an mbarrier is there"},
    {"a copy beside an mbarrier", one,
     made +
         "mbarrier.arrive.expect_tx.shared.b64 _, [tile+4088], 16;\n"
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+4064], [%d9], 16, [tile+4088];\n" +
         landed,
     "[tile+4064]", "[tile+4080]", "it copies 16 bytes at shared address 5104, and an mbarrier is there"},
    {"a copy to shared memory has landed when its CTA ends", one, copied, landed, "",
     "its CTA ends, and nothing orders it with 'cp.async.bulk"},
    {"a phase has as many bytes as an mbarrier counts", one, copied, "[tile+4088], 256;", "[tile+4088], 1048832;",
     "an mbarrier waits for 1048832 bytes, and can count up to 1048575"},
    {"all lanes of a warp execute a barrier", two, "setp.lt.u32 %p1, %r8, 32;\n@%p1 bar.sync 0;\n", "%r8, 32",
     "%r8, 31",
     "its guard does not hold for them, and does for others of the warp; let all lanes of a warp execute it, or none"},
    {"a barrier of warps", two, "setp.lt.u32 %p1, %r7, 32;\n@%p1 bar.sync 1, 32;\n", "%r7, 32", "%r7, 16",
     "its guard does not hold for them"},
};

TEST(LitmusState, States) {
  for (const Litmus &litmus : states)
    check(litmus);
}

/// Each lane stores a row of a matrix, and all load it.
const std::string rows = "and.b32 %r4, %r8, 7; shl.b32 %r4, %r4, 4; add.u32 %r4, %r4, %r6; setp.lt.u32 %p1, %r8, 8;\n"
                         "@%p1 st.shared.v4.b32 [%r4], {%r8, %r8, %r8, %r8};\nbar.warp.sync -1;\n";
const std::string stored = "and.b32 %r4, %r8, 7; shl.b32 %r4, %r4, 4; add.u32 %r4, %r4, %r6;\n"
                           "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], {%r8};\nbar.warp.sync -1;\n";

const Litmus matrices[] = {
    {"rows of ldmatrix are of the lanes that get them", warp,
     rows + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r4];", "bar.warp.sync -1;", "", ""},
    {"transposed rows of ldmatrix", warp, rows + "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r0}, [%r4];",
     "bar.warp.sync -1;", "", ""},
    {"rows of stmatrix are of the lanes that have them", warp, stored + "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%r4];",
     "bar.warp.sync -1;", "", ""},
    {"rows that stmatrix and ldmatrix share", warp,
     stored + "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r0}, [%r4];", "bar.warp.sync -1;", "", ""},
};

TEST(LitmusState, Matrices) {
  for (const Litmus &litmus : matrices)
    check(litmus);
}

/// CTA 0 copies to global memory what CTA 1 copies from there.
const std::string passed =
    gives("st.shared.v4.b32 [tile], {%r9, %r9, %r9, %r9};\nfence.proxy.async.shared::cta;\n"
          "cp.async.bulk.global.shared::cta.bulk_group [%d8], [tile], 16;\ncp.async.bulk.commit_group;\n"
          "cp.async.bulk.wait_group 0;\nst.release.gpu.global.b32 [%d8+64], 1;") +
    made + await("ld.acquire.gpu.global.b32", "64") +
    "fence.proxy.async.global;\nmbarrier.arrive.expect_tx.shared.b64 _, [tile+4088], 16;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d8], 16, [tile+4088];\n" +
    landed;
const std::string early = "cp.async.bulk.wait_group 0;\nst.release.gpu.global.b32 [%d8+64], 1;";

const Litmus copies[] = {
    {"a proxy fence between copies of two CTAs", ctas, passed, "fence.proxy.async.global;", "", ""},
    {"a proxy fence of that memory", ctas, passed, "fence.proxy.async.global", "fence.proxy.async.shared::cta", ""},
    {"a wait for the copy of the other CTA", ctas, passed, "cp.async.bulk.wait_group 0;", "", ""},
    {"a wait for what it has written", ctas, passed, "wait_group 0;", "wait_group.read 0;", ""},
    {"a proxy fence of who gives", ctas,
     gives("st.shared.v4.b32 [tile], {%r9, %r9, %r9, %r9};\nfence.proxy.async.shared::cta;\n"
           "cp.async.bulk.global.shared::cta.bulk_group [%d8], [tile], 16;\ncp.async.bulk.commit_group;\n"
           "cp.async.bulk.wait_group 0;\nfence.proxy.async.global;\nst.release.gpu.global.b32 [%d8+64], 1;") +
         made + await("ld.acquire.gpu.global.b32", "64") +
         "mbarrier.arrive.expect_tx.shared.b64 _, [tile+4088], 16;\n"
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d8], 16, [tile+4088];\n" +
         landed,
     "fence.proxy.async.global;", "", ""},
};

TEST(LitmusState, Copies) {
  for (const Litmus &litmus : copies)
    check(litmus);
}

/// Two warpgroups: the first gives registers back, and the second gets them.
std::string registers(const std::string &given, const std::string &taken) {
  return "setp.lt.u32 %p1, %r7, 128;\n@%p1 bra Give;\nsetmaxnreg.inc.sync.aligned.u32 " + taken +
         ";\nbar.sync 0;\nret;\nGive: setmaxnreg.dec.sync.aligned.u32 " + given + ";\nbar.sync 0;\n";
}

std::string ofWarpgroups(const std::string &body, const std::string &directives = ".maxnreg 128") {
  TestKernel kernel(litmusText({"", {1, 8, 0}, "", "", "", ""}, body), directives);
  kernel.launch.block = {256, 1, 1};
  return kernel.run();
}

TEST(LitmusState, RegistersOfWarpgroups) {
  EXPECT_EQ(ofWarpgroups(registers("40", "216")), "");
  EXPECT_TRUE(says(ofWarpgroups(registers("40", "224")), "no warp can go on"));
  EXPECT_TRUE(says(ofWarpgroups(registers("136", "216")), "it asks for 136 registers, and has 128; let .inc ask for as "
                                                          "many or more, and .dec for as many or fewer"));
  EXPECT_TRUE(says(ofWarpgroups(registers("40", "120")), "it asks for 120 registers, and has 128"));
  EXPECT_EQ(ofWarpgroups(registers("136", "216"), ""), ""); // nothing says what it begins with
  EXPECT_EQ(ofWarpgroups(registers("24", "104"), ".reqntid 256, 1, 1 .minnctapersm 4"), "");
  EXPECT_TRUE(says(ofWarpgroups(registers("24", "112"), ".reqntid 256, 1, 1 .minnctapersm 4"), "no warp can go on"));
  const std::string none = ".maxntid 2147483648, 4 .minnctapersm 2147483648"; // together 0 in 64 bits
  EXPECT_EQ(ofWarpgroups(registers("136", "216"), none), "");
}

TEST(LitmusState, AWarpgroupAsksAsOne) {
  EXPECT_TRUE(
      says(ofWarpgroups("setp.ge.u32 %p1, %r7, 32;\n@%p1 ret;\nsetmaxnreg.dec.sync.aligned.u32 40;\n"),
           "it has ended, and a warp of its warpgroup has used setmaxnreg without it; let all warps of a warpgroup "
           "use it"));
  EXPECT_TRUE(
      says(ofWarpgroups("setp.ge.u32 %p1, %r7, 32;\n@%p1 bra Other;\nsetmaxnreg.dec.sync.aligned.u32 40;\nret;\n"
                        "Other: setmaxnreg.dec.sync.aligned.u32 48;\n"),
           "registers, and another warp of its warpgroup for "));
  EXPECT_TRUE(
      says(ofWarpgroups("setp.lt.u32 %p1, %r7, 32;\n@%p1 bra Other;\nsetmaxnreg.dec.sync.aligned.u32 40;\nret;\n"
                        "Other: setmaxnreg.dec.sync.aligned.u32 48;\n"),
           "; let all warps of a warpgroup ask for the same"));
}

} // namespace
