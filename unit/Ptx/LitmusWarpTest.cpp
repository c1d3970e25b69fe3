// Litmus kernels of one warp: its lanes are threads like any other, and only bar.warp.sync, a barrier, or a release and
// an acquire order what they do.
#include "Litmus.h"

using namespace k2c;
using namespace k2c::ptx;

namespace {

const Shape warp{1, 1, 0}, two{1, 2, 0};

const std::string meet = "bar.warp.sync -1;\n", begin = "setp.eq.b32 %p1, %r8, 0;\n";

/// Some lanes do the one, and then some do the other.
std::string both(const std::string &one, const std::string &other) { return begin + one + meet + other; }

const Litmus lanes[] = {
    {"lane 0 stores to shared memory, all load", warp,
     both("@%p1 st.shared.b32 [tile], 7;\n", "ld.shared.b32 %r0, [tile];"), meet, "", ""},
    {"lane 0 stores to global memory, all load", warp,
     both("@%p1 st.global.b32 [%d8], 7;\n", "ld.global.b32 %r0, [%d8];"), meet, "", ""},
    {"lane 0 stores by a generic address, all load", warp, both("@%p1 st.b32 [%d8], 7;\n", "ld.b32 %r0, [%d8];"), meet,
     "", ""},
    {"all load from shared memory, lane 0 stores", warp,
     "@!%p15 st.shared.b32 [tile], 1;\n" +
         both("bar.sync 0;\nld.shared.b32 %r0, [tile];\n", "@%p1 st.shared.b32 [tile], 7;"),
     meet, "", ""},
    {"all load from global memory, lane 0 stores", warp,
     both("ld.global.b32 %r0, [%d8];\n", "@%p1 st.global.b32 [%d8], 7;"), meet, "", ""},
    {"lane 31 stores, all load", warp,
     "setp.eq.b32 %p1, %r8, 31;\n@%p1 st.shared.b32 [tile], 7;\n" + meet + "ld.shared.b32 %r0, [tile];", meet, "", ""},
    {"lane 0 stores, lane 1 loads", warp,
     both("@%p1 st.shared.b32 [tile], 7;\n", "setp.eq.b32 %p2, %r8, 1; @%p2 ld.shared.b32 %r0, [tile];"), meet, "", ""},
    {"lane 0 stores, all store", warp, both("@%p1 st.shared.b32 [tile], 7;\n", "st.shared.b32 [tile], 8;"), meet, "",
     ""},
    {"all store, lane 0 stores", warp, both("st.shared.b32 [tile], 8;\n", "@%p1 st.shared.b32 [tile], 7;"), meet, "",
     ""},
    {"all store, lane 0 loads", warp, both("st.shared.b32 [tile], 8;\n", "@%p1 ld.shared.b32 %r0, [tile];"), meet, "",
     ""},
    {"all store, all load", warp, both("st.shared.b32 [tile], 8;\n", "ld.shared.b32 %r0, [tile];"), meet, "", ""},
    {"all store, all store again", warp, both("st.shared.b32 [tile], 8;\n", "st.shared.b32 [tile], 9;"), meet, "", ""},
    {"lane 0 loads, all store", warp, both("@%p1 ld.global.b32 %r0, [%d8];\n", "st.global.b32 [%d8], 7;"), meet, "",
     ""},
    {"lane 0 clears a counter, all add", warp,
     both("@%p1 st.shared.b32 [tile], 0;\n", "atom.shared.add.u32 %r0, [tile], 1;"), meet, "", ""},
    {"lane 0 clears a counter of global memory, all add", warp,
     both("@%p1 st.global.b32 [%d8], 0;\n", "red.global.add.u32 [%d8], 1;"), meet, "", ""},
    {"all add, lane 0 loads", warp, both("red.global.add.u32 [%d8], 1;\n", "@%p1 ld.global.b32 %r0, [%d8];"), meet, "",
     ""},
    {"all add, lane 0 takes the sum", warp, both("red.global.add.u32 [%d8], 1;\n", "@%p1 st.global.b32 [%d8], 0;"),
     meet, "", ""},
    {"lane 0 acquires for all, who load one word", two,
     gives("@!%p15 st.global.b32 [%d8], 7;\n@!%p15 st.release.gpu.global.b32 [%d8+64], 1;") +
         "setp.eq.b32 %p1, %r8, 0;\nmov.b32 %r1, 0;\nW: @%p1 ld.acquire.gpu.global.b32 %r1, [%d8+64];\n"
         "shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\nsetp.ne.b32 %p2, %r2, 1;\n@%p2 bra W;\n" +
         meet + "ld.global.b32 %r0, [%d8];",
     meet, "", ""},
    {"a vector, all load parts of it", warp,
     both("@%p1 st.shared.v4.b32 [tile], {%r8, %r8, %r8, %r8};\n",
          "and.b32 %r4, %r8, 3; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r6; ld.shared.b32 %r0, [%r4];"),
     meet, "", ""},
    {"bytes of a word, all load it", warp,
     both("setp.lt.u32 %p2, %r8, 4; add.u32 %r4, %r6, %r8; @%p2 st.shared.b8 [%r4], 1;\n",
          "ld.shared.b32 %r0, [tile];"),
     meet, "", ""},
    {"lanes of one mask", warp,
     begin + "@%p1 st.shared.b32 [tile], 7;\nmov.b32 %r1, -1;\nbar.warp.sync %r1;\nld.shared.b32 %r0, [tile];",
     "mov.b32 %r1, -1;", "setp.lt.u32 %p3, %r8, 16; selp.b32 %r1, 0xffff, 0xffff0000, %p3;", ""},
    {"a barrier of the CTA orders lanes", two,
     "setp.eq.b32 %p1, %r7, 0; @%p1 st.shared.b32 [tile], 7;\nbar.sync 0;\nld.shared.b32 %r0, [tile];", "bar.sync 0;",
     "", ""},
    {"a barrier before what it orders", warp, both("@%p1 st.shared.b32 [tile], 7;\n", "ld.shared.b32 %r0, [tile];"),
     "@%p1 st.shared.b32 [tile], 7;\n" + meet, meet + "@%p1 st.shared.b32 [tile], 7;\n", ""},
    {"a store again behind the barrier", warp, both("@%p1 st.shared.b32 [tile], 7;\n", "ld.shared.b32 %r0, [tile];"),
     meet, meet + "@%p1 st.shared.b32 [tile], 9;\n", ""},
    {"a vote orders no memory", warp, both("@%p1 st.shared.b32 [tile], 7;\n", "ld.shared.b32 %r0, [tile];"), meet,
     "vote.sync.any.pred %p2, %p1, -1;\n", ""},
    {"an election orders no memory", warp, both("@%p1 st.shared.b32 [tile], 7;\n", "ld.shared.b32 %r0, [tile];"), meet,
     "elect.sync _|%p2, -1;\n", ""},
    {"a match orders no memory", warp, both("@%p1 st.shared.b32 [tile], 7;\n", "ld.shared.b32 %r0, [tile];"), meet,
     "match.any.sync.b32 %r1, %r8, -1;\n", ""},
    {"a reduction over lanes orders no memory", warp,
     both("@%p1 st.shared.b32 [tile], 7;\n", "ld.shared.b32 %r0, [tile];"), meet, "redux.sync.add.u32 %r1, %r8, -1;\n",
     ""},
    {"a fence alone orders no lanes", warp, both("@%p1 st.shared.b32 [tile], 7;\n", "ld.shared.b32 %r0, [tile];"), meet,
     "fence.acq_rel.cta;\n", ""},
    {"lanes that part and meet", warp,
     begin + "@!%p1 bra Met;\nst.shared.b32 [tile], 7;\nMet:\n" + meet + "ld.shared.b32 %r0, [tile];", meet, "", ""},
    {"a release and an acquire order lanes", warp,
     begin + "@!%p1 bra Take;\nst.shared.b32 [tile], 7;\nst.release.cta.global.b32 [%d8+64], 1;\nbra End;\nTake: "
             "ld.acquire.cta.global.b32 %r1, [%d8+64];\nsetp.ne.b32 %p2, %r1, 1;\n@%p2 bra Take;\n"
             "ld.shared.b32 %r0, [tile];\nEnd:",
     "ld.acquire.cta.global", "ld.relaxed.cta.global", ""},
    {"volatile accesses", warp, begin + "@%p1 st.volatile.global.b32 [%d8], 7;\nld.volatile.global.b32 %r0, [%d8];",
     "st.volatile", "st", ""},
};

TEST(LitmusWarp, Lanes) {
  for (const Litmus &litmus : lanes)
    check(litmus);
}

} // namespace
