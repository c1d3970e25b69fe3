// Litmus kernels of barriers: of a CTA, of warps, of clusters, and mbarriers in shared memory.
#include "Litmus.h"

using namespace k2c;
using namespace k2c::ptx;

namespace {

const Shape warp{1, 1, 0}, two{1, 2, 0}, three{1, 3, 0}, cluster{2, 1, 2, 1};

/// Own word of tile in %r4, that of the thread 32 away in %r3, that of the neighbour in %r2.
const std::string words = "shl.b32 %r4, %r7, 2; xor.b32 %r3, %r4, 128; xor.b32 %r2, %r4, 4; add.u32 %r4, %r4, %r6;\n"
                          "add.u32 %r3, %r3, %r6; add.u32 %r2, %r2, %r6;\n";
const std::string write = words + "st.shared.b32 [%r4], %r7;\n";
const std::string handed = words + "setp.ne.b32 %p0, %r9, 0;\n@%p0 bra Take;\nst.shared.b32 [%r4], 1;\n"
                                   "bar.arrive 1, 64;\nret;\nTake: bar.sync 1, 64;\nld.shared.b32 %r0, [%r3];";

const Litmus barriers[] = {
    {"a barrier between writes and reads", two, write + "bar.sync 0;\nld.shared.b32 %r0, [%r3];", "bar.sync 0;", "",
     ""},
    {"a barrier between reads and writes", two,
     write + "bar.sync 0;\nld.shared.b32 %r0, [%r3];\nbar.sync 0; // again\nst.shared.b32 [%r4], 1;",
     "bar.sync 0; // again", "", ""},
    {"a barrier that others pass", two, handed, "Take: bar.sync 1, 64;", "Take: bar.sync 2, 32;", ""},
    {"a barrier of the same number", two, handed, "bar.arrive 1, 64", "bar.arrive 2, 64", "no warp can go on"},
    {"a barrier of as many threads as come", two, handed, "bar.sync 1, 64", "bar.sync 1, 96",
     "threads for who has arrived"},
    {"a barrier of all who read", three,
     write +
         "setp.eq.b32 %p0, %r9, 2;\n@%p0 bra Read;\nbar.sync 0; ret;\nRead: bar.sync 0;\nld.shared.b32 %r0, [tile];",
     "bar.sync 0; ret;\nRead: bar.sync 0;", "bar.sync 1, 64; ret;\nRead: bar.sync 2, 32;", ""},
    {"arrivals in a barrier that is long enough", two, handed, "st.shared.b32 [%r4], 1;\nbar.arrive 1, 64;",
     "bar.arrive 1, 64;\nst.shared.b32 [%r4], 1;", ""},
    {"lanes of a warp", warp, write + "bar.warp.sync -1;\nld.shared.b32 %r0, [%r2];", "bar.warp.sync -1;", "", ""},
    {"lanes of a warp that are in one mask", warp,
     write + "mov.b32 %r1, -1;\nbar.warp.sync %r1;\nxor.b32 %r2, %r2, 64; ld.shared.b32 %r0, [%r2];",
     "mov.b32 %r1, -1;", "setp.lt.u32 %p0, %r8, 16; selp.b32 %r1, 0xffff, 0xffff0000, %p0;", ""},
    {"a shuffle orders no memory", warp, write + "bar.warp.sync -1;\nld.shared.b32 %r0, [%r2];", "bar.warp.sync -1;",
     "shfl.sync.idx.b32 %r1, %r7, 0, 31, -1;", ""},
    {"a vote orders no memory", warp, write + "bar.warp.sync -1;\nld.shared.b32 %r0, [%r2];", "bar.warp.sync -1;",
     "vote.sync.ballot.b32 %r1, %p15, -1;", ""},
};

TEST(Litmus, Barriers) {
  for (const Litmus &litmus : barriers)
    check(litmus);
}

/// An mbarrier of `count` arrivals at tile + 4088; warps hand words to each other over it, in phases.
std::string withBarrier(const std::string &count, const std::string &body) {
  return words + "setp.ne.b32 %p1, %r7, 0;\n@%p1 bra Made;\nmbarrier.init.shared.b64 [tile+4088], " + count +
         ";\nMade: bar.sync 0;\n" + body;
}
std::string phase(const std::string &name, const std::string &parity) {
  return name + ": mbarrier.try_wait.parity.shared.b64 %p0, [tile+4088], " + parity + ";\n@!%p0 bra " + name + ";\n";
}
const std::string arrive = "st.shared.b32 [%r4], %r7;\nmbarrier.arrive.shared.b64 _, [tile+4088];\n",
                  take = "ld.shared.b32 %r0, [%r3];\n";
const std::string both = withBarrier("64", arrive + phase("W", "0") + take);
const std::string twice =
    withBarrier("64", arrive + phase("W", "0") + take + "mbarrier.arrive.shared.b64 _, [tile+4088];\n" +
                          phase("V", "1") + "st.shared.b32 [%r4], 1;");
const std::string relaxed =
    withBarrier("64", "st.shared.b32 [%r4], %r7;\nfence.acq_rel.cta; // give\n"
                      "mbarrier.arrive.relaxed.cta.shared.b64 _, [tile+4088];\n"
                      "W: mbarrier.try_wait.parity.relaxed.cta.shared.b64 %p0, [tile+4088], 0;\n"
                      "@!%p0 bra W;\nfence.acq_rel.cta; // take\n" +
                          take);

const Litmus mbarriers[] = {
    {"a wait", two, both, phase("W", "0"), "", ""},
    {"as many arrivals as come", two, both, "[tile+4088], 64", "[tile+4088], 32", ""},
    {"no more arrivals than come", two, both, "[tile+4088], 64", "[tile+4088], 65", "no w"},
    {"no more arrivals than a phase has", two, both, "_, [tile+4088];", "_, [tile+4088], 3;",
     "more have arrived at an mbarrier than the 64 of a phase"},
    {"one lane that is elected", warp,
     withBarrier("1", "elect.sync _|%p0, -1;\n@%p0 mbarrier.arrive.shared.b64 _, [tile+4088];\n" + phase("W", "0")),
     "@%p0", "", "no warp can go on"},
    {"the parity of the phase", two, both, "[tile+4088], 0;", "[tile+4088], 1;", ""},
    {"the parity of the next phase", two, twice, "[tile+4088], 1;", "[tile+4088], 0;", ""},
    {"an arrival in the next phase", two, twice, take + "mbarrier.arrive.shared.b64 _, [tile+4088];\n", take, "no w"},
    {"an arrival behind what it gives", two, both, arrive,
     "mbarrier.arrive.shared.b64 _, [tile+4088];\nst.shared.b32 [%r4], %r7;\n", ""},
    {"an arrival that releases", two, both, "mbarrier.arrive.shared", "mbarrier.arrive.relaxed.cta.shared", ""},
    {"a wait that acquires", two, both, "try_wait.parity.shared", "try_wait.parity.relaxed.cta.shared", ""},
    {"relaxed, with a fence of who gives", two, relaxed, "fence.acq_rel.cta; // give", "", ""},
    {"relaxed, with a fence of who takes", two, relaxed, "fence.acq_rel.cta; // take", "", ""},
    {"a barrier behind mbarrier.init", two, both, "Made: bar.sync 0;",
     "Made:", ", and nothing orders it with its mbarrier.init; let a barrier be between them"},
};

TEST(Litmus, MBarriers) {
  for (const Litmus &litmus : mbarriers)
    check(litmus);
}

const std::string meet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
const std::string begun = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned; // begun\n";
const std::string visited = begun + "st.shared.b32 [tile], %r9;\n" + meet +
                            "setp.eq.b32 %p0, %r9, 0;\n@%p0 bra End;\n"
                            "ld.shared::cluster.b32 %r0, [%r5];\nEnd:\n"
                            "barrier.cluster.arrive.aligned; // end\nbarrier.cluster.wait.aligned;\n";
const std::string unordered = begun +
                              "st.shared.b32 [tile], %r9;\nfence.acq_rel.cluster;\n"
                              "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n"
                              "ld.shared::cluster.b32 %r0, [%r5];\n" +
                              meet;
const std::string sent = begun + "st.shared::cluster.b32 [%r5], %r9;\n" + meet + "ld.shared.b32 %r0, [tile];";
const std::string shown = "setp.ne.b32 %p0, %r9, 0;\n@%p0 bra Take;\nst.release.cluster.global.b32 [%d8+64], 1;\n"
                          "bra End;\nTake:\n" +
                          await("ld.acquire.cluster.global.b32", "64") + "st.shared::cluster.b32 [%r5], %r9;\nEnd:\n" +
                          meet;
/// CTA 0 gives data and an arrival to CTA 1.
const std::string remote =
    "mbarrier.init.shared.b64 [tile+4088], 1;\nfence.mbarrier_init.release.cluster;\n"
    "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\nsetp.ne.b32 %p0, %r9, 0;\n"
    "@%p0 bra Take;\nst.shared::cluster.b32 [%r5], 5;\n"
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5+4088];\nbra End;\nTake:\n"
    "W: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p1, [tile+4088], 0;\n@!%p1 bra W;\n"
    "ld.shared.b32 %r0, [tile];\nEnd:\n" +
    meet;
/// CTA 0 has read what CTA 1 writes behind its arrival: reads are ordered by the CTA's scope, too.
const std::string freed =
    "st.shared.b32 [tile], %r9; mbarrier.init.shared.b64 [tile+4088], 1;\nbarrier.cluster.arrive.aligned;\n"
    "barrier.cluster.wait.aligned;\nsetp.ne.b32 %p0, %r9, 0;\n@%p0 bra Take;\nld.shared::cluster.b32 %r0, [%r5];\n"
    "mbarrier.arrive.shared::cluster.b64 _, [%r5+4088];\nbra End;\nTake:\n"
    "W: mbarrier.try_wait.parity.shared.b64 %p1, [tile+4088], 0;\n@!%p1 bra W;\nst.shared.b32 [tile], 3;\nEnd:\n" +
    meet;

const Litmus clusters[] = {
    {"a barrier of the cluster", cluster, visited, meet, "", ""},
    {"an arrival that releases", cluster, visited, "cluster.arrive.aligned", "cluster.arrive.relaxed.aligned", ""},
    {"a wait behind the arrival", cluster, unordered,
     "barrier.cluster.wait.aligned;\nld.shared::cluster.b32 %r0, [%r5];",
     "ld.shared::cluster.b32 %r0, [%r5];\nbarrier.cluster.wait.aligned;", ""},
    {"a CTA is there while others read it", cluster, visited,
     "barrier.cluster.arrive.aligned; // end\nbarrier.cluster.wait.aligned;\n", "",
     "its CTA ends, and nothing orders it"},
    {"a CTA that has ended is not read", cluster, visited,
     "barrier.cluster.arrive.aligned; // end\nbarrier.cluster.wait.aligned;\n", "",
     "of a CTA that has ended; let a barrier of the cluster be before its end"},
    {"a fence before a relaxed arrival", cluster, unordered, "fence.acq_rel.cluster;", "", ""},
    {"a fence of a scope that holds the cluster", cluster, unordered, "fence.acq_rel.cluster", "fence.acq_rel.cta", ""},
    {"a barrier behind a remote store", cluster, sent, meet, "", ""},
    {"a barrier before a remote store", cluster, sent, begun, "",
     "of a CTA that may not have begun; let a barrier of the cluster be before"},
    {"a release shows that its CTA has begun", cluster, shown, "ld.acquire", "ld.relaxed", "that may not have begun"},
    {"a remote arrival in the cluster's scope", cluster, remote, "mbarrier.arrive.release.cluster", "mbarrier.arrive",
     ""},
    {"a remote arrival that releases", cluster, remote, "mbarrier.arrive.release", "mbarrier.arrive.relaxed", ""},
    {"a wait in the cluster's scope", cluster, remote, "try_wait.parity.acquire.cluster", "try_wait.parity", ""},
    {"a fence behind mbarrier.init", cluster, remote, "fence.mbarrier_init.release.cluster;", "",
     "it uses the mbarrier at shared address 5112, and nothing orders it with its mbarrier.init"},
    {"a wait for who reads", cluster, freed, "@!%p1 bra W;", "", ""},
};

TEST(Litmus, Clusters) {
  for (const Litmus &litmus : clusters)
    check(litmus);
}

} // namespace
