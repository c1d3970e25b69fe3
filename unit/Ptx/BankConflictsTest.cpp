// What a text alone says of its bank conflicts, beside what a launch counts.
#include "k2c/Ptx/BankConflicts.h"
#include "TestKernel.h"

using namespace k2c;
using namespace k2c::ptx;

namespace {

const std::string begin = "ld.param.u64 %d8, [out]; ld.param.u64 %d9, [in]; mov.u32 %r8, %tid.x; mov.u32 %r6, tile;\n";

bool isShownFree(const std::string &body, const std::string &directives = ".reqntid 64") {
  Expected<Module> module = parse(moduleOf(begin + body, directives), "test.ptx");
  EXPECT_TRUE(module) << module.error().text();
  return module && hasNoBankConflicts(*module, module->functions.front());
}

/// Of stores, where that many threads run it.
uint64_t countedConflicts(const std::string &text, uint32_t threads = 32) {
  TestKernel kernel("");
  kernel.text = text;
  kernel.launch.block = {threads, 1, 1};
  kernel.options.isTrafficCounted = true;
  EXPECT_EQ(kernel.run(), "");
  return kernel.counts.sharedWritten.conflicts;
}

/// A store at base + stride * thread.
std::string at(int stride, const std::string &access = "st.shared.b32 [%r4], 1;") {
  return "mad.lo.u32 %r4, %r8, " + std::to_string(stride) + ", %r6; " + access;
}

TEST(BankConflicts, AreShownToBeNoneWhereALaunchCountsNone) {
  const char *const accesses[] = {"st.shared.b32 [%r4], 1;", "st.shared.v2.b32 [%r4], {%r8, %r8};",
                                  "st.shared.v4.b32 [%r4], {%r8, %r8, %r8, %r8};"};
  for (const int stride : {0, 4, 8, 12, 16, 32, 48, 64, 128})
    for (const std::string access : accesses) {
      const int width = access.find("v4") != access.npos ? 16 : access.find("v2") != access.npos ? 8 : 4;
      if (stride % width != 0)
        continue;
      EXPECT_EQ(isShownFree(at(stride, access)), countedConflicts(moduleOf(begin + at(stride, access))) == 0)
          << access << " by " << stride;
    }
}

TEST(BankConflicts, WarpAndLaneAreOfTheThread) {
  EXPECT_TRUE(isShownFree("shr.u32 %r1, %r8, 5; mul.lo.u32 %r2, %r1, 100; and.b32 %r3, %r8, 31; shl.b32 %r5, %r3, 2;"
                          "add.u32 %r4, %r2, %r5; st.shared.b32 [%r4], 1;"));
  EXPECT_FALSE(isShownFree("shr.u32 %r1, %r8, 4; shl.b32 %r4, %r1, 2; st.shared.b32 [%r4], 1;"));
}

TEST(BankConflicts, AddressesMayGoOnInALoop) {
  const std::string head = at(4, "mov.u32 %r1, 0;\nLOOP:\nst.shared.b32 [%r4], 1; add.u32 %r4, %r4, "),
                    tail = "; add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 9; @%p0 bra LOOP;";
  EXPECT_TRUE(isShownFree(head + "256" + tail));
  EXPECT_FALSE(isShownFree(head + "%r8" + tail));
}

// Lanes that go round more often than others are at another address.
TEST(BankConflicts, LanesThatPartMayBeAnywhere) {
  const std::string head = at(4, "mov.u32 %r1, 0;\nLOOP:\nst.shared.b32 [%r4], 1; add.u32 %r4, %r4, 256; "
                                 "add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, "),
                    tail = "; @%p0 bra LOOP;";
  EXPECT_TRUE(isShownFree(head + "9" + tail));
  EXPECT_FALSE(isShownFree(head + "%r8" + tail));
  EXPECT_TRUE(isShownFree(at(4, "setp.eq.u32 %p0, %r8, 0; @%p0 bra ON;\nst.shared.b32 [%r4], 1;\nON:\n")))
      << "an address that is written once is the same in all lanes that are there";
}

/// A store at base + 4 * thread + 60 * `value`, which has conflicts where lanes have different values.
std::string shiftedBy(const std::string &value) {
  return "mul.lo.u32 %r9, " + value +
         ", 60; mad.lo.u32 %r10, %r8, 4, %r6; add.u32 %r11, %r10, %r9; bar.warp.sync -1; st.shared.b32 [%r11], 1;";
}

// Each lane keeps what it got in its last round.
TEST(BankConflicts, LanesThatPartKeepValuesOfDifferentRounds) {
  const std::string head = "mov.u32 %r2, 0;\nLOOP:\nadd.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, ",
                    tail = "; @%p1 bra LOOP; " + shiftedBy("%r7");
  const std::string parted = head + "%r8; activemask.b32 %r5; ", together = head + "3; mov.b32 %r5, -1; ",
                    mayPart = head + "%r8; mov.b32 %r5, -1; ";
  const char *const exchanges[] = {"shfl.sync.idx.b32 %r7, %r2, 31, 31, %r5",
                                   "vote.sync.ballot.b32 %r1, %p1, %r5; popc.b32 %r7, %r1",
                                   "redux.sync.max.u32 %r7, %r2, %r5"};
  for (const std::string exchange : exchanges) {
    EXPECT_FALSE(isShownFree(parted + exchange + tail)) << exchange;
    EXPECT_NE(countedConflicts(moduleOf(begin + parted + exchange + tail)), 0u) << exchange;
    EXPECT_TRUE(isShownFree(together + exchange + tail)) << exchange;
    EXPECT_EQ(countedConflicts(moduleOf(begin + together + exchange + tail)), 0u) << exchange;
    EXPECT_FALSE(isShownFree(mayPart + exchange + tail)) << "lanes of a mask may meet at different instructions";
  }
}

// The first halves of both warps pass a barrier, and then the second ones: counts are 32 and 0.
TEST(BankConflicts, LanesThatPartPassABarrierInDifferentRounds) {
  const auto body = [](const std::string &round, int threads) {
    return "shr.u32 %r0, %r8, 4; and.b32 %r5, %r0, 1; mov.u32 %r2, 0;\nLOOP:\nsetp.eq.u32 %p1, %r2, 0; "
           "setp.ne.u32 %p3, %r2, " +
           round + "; @%p3 bra ON; barrier.red.popc.u32 %r7, 0, " + std::to_string(threads) +
           ", %p1;\nON:\nbarrier.sync 1; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 2; @%p2 bra LOOP; " +
           "shr.u32 %r1, %r7, 3; " + shiftedBy("%r1");
  };
  EXPECT_TRUE(isShownFree(body("1", 64)));
  EXPECT_EQ(countedConflicts(moduleOf(begin + body("1", 64)), 64), 0u);
  EXPECT_FALSE(isShownFree(body("%r5", 32)));
  EXPECT_NE(countedConflicts(moduleOf(begin + body("%r5", 32)), 64), 0u);
}

TEST(BankConflicts, LanesOfDifferentMasksGetDifferentValues) {
  const std::string masks = "setp.lt.u32 %p1, %r8, 16; selp.b32 %r5, 0xffff, 0xffff0000, %p1; ",
                    vote = "vote.sync.ballot.b32 %r1, %p1, %r5; popc.b32 %r7, %r1; " + shiftedBy("%r7");
  EXPECT_FALSE(isShownFree(masks + vote));
  EXPECT_NE(countedConflicts(moduleOf(begin + masks + vote)), 0u);
  EXPECT_TRUE(isShownFree("setp.lt.u32 %p1, %r8, 16; mov.b32 %r5, -1; " + vote));
}

// A launch puts what is called in the place of calls; the text is looked at as it stands.
TEST(BankConflicts, WhatIsCalledIsNotLookedInto) {
  const auto textWith = [](const std::string &variable, const std::string &call) {
    return ".version 8.6\n.target sm_90a\n.address_size 64\n" + variable +
           ".func put(.param .u32 at) .reqntid 32 { .shared .b32 own[1024]; .reg .b32 %r<4>; ld.param.u32 %r1, [at]; "
           "mov.u32 %r2, own; add.u32 %r3, %r1, %r2; st.shared.b32 [%r3], 1; ret; }\n"
           ".entry k(.param .u64 out, .param .u64 in) .reqntid 32\n"
           "{ .reg .b32 %r<4>; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 7; .param .b32 p0; st.param.b32 [p0], %r2; " +
           call + " ret; }\n";
  };
  const auto isFree = [](const std::string &text, size_t function = 1) {
    Expected<Module> module = parse(text, "test.ptx");
    EXPECT_TRUE(module) << module.error().text();
    return module && hasNoBankConflicts(*module, module->functions[function]);
  };
  const std::string variable = ".shared .align 16 .b8 tile[4096];\n";
  EXPECT_TRUE(isFree(textWith(variable, "")));
  EXPECT_FALSE(isFree(textWith(variable, "call put, (p0);")));
  EXPECT_FALSE(isFree(textWith("", "call put, (p0);"))) << "the function has shared memory of its own";
  EXPECT_EQ(countedConflicts(textWith("", "call put, (p0);")), 31u);
  EXPECT_FALSE(isFree(textWith("", ""), 0)) << "each lane gives its own parameters";
}

// Stores to parameters of calls are what a thread has for itself, and so is local memory.
TEST(BankConflicts, MemoryOfAThreadIsOfItsOwn) {
  for (const std::string space : {"local", "param"}) {
    const std::string text = "." + space + " .b32 own; st." + space + ".b32 [own], %r8; ld." + space +
                             ".b32 %r7, [own]; " + shiftedBy("%r7");
    EXPECT_FALSE(isShownFree(text)) << space;
  }
  const std::string own = ".local .b32 own; st.local.b32 [own], %r8; ",
                    generic = "mov.u64 %d0, own; cvta.local.u64 %d1, %d0; ld.b32 %r7, [%d1]; " + shiftedBy("%r7");
  EXPECT_FALSE(isShownFree(own + generic));
  EXPECT_NE(countedConflicts(moduleOf(begin + own + generic)), 0u);
  EXPECT_TRUE(isShownFree(own + "ld.global.b32 %r7, [%d9]; " + shiftedBy("%r7")));
  EXPECT_TRUE(isShownFree("ld.b32 %r7, [%d9]; " + shiftedBy("%r7")));
}

// A sum of strides is one of low bits: where 32 bits wrap around in some lanes, 64 bits differ.
TEST(BankConflicts, DifferencesOfWiderNumbersAreNotShown) {
  const std::string narrow = "add.u32 %r0, %r8, 0xfffffff0; sub.u32 %r1, %r8, 16; ",
                    wide = "cvt.u64.u32 %d0, %r0; cvt.u64.u32 %d1, %r8; sub.u64 %d2, %d0, %d1; shr.u64 %d3, %d2, 32; "
                           "cvt.u32.u64 %r2, %d3; and.b32 %r7, %r2, 1; ";
  EXPECT_FALSE(isShownFree(narrow + wide + shiftedBy("%r7")));
  EXPECT_NE(countedConflicts(moduleOf(begin + narrow + wide + shiftedBy("%r7"))), 0u);
  EXPECT_TRUE(isShownFree(narrow + "sub.u32 %r7, %r0, %r1; " + shiftedBy("%r7")));
}

TEST(BankConflicts, StridesWrapAround) {
  EXPECT_TRUE(isShownFree(at(-4)));
  EXPECT_FALSE(isShownFree(at(-8)));
  EXPECT_TRUE(isShownFree("mul.lo.u32 %r0, %r8, 0x40000001; shl.b32 %r1, %r0, 2; add.u32 %r4, %r1, %r6; "
                          "st.shared.b32 [%r4], 1;"));
  EXPECT_FALSE(isShownFree("cvt.u64.u32 %d0, %r8; mul.lo.u64 %d1, %d0, 0x7fffffffffffffff; add.u64 %d2, %d1, %d1; "
                           "add.u64 %d3, %d2, %d1; mul.lo.u64 %d4, %d3, 0x4000000000000000; st.shared.b32 [%d4], 1;"));
  EXPECT_TRUE(isShownFree("shl.b32 %r1, %r8, 40; add.u32 %r4, %r1, %r6; st.shared.b32 [%r4], 1;")) << "all are 0";
}

TEST(BankConflicts, NumbersThatAreCutOffHaveNoStride) {
  for (const std::string cut : {"cvt.u32.u8 %r1, %r8;", "add.sat.s32 %r1, %r8, 0x7fffffff;", "min.u32 %r1, %r8, 9;"})
    EXPECT_FALSE(isShownFree(cut + "mad.lo.u32 %r4, %r1, 4, %r6; st.shared.b32 [%r4], 1;")) << cut;
}

/// `length` sums, each of the one behind it and 128; `first` computes the first.
std::string chainText(int length, const std::string &first) {
  std::string text = ".version 8.6\n.target sm_90a\n.address_size 64\n.shared .align 16 .b8 tile[4096];\n"
                     ".entry k() .reqntid 32\n{ .reg .b32 %r<" +
                     std::to_string(length + 1) + ">;\nst.shared.b32 [%r" + std::to_string(length) + "], 1;\n";
  for (int i = length; i > 0; --i)
    text += "add.u32 %r" + std::to_string(i) + ", %r" + std::to_string(i - 1) + ", 128;\n";
  return text + first + "\n}\n";
}

// Each is looked at a few times, in whichever order they stand; passes over the text would take 10^10 steps.
TEST(BankConflicts, AHundredThousandSumsInReverseOrder) {
  for (const int stride : {4, 8}) {
    const Expected<Module> module =
        parse(chainText(100000, "mul.lo.u32 %r0, %tid.x, " + std::to_string(stride) + ";"), "test.ptx");
    ASSERT_TRUE(module) << module.error().text();
    EXPECT_EQ(hasNoBankConflicts(*module, module->functions.front()), stride == 4);
  }
}

TEST(BankConflicts, RegistersThatNothingGivesAValueAreUnknown) {
  EXPECT_FALSE(isShownFree("add.u32 %r4, %r4, 4; st.shared.b32 [%r4], 1;"));
  EXPECT_FALSE(isShownFree("add.u32 %r1, %r1, 1; mov.u32 %r7, 0; add.u32 %r7, %r7, %r1; " + shiftedBy("%r7")));
}

TEST(BankConflicts, WhatIsReadAtOneAddressIsOneValue) {
  const std::string store = "shl.b32 %r1, %r8, 2; add.u32 %r4, %r0, %r1; st.shared.b32 [%r4], 1;";
  EXPECT_TRUE(isShownFree("ld.global.u32 %r0, [%d9]; " + store));
  EXPECT_FALSE(isShownFree("ld.relaxed.gpu.global.u32 %r0, [%d9]; " + store)) << "each lane may see another write";
  EXPECT_FALSE(isShownFree("mul.wide.u32 %d0, %r8, 4; add.u64 %d0, %d0, %d9; "
                           "ld.global.L2::cache_hint.u32 %r0, [%d0], %d8; " +
                           store));
  EXPECT_FALSE(isShownFree("mul.wide.u32 %d0, %r8, 4; add.u64 %d0, %d0, %d9; ld.global.u32 %r0, [%d0]; " + store));
}

TEST(BankConflicts, ALaneMayTellItsValueToAll) {
  const std::string shuffled = "; mad.lo.u32 %r4, %r8, 4, %r0; st.shared.b32 [%r4], 1;";
  EXPECT_TRUE(isShownFree("shfl.sync.idx.b32 %r0, %clock, 0, 31, -1" + shuffled));
  EXPECT_FALSE(isShownFree("shfl.sync.idx.b32 %r0, %clock, 0, 7, -1" + shuffled)) << "eight lanes have one of theirs";
  EXPECT_FALSE(isShownFree("shfl.sync.bfly.b32 %r0, %clock, 1, 31, -1" + shuffled));
}

TEST(BankConflicts, GuardedLanesKeepWhatTheyHad) {
  EXPECT_FALSE(isShownFree("setp.lt.u32 %p0, %r8, 9; " + at(4, "@%p0 add.u32 %r4, %r4, 4; st.shared.b32 [%r4], 1;")));
  EXPECT_TRUE(isShownFree("setp.lt.u32 %p0, %r6, 9; " + at(4, "@%p0 add.u32 %r4, %r4, 4; st.shared.b32 [%r4], 1;")));
}

TEST(BankConflicts, WhatIsNoLoadOrStoreIsNotLookedInto) {
  const std::string matrix = ".f16 {%r0, %r1, %r2, %r3, %r5, %r7, %r9, %r10}, ",
                    load = "wmma.load.a.sync.aligned.row.m16n16k16";
  EXPECT_FALSE(isShownFree(at(4, "atom.shared.add.u32 %r0, [%r4], 1;")));
  EXPECT_TRUE(isShownFree("atom.global.add.u32 %r0, [%d8], 1;"));
  EXPECT_FALSE(isShownFree(load + ".shared" + matrix + "[%r6], 64;"));
  EXPECT_FALSE(isShownFree(load + matrix + "[%d8], 64;"));
  EXPECT_TRUE(isShownFree(load + ".global" + matrix + "[%d8], 64;"));
  EXPECT_FALSE(isShownFree("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r6], 1, [%r6];"));
  EXPECT_FALSE(isShownFree("ld.shared.b32 %r4;")) << "it names no address";
  EXPECT_FALSE(isShownFree("unheard.of.b32 %r4, 1;"));
  EXPECT_TRUE(isShownFree("activemask.b32 %r4; mov.b32 %r5, %r4;"));
}

TEST(BankConflicts, GenericAddressesMayBeOfSharedMemory) {
  const std::string access = "cvt.u64.u32 %d0, %r5; add.u64 %d0, %d0, %d8; st.b32 [%d0], 1;";
  EXPECT_TRUE(isShownFree("shl.b32 %r5, %r8, 2; " + access));
  EXPECT_FALSE(isShownFree("shl.b32 %r5, %r8, 3; " + access));
}

TEST(BankConflicts, AKernelWithoutSharedMemoryHasNone) {
  const std::string with = moduleOf("cvt.u64.u32 %d0, %clock; st.b32 [%d0], 1;"),
                    variable = ".shared .align 16 .b8 tile[4096];";
  std::string without = with;
  without.erase(without.find(variable), variable.size());
  const auto isFree = [](const std::string &text) {
    const Module module = *parse(text, "test.ptx");
    return hasNoBankConflicts(module, module.functions.front());
  };
  EXPECT_FALSE(isFree(with));
  EXPECT_TRUE(isFree(without));
  EXPECT_FALSE(isFree(without.replace(without.find("st.b32"), 6, "st.shared.b32"))) << "a launch may give some";
}

TEST(BankConflicts, WarpsHaveToLieAlongOneAxis) {
  EXPECT_FALSE(isShownFree(at(4), "")) << "blocks may be of any shape";
  EXPECT_FALSE(isShownFree(at(4), ".reqntid 16, 4"));
  EXPECT_TRUE(isShownFree(at(4), ".reqntid 64, 1, 1"));
}

} // namespace
