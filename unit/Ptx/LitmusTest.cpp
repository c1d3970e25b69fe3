// Litmus kernels of global memory: what is released and acquired, fences, scopes, and orders that only fence.sc gives.
#include "Litmus.h"

using namespace k2c;
using namespace k2c::ptx;

namespace {

const Shape two{2, 1, 0, 1}, three{3, 1, 0, 1}, four{4, 1, 0, 1}, pair{2, 1, 2, 1}, warps{1, 2, 0, 1};

const std::string data = "st.global.b32 [%d8], 5;\n", read = "ld.global.b32 %r2, [%d8];\n";
const std::string released =
    gives(data + "st.release.gpu.global.b32 [%d8+64], 1;") + await("ld.acquire.gpu.global.b32", "64") + read;
const std::string fenced = gives(data + "fence.acq_rel.gpu;\nst.relaxed.gpu.global.b32 [%d8+64], 1;") +
                           await("ld.relaxed.gpu.global.b32", "64") + "fence.acq_rel.gpu; // take\n" + read;

const Litmus passing[] = {
    {"a release", two, released, "st.release.gpu", "st.relaxed.gpu", ""},
    {"a release is strong", two, released, "st.release.gpu.global", "st.global", ""},
    {"an acquire", two, released, "ld.acquire.gpu", "ld.relaxed.gpu", ""},
    {"a release of a scope that holds both", two, released, "st.release.gpu", "st.release.cta", ""},
    {"an acquire of a scope that holds both", two, released, "ld.acquire.gpu", "ld.acquire.cta", ""},
    {"a scope of the cluster is not enough beyond it", two, released, "st.release.gpu", "st.release.cluster", ""},
    {"the cluster's scope in a cluster", pair,
     gives(data + "st.release.cluster.global.b32 [%d8+64], 1;") + await("ld.acquire.cluster.global.b32", "64") + read,
     "st.release.cluster", "st.release.cta", ""},
    {"the CTA's scope in a CTA", warps,
     "@%p15 ret;\n" + gives(data + "st.release.cta.global.b32 [%d8+64], 1;") +
         await("ld.acquire.cta.global.b32", "64") + read,
     "st.release.cta.global", "st.global", ""},
    {"a fence before the flag", two, fenced, "fence.acq_rel.gpu;\nst.relaxed.gpu.global.b32 [%d8+64], 1;",
     "st.relaxed.gpu.global.b32 [%d8+64], 1;\nfence.acq_rel.gpu;", ""},
    {"a fence of who gives", two, fenced, "fence.acq_rel.gpu;\nst", "st", ""},
    {"a fence of who takes", two, fenced, "fence.acq_rel.gpu; // take", "", ""},
    {"a fence of a scope that holds who takes", two, fenced, "fence.acq_rel.gpu;\nst", "fence.acq_rel.cta;\nst", ""},
    {"a fence of a scope that holds who gives", two, fenced, "fence.acq_rel.gpu; // take", "fence.acq_rel.cta;", ""},
    {"a fence that acquires", two, fenced, "fence.acq_rel.gpu; // take", "fence.release.gpu;", ""},
    {"a fence that releases", two, fenced, "fence.acq_rel.gpu;\nst", "fence.acquire.gpu;\nst", ""},
    {"a flag that is strong", two, fenced, "st.relaxed.gpu.global", "st.global", ""},
    {"a flag in a scope that holds both", two, fenced, "st.relaxed.gpu", "st.relaxed.cta", ""},
    {"membar of the device", two,
     gives(data + "membar.gl;\nst.volatile.global.b32 [%d8+64], 1;") + await("ld.volatile.global.b32", "64") +
         "membar.gl;\n" + read,
     "membar.gl;\nst", "membar.cta;\nst", ""},
    {"a fence of the data of others", three, // a fence passes on what its thread has acquired
     "setp.eq.b32 %p1, %r9, 2;\n@%p1 bra Last;\n" + gives(data + "st.release.gpu.global.b32 [%d8+64], 1;") +
         await("ld.acquire.gpu.global.b32", "64") + "st.release.gpu.global.b32 [%d8+68], 1;\nret;\nLast:\n" +
         await("ld.acquire.gpu.global.b32", "68") + read,
     "ld.acquire.gpu", "ld.relaxed.gpu", ""},
};

TEST(Litmus, Passing) {
  for (const Litmus &litmus : passing)
    check(litmus);
}

/// Who comes last reads what the other has left at its word.
const std::string last = "mul.wide.u32 %d0, %r9, 4; add.s64 %d0, %d8, %d0; xor.b32 %r2, %r9, 1;\n"
                         "mul.wide.u32 %d1, %r2, 4; add.s64 %d1, %d8, %d1; st.global.b32 [%d0], 7;\n"
                         "atom.acq_rel.gpu.global.add.u32 %r1, [%d8+64], 1;\nsetp.ne.b32 %p0, %r1, 1;\n@%p0 ret;\n"
                         "ld.global.b32 %r3, [%d1];";
const std::string sequence =
    "setp.eq.b32 %p1, %r9, 2;\n@%p1 bra Last;\n" + gives(data + "st.release.gpu.global.b32 [%d8+64], 1;") +
    "Again: ld.relaxed.gpu.global.b32 %r3, [%d8+64];\nsetp.ne.b32 %p3, %r3, 1;\n@%p3 bra Again;\n"
    "red.relaxed.gpu.global.add.u32 [%d8+64], 1;\nret;\nLast:\n" +
    await("ld.acquire.gpu.global.b32", "64", "2") + read;

const Litmus atomics[] = {
    {"a counter that releases", two,
     gives(data + "red.release.gpu.global.add.u32 [%d8+64], 1;") + await("ld.acquire.gpu.global.b32", "64") + read,
     "red.release", "red.relaxed", ""},
    {"an exchange that acquires", two,
     gives(data + "st.release.gpu.global.b32 [%d8+64], 1;") +
         "Wait: atom.acquire.gpu.global.cas.b32 %r1, [%d8+64], 1, 2;\nsetp.ne.b32 %p2, %r1, 1;\n@%p2 bra Wait;\n" +
         read,
     "atom.acquire", "atom.relaxed", ""},
    {"who comes last acquires", two, last, "atom.acq_rel", "atom.release", ""},
    {"who comes last has been given to", two, last, "atom.acq_rel", "atom.acquire", ""},
    {"who comes last, by its default order", two, last, "atom.acq_rel.gpu.global", "atom.global", ""},
    {"an atomic operation goes on with a release", three, sequence, "red.relaxed.gpu.global.add.u32 [%d8+64], 1;",
     "st.relaxed.gpu.global.b32 [%d8+64], 2;", ""},
    {"scopes that hold each other", two, "red.relaxed.gpu.global.add.u32 [%d8], 5;", ".gpu", ".cta", ""},
    {"strong accesses", two, "ld.relaxed.gpu.global.b32 %r1, [%d8]; st.relaxed.gpu.global.b32 [%d8], 5;",
     "ld.relaxed.gpu.global", "ld.global", ""},
    {"volatile accesses", two, "ld.volatile.global.b32 %r1, [%d8]; st.volatile.global.b32 [%d8], 5;",
     "st.volatile.global", "st.global", ""},
    {"accesses of the same bytes", two, "st.relaxed.gpu.global.b64 [%d8], 5; ld.relaxed.gpu.global.b64 %d0, [%d8];",
     "ld.relaxed.gpu.global.b64 %d0", "ld.relaxed.gpu.global.b32 %r0", ""},
    {"reads of two", two, "ld.global.b32 %r1, [%d8+12];", "12];", "12]; st.global.b32 [%d8+12], 1;", ""},
    {"words of two", two, "mul.wide.u32 %d0, %r9, 4; add.s64 %d0, %d0, %d8; st.global.b32 [%d0], 1;", "st.global.b32",
     "st.global.b64", "which is no multiple of that"},
    {"bytes of a word", two, "cvt.u64.u32 %d0, %r9; add.s64 %d0, %d0, %d8; st.global.b8 [%d0], 1;", "1;",
     "1; ld.global.b16 %h0, [%d8];", ""},
};

TEST(Litmus, Atomics) {
  for (const Litmus &litmus : atomics)
    check(litmus);
}

/// Both say that they come, and go on if the other has not: one at a time does.
const std::string buffered = "mul.wide.u32 %d0, %r9, 4; add.s64 %d0, %d8, %d0; xor.b32 %r2, %r9, 1;\n"
                             "mul.wide.u32 %d1, %r2, 4; add.s64 %d1, %d8, %d1;\n"
                             "st.relaxed.gpu.global.b32 [%d0+64], 1;\nfence.sc.gpu;\n"
                             "ld.relaxed.gpu.global.b32 %r1, [%d1+64];\nsetp.ne.b32 %p0, %r1, 0;\n@%p0 ret;\n"
                             "st.global.b32 [%d8], %r9;";
/// Roles 0 and 1 write, 2 and 3 read in opposite orders; who sees the first and not the second goes on.
const std::string disagreed =
    "mul.wide.u32 %d0, %r9, 4; add.s64 %d0, %d8, %d0; setp.ge.u32 %p0, %r9, 2;\n@%p0 bra Read;\n"
    "st.relaxed.gpu.global.b32 [%d0+64], 1;\nret;\nRead: and.b32 %r2, %r9, 1; xor.b32 %r3, %r2, 1;\n"
    "mul.wide.u32 %d1, %r2, 4; add.s64 %d1, %d8, %d1; mul.wide.u32 %d2, %r3, 4; add.s64 %d2, %d8, %d2;\n"
    "ld.relaxed.gpu.global.b32 %r1, [%d1+64];\nfence.sc.gpu;\nld.relaxed.gpu.global.b32 %r4, [%d2+64];\n"
    "setp.eq.b32 %p1, %r1, 0; @%p1 ret; setp.ne.b32 %p1, %r4, 0; @%p1 ret; st.global.b32 [%d8], %r9;";
const std::string ordered =
    gives("st.relaxed.gpu.global.b32 [%d8+64], 1;\nfence.acq_rel.gpu;\nst.relaxed.gpu.global.b32 [%d8+68], 1;") +
    "ld.relaxed.gpu.global.b32 %r1, [%d8+68];\nfence.acq_rel.gpu; // take\nld.relaxed.gpu.global.b32 %r2, [%d8+64];\n"
    "setp.eq.b32 %p1, %r1, 0; @%p1 ret; setp.ne.b32 %p1, %r2, 0; @%p1 ret; trap;";
const std::string oneWord = gives("st.relaxed.gpu.global.b32 [%d8+64], 1;") +
                            "ld.relaxed.gpu.global.b32 %r1, [%d8+64];\nld.relaxed.gpu.global.b32 %r2, [%d8+64];\n"
                            "setp.le.u32 %p1, %r1, %r2; @%p1 ret; trap;";
const std::string crossed = gives("ld.relaxed.gpu.global.b32 %r1, [%d8+64]; st.relaxed.gpu.global.b32 [%d8+68], 1;") +
                            "ld.relaxed.gpu.global.b32 %r1, [%d8+68]; st.relaxed.gpu.global.b32 [%d8+64], 1;";

const Litmus orders[] = {
    {"store buffering", two, buffered, "fence.sc", "fence.acq_rel", ""},
    {"store buffering without a fence", two, buffered, "fence.sc.gpu;", "", ""},
    {"store buffering, a scope that holds both", two, buffered, "fence.sc.gpu", "fence.sc.cta", ""},
    {"store buffering in a cluster", pair, buffered, "fence.sc.gpu", "fence.sc.cta", ""},
    {"readers agree on two writes", four, disagreed, "fence.sc", "fence.acq_rel", ""},
    {"two writes are seen in their order", two, ordered, "fence.acq_rel.gpu; // take", "", "the kernel traps"},
    {"two writes are made in their order", two, ordered, "fence.acq_rel.gpu;\nst", "st", "the kernel traps"},
    {"a word never goes back", two, oneWord, "ld.relaxed.gpu.global.b32 %r2, [%d8+64]",
     "ld.relaxed.gpu.global.b32 %r2, [%d8+68]", "the kernel traps"},
    {"load buffering of strong accesses", two, crossed, "ld.relaxed.gpu.global", "ld.global", ""},
};

TEST(Litmus, Orders) {
  for (const Litmus &litmus : orders)
    check(litmus);
}

} // namespace
