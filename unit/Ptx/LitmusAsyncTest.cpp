// Litmus kernels of the asynchronous proxy: copies, their barriers and groups, and matrix products.
#include "Litmus.h"

using namespace k2c;
using namespace k2c::ptx;

namespace {

const Shape one{1, 1, 0, 1}, two{1, 2, 0}, cluster{2, 1, 2, 1}, warpgroup{1, 4, 0};

/// An mbarrier at tile + 4088 that thread 0 has made, %p1: not thread 0; thread 0 begins `copies`, all wait.
std::string made(const std::string &count) {
  return "setp.ne.b32 %p1, %r7, 0;\n@%p1 bra Made;\nmbarrier.init.shared.b64 [tile+4088], " + count +
         ";\nfence.mbarrier_init.release.cluster;\nMade: bar.sync 0;\n";
}
std::string phase(const std::string &name, const std::string &parity) {
  return name + ": mbarrier.try_wait.parity.shared.b64 %p0, [tile+4088], " + parity + ";\n@!%p0 bra " + name + ";\n";
}
const std::string copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d9], 256, "
                         "[tile+4088];\n";
const std::string expect = "mbarrier.arrive.expect_tx.shared.b64 _, [tile+4088], 256;\n";
const std::string loaded =
    made("1") + "@%p1 bra Begun;\n" + expect + copy + "Begun:\n" + phase("W", "0") + "ld.shared.b32 %r0, [tile+252];\n";
/// A second copy to the same place, once all 64 threads have read the first.
const std::string reused = made("65") + "@%p1 bra Begun;\n" + expect + copy + "Begun:\n" +
                           "mbarrier.arrive.shared.b64 _, [tile+4088];\n" + phase("W", "0") +
                           "ld.shared.b32 %r0, [tile+252];\nmbarrier.arrive.shared.b64 _, [tile+4088]; // read\n"
                           "@%p1 ret;\nmbarrier.arrive.shared.b64 _, [tile+4088];\n" +
                           phase("V", "1") + "mbarrier.arrive.expect_tx.shared.b64 _, [tile+4088], 256;\n" + copy +
                           "mbarrier.arrive.shared.b64 _, [tile+4088], 64;\n" + phase("X", "0");
const std::string fromKernel = made("1") +
                               "st.global.v4.b32 [%d8], {%r7, %r7, %r7, %r7};\nfence.proxy.async.global;\n" +
                               "mbarrier.arrive.expect_tx.shared.b64 _, [tile+4088], 16;\n"
                               "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d8], 16, "
                               "[tile+4088];\n" +
                               phase("W", "0");
/// CTA 0 copies to both; CTA 1 has its own barrier.
const std::string multicast =
    "mbarrier.init.shared.b64 [tile+4088], 1;\nfence.mbarrier_init.release.cluster;\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [tile+4088], 256;\nbarrier.cluster.arrive.aligned;\n"
    "barrier.cluster.wait.aligned;\nsetp.ne.b32 %p2, %r9, 0;\n@%p2 bra Begun;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%d9], 256, "
    "[tile+4088], 3;\nBegun:\n" +
    phase("W", "0") + "ld.shared.b32 %r0, [tile];\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

const Litmus loads[] = {
    {"a wait for the copy", two, loaded, phase("W", "0"), "", ""},
    {"the bytes of the copy", two, loaded, "[tile+4088], 256", "[tile+4088], 128", "no w"},
    {"no more bytes than the copy has", two, loaded, "[tile+4088], 256", "[tile+4088], 512", "no w"},
    {"a phase that expects bytes", two, loaded, expect, "mbarrier.arrive.shared.b64 _, [tile+4088];\n", ""},
    {"the parity of the phase", two, loaded, "[tile+4088], 0;", "[tile+4088], 1;", ""},
    {"a fence behind mbarrier.init", two, loaded, "fence.mbarrier_init.release.cluster;", "",
     "let fence.mbarrier_init or fence.proxy.async, and a barrier, be between them"},
    {"a barrier behind mbarrier.init", two, loaded, "Made: bar.sync 0;",
     "Made:", "nothing orders it with its mbarrier.init"},
    {"an arrival of all who have read", two, reused, "_, [tile+4088]; // read",
     "_, [tile+4088]; // read\nld.shared.b32 %r0, [tile+248];", ""},
    {"a wait for all who have read", two, reused, phase("V", "1"), "", ""},
    {"a proxy fence behind what the kernel wrote", one, fromKernel, "fence.proxy.async.global;", "", ""},
    {"a proxy fence of that memory", one, fromKernel, "fence.proxy.async.global", "fence.proxy.async.shared::cta", ""},
    {"a barrier in each CTA of a multicast", cluster, multicast,
     "mbarrier.arrive.expect_tx.shared.b64 _, [tile+4088], 256;", "", "no w"},
    {"a barrier of the cluster before a multicast", cluster, multicast,
     "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;", "", "mbarrier"},
    {"each CTA in the mask", cluster, multicast, "[tile+4088], 3;", "[tile+4088], 1;", "no w"},
};

TEST(Litmus, CopiesToSharedMemory) {
  for (const Litmus &litmus : loads)
    check(litmus);
}

const std::string fill = "shl.b32 %r4, %r7, 2; add.u32 %r4, %r4, %r6;\nst.shared.b32 [%r4], %r7;\n";
const std::string stored = fill + "fence.proxy.async.shared::cta;\nbar.sync 0;\nsetp.ne.b32 %p1, %r7, 0;\n@%p1 ret;\n"
                                  "cp.async.bulk.global.shared::cta.bulk_group [%d8], [tile], 256;\n"
                                  "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
                                  "ld.global.b32 %r0, [%d8+252];\nst.shared.b32 [tile], 1;\n";
const std::string rewritten =
    "st.shared.v4.b32 [tile], {%r7, %r7, %r7, %r7};\nfence.proxy.async;\n"
    "cp.async.bulk.global.shared::cta.bulk_group [%d8], [tile], 16;\ncp.async.bulk.commit_group;\n"
    "cp.async.bulk.wait_group.read 0;\nst.shared.b32 [tile], 1;\n";

const Litmus stores[] = {
    {"a proxy fence", two, stored, "fence.proxy.async.shared::cta;", "", ""},
    {"a proxy fence of that memory", two, stored, "fence.proxy.async.shared::cta", "fence.proxy.async.global", ""},
    {"a proxy fence behind the write", two, stored, "st.shared.b32 [%r4], %r7;\nfence.proxy.async.shared::cta;",
     "fence.proxy.async.shared::cta;\nst.shared.b32 [%r4], %r7;", ""},
    {"a barrier of those who write", two, stored, "bar.sync 0;", "", ""},
    {"a group that is committed", two, stored, "cp.async.bulk.commit_group;", "", ""},
    {"a wait for the group", two, stored, "cp.async.bulk.wait_group 0;", "", ""},
    {"a wait for that group", two, stored, "wait_group 0", "wait_group 1", ""},
    {"a wait for what the group writes", two, stored, "wait_group 0", "wait_group.read 0", ""},
    {"a wait for what the group reads", one, rewritten, "cp.async.bulk.wait_group.read 0;", "", ""},
};

TEST(Litmus, CopiesToGlobalMemory) {
  for (const Litmus &litmus : stores)
    check(litmus);
}

/// A thread's own words, and words of all.
const std::string fetched =
    "mul.wide.u32 %d0, %r7, 16; add.s64 %d0, %d9, %d0; shl.b32 %r4, %r7, 4; xor.b32 %r3, %r4, 512;\n"
    "add.u32 %r4, %r4, %r6; add.u32 %r3, %r3, %r6;\ncp.async.cg.shared.global [%r4], [%d0], 16;\n"
    "cp.async.commit_group;\ncp.async.ca.shared.global [%r4+2048], [%d0], 8, 4;\ncp.async.commit_group;\n"
    "cp.async.wait_group 1;\nbar.sync 0;\nld.shared.b32 %r0, [%r3];\ncp.async.wait_all;\nld.shared.b32 %r1, "
    "[%r4+2052];\n";
const std::string counted =
    made("64") +
    "shl.b32 %r4, %r7, 2; xor.b32 %r3, %r4, 128; add.u32 %r4, %r4, %r6; add.u32 %r3, %r3, %r6;\n"
    "cp.async.ca.shared.global [%r4], [%d9], 4;\ncp.async.mbarrier.arrive.noinc.shared.b64 [tile+4088];\n" +
    phase("W", "0") + "ld.shared.b32 %r0, [%r3];\n";
/// CTA 0 sends words to CTA 1, which counts their bytes.
const std::string sent =
    "mbarrier.init.shared.b64 [tile+4088], 1;\nfence.mbarrier_init.release.cluster;\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [tile+4088], 16;\nbarrier.cluster.arrive.aligned;\n"
    "barrier.cluster.wait.aligned;\nsetp.ne.b32 %p2, %r9, 0;\n@!%p2 bra Send;\n" +
    phase("W", "0") +
    "ld.shared.b32 %r0, [tile+8];\nbra End;\nSend: st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
    "[%r5], {%r6, %r6, %r6, %r6}, [%r5+4088];\nEnd: barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
const std::string reduced =
    "st.shared.v4.b32 [tile], {%r9, %r9, %r9, %r9};\nfence.proxy.async.shared::cta;\n"
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d8], [tile], 16;\ncp.async.bulk.commit_group;\n"
    "cp.async.bulk.wait_group 0;\n";

const Litmus threads[] = {
    {"a wait for the group", two, fetched, "cp.async.wait_group 1;", "", ""},
    {"a wait for that group", two, fetched, "cp.async.wait_group 1;", "cp.async.wait_group 2;", ""},
    {"a group that is committed", two, fetched, "cp.async.commit_group;", "", ""},
    {"a barrier of those who have waited", two, fetched, "bar.sync 0;", "", ""},
    {"a wait before the barrier", two, fetched, "cp.async.wait_group 1;\nbar.sync 0;",
     "bar.sync 0;\ncp.async.wait_group 1;", ""},
    {"a wait for all", two, fetched, "cp.async.wait_all;", "", ""},
    {"a wait at the mbarrier", two, counted, phase("W", "0"), "", ""},
    {"an arrival that is expected", two, counted, ".noinc", "", "no w"},
    {"an arrival behind the copy", two, counted, "cp.async.mbarrier.arrive.noinc.shared.b64 [tile+4088]",
     "mbarrier.arrive.shared.b64 _, [tile+4088]", ""},
    {"a wait for what is sent", cluster, sent, phase("W", "0"), "", ""},
    {"the bytes that are sent", cluster, sent, "[tile+4088], 16", "[tile+4088], 12", "no w"},
    {"sums of several CTAs",
     {2, 1, 0, 1},
     reduced,
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32",
     "cp.async.bulk.global.shared::cta.bulk_group",
     ""},
    {"a proxy fence before a sum", {2, 1, 0, 1}, reduced, "fence.proxy.async.shared::cta;", "", ""},
};

TEST(Litmus, CopiesOfThreads) {
  for (const Litmus &litmus : threads)
    check(litmus);
}

/// m64n8k16 of bf16: A at tile, B at tile + 2048.
const std::string multiplied =
    "shl.b32 %r4, %r7, 4; add.u32 %r4, %r4, %r6; mov.b32 %r0, 0x3f803f80; mov.b32 %f0, 0f00000000;\n"
    "mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; setp.eq.b32 %p1, %r7, %r7; setp.ge.u32 %p0, %r7, 16;\n"
    "st.shared.v4.b32 [%r4], {%r0, %r0, %r0, %r0};\n@!%p0 st.shared.v4.b32 [%r4+2048], {%r0, %r0, %r0, %r0};\n"
    "fence.proxy.async.shared::cta;\nbar.sync 0;\nmov.b64 %d0, 0x0000001000080040; mov.b64 %d1, 0x00000010000800c0;\n"
    "wgmma.fence.sync.aligned;\n"
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %d0, %d1, %p1, 1, 1, 0, 0;\n"
    "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nadd.f32 %f0, %f0, %f1;\n"
    "bar.sync 0; // read\n@!%p0 st.shared.v4.b32 [%r4+2048], {%r0, %r0, %r0, %r0};\n";

const Litmus products[] = {
    {"a proxy fence", warpgroup, multiplied, "fence.proxy.async.shared::cta;", "", ""},
    {"a barrier of those who write", warpgroup, multiplied, "bar.sync 0;", "", ""},
    {"a fence of registers", warpgroup, multiplied, "wgmma.fence.sync.aligned;", "",
     "its registers were written since the last wgmma.fence"},
    {"a group that is committed", warpgroup, multiplied, "wgmma.commit_group.sync.aligned;", "",
     "it touches a register of a wgmma that goes on"},
    {"a wait", warpgroup, multiplied, "wgmma.wait_group.sync.aligned 0;", "",
     "it touches a register of a wgmma that goes on"},
    {"a wait for that group", warpgroup, multiplied, "wgmma.wait_group.sync.aligned 0;",
     "wgmma.wait_group.sync.aligned 1;", "it touches a register of a wgmma that goes on"},
    {"a wait of the other warps", warpgroup, multiplied, "bar.sync 0; // read", "", ""},
};

TEST(Litmus, MatrixProducts) {
  for (const Litmus &litmus : products)
    check(litmus);
}

} // namespace
