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

/// Of stores of a warp.
uint64_t countedConflicts(const std::string &text) {
  TestKernel kernel("");
  kernel.text = text;
  kernel.launch.block = {32, 1, 1};
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

TEST(BankConflicts, WhatIsReadAtOneAddressIsOneValue) {
  const std::string store = "shl.b32 %r1, %r8, 2; add.u32 %r4, %r0, %r1; st.shared.b32 [%r4], 1;";
  EXPECT_TRUE(isShownFree("ld.global.u32 %r0, [%d9]; " + store));
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
