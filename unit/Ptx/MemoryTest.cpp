// Loads, stores and atomic operations, and accesses that cannot be.
#include "TestKernel.h"

#include <random>

using namespace k2c;
using namespace k2c::ptx;

namespace {

const std::string begin = "ld.param.u64 %d8, [out]; ld.param.u64 %d9, [in];\n";

TEST(Memory, ElementsOfAllWidthsAreExtended) {
  TestKernel kernel(begin +
                    "ld.global.s8 %r0, [%d9]; ld.global.u8 %r1, [%d9+1]; ld.global.s16 %d0, [%d9+2];\n"
                    "ld.global.b16 %h0, [%d9+4]; cvt.u32.u16 %r2, %h0; ld.s8 %h1, [%d9]; mov.b32 %r3, {%h1, %h1};\n"
                    "st.global.v4.b32 [%d8], {%r0, %r1, %r2, %r3}; st.global.b64 [%d8+16], %d0;\n"
                    "st.global.b8 [%d8+24], %r0; st.global.b8 [%d8+25], 7; st.global.u16 [%d8+26], %h0;");
  kernel.in[0] = 0x80008180;
  kernel.in[1] = 0xffff1234;
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(std::vector<uint32_t>(kernel.out.begin(), kernel.out.begin() + 7),
            (std::vector<uint32_t>{0xffffff80, 0x81, 0x1234, 0xff80ff80, 0xffff8000, 0xffffffff, 0x12340780}));
}

TEST(Memory, GenericAddressesReachEveryWindow) {
  TestKernel kernel(begin +
                    ".local .align 8 .b8 own[16];\ncvta.to.global.u64 %d9, %d9; mov.u64 %d0, tile;\n"
                    "cvta.shared.u64 %d0, %d0; mov.u64 %d1, own; cvta.local.u64 %d1, %d1;\n"
                    "st.b32 [%d0+8], 5; st.b32 [%d1], 6; ld.shared.b32 %r0, [tile+8]; ld.local.b32 %r1, [own];\n"
                    "mov.u64 %d2, in; cvta.param.u64 %d2, %d2; ld.b64 %d2, [%d2]; ld.b32 %r2, [%d2];\n"
                    "st.v2.b32 [%d8], {%r0, %r1}; st.b32 [%d8+8], %r2;\n"
                    "isspacep.shared %p0, %d0; selp.b32 %r0, 1, 0, %p0; st.b32 [%d8+12], %r0;");
  kernel.in[0] = 77;
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(std::vector<uint32_t>(kernel.out.begin(), kernel.out.begin() + 4), (std::vector<uint32_t>{5, 6, 77, 1}));
}

TEST(Memory, LocalMemoryIsOfALane) {
  TestKernel kernel(
      begin + ".local .align 4 .b8 own[4];\nmov.u32 %r0, %laneid; st.local.b32 [own], %r0; bar.sync 0;\n"
              "ld.local.b32 %r1, [own]; mul.wide.u32 %d0, %r0, 4; add.s64 %d0, %d8, %d0; st.global.b32 [%d0], %r1;");
  kernel.launch.block = {32, 1, 1};
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.out[0], 0u);
  EXPECT_EQ(kernel.out[31], 31u);
}

TEST(Memory, AtomicOperationsLoseNothing) {
  TestKernel kernel(
      begin + "atom.global.add.u32 %r0, [%d8], 1; red.global.max.s32 [%d8+4], %r0; red.global.or.b32 [%d8+8], 6;\n"
              "atom.global.cas.b32 %r1, [%d8+12], 0, 9; atom.global.exch.b32 _, [%d8+16], 3;\n"
              "red.global.add.f32 [%d8+20], 0f3F000000; atom.global.inc.u32 %r2, [%d8+24], 4;");
  kernel.launch.grid = {4, 1, 1};
  kernel.launch.block = {32, 1, 1};
  kernel.memory.markWritten(kernel.out.data(), 64);
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(std::vector<uint32_t>(kernel.out.begin(), kernel.out.begin() + 7),
            (std::vector<uint32_t>{128, 127, 6, 9, 3, 0x42800000, 128 % 5}));
}

TEST(Memory, VariablesOfAModuleAreWhereTheLoaderPutThem) {
  Expected<Module> module = parse(".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 total;\n.entry k()\n{ "
                                  ".reg .b32 %r<2>; ld.global.u32 %r0, [total]; add.u32 %r0, %r0, 2; st.global.u32 "
                                  "[total], %r0; }",
                                  "test.ptx");
  ASSERT_TRUE(module);
  Expected<Kernel> without = Kernel::decode(*module, "k");
  ASSERT_FALSE(without);
  EXPECT_TRUE(says(without.error().text(), "variable 'total' has no address; give one to whoever decodes the kernel"));
  uint32_t total = 40;
  GlobalMemory memory;
  memory.add(&total, sizeof total, "total", true);
  Expected<Kernel> kernel = Kernel::decode(*module, "k", {{"total", reinterpret_cast<uint64_t>(&total)}});
  ASSERT_TRUE(kernel);
  ASSERT_TRUE(run(*kernel, {}, memory, {}));
  EXPECT_EQ(total, 42u);
}

struct Finding {
  const char *body, *message;
};

TEST(Memory, AnAccessIsWithinWhatThereIs) {
  const Finding all[] = {
      {"ld.global.b32 %r0, [%d9+1048576];", "where there is no memory; stay within what the launch gives"},
      {"ld.global.b64 %d0, [%d9+16380];", "global address"},
      {"st.shared.b32 [tile+4096], 1;",
       "it accesses 4 bytes at shared address 0x1400, and there are 4096 from 0x400 on"},
      {"mov.b32 %r0, 0; ld.shared.b32 %r1, [%r0];", "at shared address 0x0, and there are 4096 from 0x400 on"},
      {".local .b8 own[8];\nst.local.b32 [own+8], 1;", "at local address 0x8, and there are 8 from 0x0 on"},
      {"ld.param.b64 %d0, [in+8];", "at parameter address 0x10, and there are 16 from 0x0 on"},
      {"mov.u64 %d0, 0; ld.b32 %r0, [%d0];", "at global address 0x0, where there is no memory"},
      {"ld.global.b32 %r0, [%d9+2];", "which is no multiple of that; align it"},
      {"ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d9+8];", "accesses 16 bytes"},
      {"mov.u64 %d0, in; cvta.param.u64 %d0, %d0; st.b32 [%d0], 1;", "and parameters are not written; copy it"},
      {"ld.global.b32 %r0, [%d8];", "of which some were never written; write them first"},
      {"st.shared.b8 [tile], 1; ld.shared.b32 %r0, [tile];", "of which some were never written"},
      {"cvta.to.shared.u64 %d0, %d9;", "the address lies in another window"},
      {"mov.b32 %r0, 0x5000400; ld.shared.b32 %r1, [%r0];", "shared address 0x5000400, where there is no memory"},
  };
  for (const Finding &one : all)
    EXPECT_TRUE(says(TestKernel(begin + one.body).run(), one.message)) << one.body;
}

TEST(Memory, WhatAnAccessCannotBeIsRefused) {
  const Finding all[] = {
      {"ld.global.v2.b32 %r0, [%d9];", "'ld.global.v2.b32' moves 2 elements, and has 1"},
      {"ld.global.v4.b64 {%d0, %d1, %d2}, [%d9];", "moves 4 elements, and has 3"},
      {"ld.global.v2.b32 {%r0, %d1}, [%d9];", "'ld.global.v2.b32' has registers of 32 and 64 bits"},
      {"ld.global.b32 %r0, [%r1];", "an address of 32 bits is one of .shared or .local, and 'ld.global.b32' takes 64"},
      {"ld.global.b64 %r0, [%d9];", "register '%r0' has 32 bits"},
      {"ld.global.b32 %r0, %d9;", "'ld.global.b32' needs an address in brackets"},
      {"ld.acquire.global.b32 %r0, [%d9];", "'ld.acquire.global.b32' needs a scope: .cta, .cluster, .gpu or .sys"},
      {"ld.global.v8.b64 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, [%d9];", "moves 64 bytes, and 32 can be moved"},
      {"ld.global.L1::sometimes.b32 %r0, [%d9];", "'.L1::sometimes' is no type that is known"},
      {"atom.global.add.b32 %r0, [%d8], 1;", "'atom.global.add.b32' is not supported for its type"},
      {"red.global.exch.b32 [%d8], 1;", "'red.global.exch.b32' is not supported"},
  };
  for (const Finding &one : all)
    EXPECT_TRUE(says(TestKernel(begin + one.body).run(), one.message)) << one.body;
}

TEST(Memory, BytesOfASetBecomeThoseOfAnother) {
  std::mt19937 random(5);
  const auto draw = [&](uint64_t below) { return random() % below; };
  ByteSet sets[2] = {ByteSet(500), ByteSet(500)};
  std::array<bool, 500> has[2] = {};
  for (int i = 0; i < 3000; ++i) {
    const size_t to = draw(2), from = draw(2);
    const uint64_t count = draw(200), first = draw(500 - count), source = draw(500 - count);
    if (draw(3) == 0) {
      sets[to].add(first, count);
      std::fill_n(has[to].begin() + first, count, true);
    } else {
      sets[to].assign(first, count, sets[from], source);
      const std::array<bool, 500> copied = has[from];
      std::copy_n(copied.begin() + source, count, has[to].begin() + first);
    }
    for (uint64_t byte = 0; byte < 500; ++byte)
      ASSERT_EQ(sets[to].has(byte, 1), has[to][byte]) << i << " " << byte;
  }
}

TEST(Memory, MemoryOfOwnersThatAreNotShownIsNotReached) {
  TestKernel kernel(begin + "ld.global.u32 %r0, [%d9]; st.global.u32 [%d8], %r0;");
  kernel.memory.remove(kernel.in.data());
  kernel.memory.add(kernel.in.data(), 64, "in", true, 5);
  kernel.memory.show(uint64_t(1) << 0 | uint64_t(1) << 5);
  EXPECT_EQ(kernel.run(), "");
  kernel.memory.show(uint64_t(1) << 0);
  EXPECT_TRUE(says(kernel.run(), "where there is no memory"));
}

TEST(Memory, AFindingHasTheSymptomOfADevice) {
  const auto symptomOf = [](const std::string &body) {
    TestKernel kernel(begin + body);
    kernel.options.maxInstructions = 10000;
    kernel.run();
    return kernel.symptom;
  };
  EXPECT_EQ(symptomOf("ld.global.u32 %r0, [%d9+16384];"), Symptom::IllegalAddress);
  EXPECT_EQ(symptomOf("ld.shared.u32 %r0, [tile+4096];"), Symptom::IllegalAddress);
  EXPECT_EQ(symptomOf("ld.global.u32 %r0, [%d9+2];"), Symptom::Misaligned);
  EXPECT_EQ(symptomOf("Loop: bra Loop;"), Symptom::Endless);
  EXPECT_EQ(symptomOf("ld.global.u32 %r0, [%d8];"), Symptom::Other);
}

} // namespace
