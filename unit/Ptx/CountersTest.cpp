// What launches count: instructions by class, sectors, bank conflicts, products.
#include "TestKernel.h"

using namespace k2c;
using namespace k2c::ptx;

namespace {

Counts counted(const std::string &body, uint32_t threads = 32) {
  TestKernel kernel("ld.param.u64 %d8, [out]; ld.param.u64 %d9, [in]; mov.u32 %r8, %tid.x; mov.u32 %r6, tile;\n" +
                    body);
  kernel.launch.block = {threads, 1, 1};
  kernel.options.isTrafficCounted = true;
  EXPECT_EQ(kernel.run(), "") << body;
  return kernel.counts;
}

std::string at(uint32_t stride, const std::string &access) {
  return "mul.lo.u32 %r5, %r8, " + std::to_string(stride) + "; add.u32 %r4, %r6, %r5; cvt.u64.u32 %d0, %r5;\n" +
         "add.s64 %d0, %d9, %d0;\n" + access;
}

TEST(Counters, GlobalSectors) {
  struct Case {
    uint32_t stride;
    const char *access;
    uint64_t sectors, bytes;
  };
  const Case all[] = {{4, "ld.global.b32 %r0, [%d0];", 4, 128},
                      {8, "ld.global.b32 %r0, [%d0];", 8, 128},
                      {128, "ld.global.b32 %r0, [%d0];", 32, 128},
                      {0, "ld.global.b32 %r0, [%d0];", 1, 128},
                      {16, "ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d0];", 16, 512},
                      {1, "ld.global.b8 %r0, [%d0];", 1, 32}};
  for (const Case &one : all) {
    const Counts counts = counted(at(one.stride, one.access));
    EXPECT_EQ(counts.globalRead.requests, 1u) << one.access << one.stride;
    EXPECT_EQ(counts.globalRead.units, one.sectors) << one.access << one.stride;
    EXPECT_EQ(counts.globalRead.bytes, one.bytes) << one.access << one.stride;
  }
  const Counts written = counted("mul.wide.u32 %d0, %r8, 4; add.s64 %d0, %d8, %d0; st.global.b32 [%d0], 1;");
  EXPECT_EQ(written.globalWritten.units, 4u);
  EXPECT_EQ(written.globalRead.requests, 0u);
}

TEST(Counters, BankConflicts) {
  struct Case {
    uint32_t stride;
    const char *access;
    uint64_t wavefronts, conflicts;
  };
  const Case all[] = {
      {4, "st.shared.b32 [%r4], 1;", 1, 0},                          // a word each
      {8, "st.shared.b32 [%r4], 1;", 2, 1},                          // every other bank
      {128, "st.shared.b32 [%r4], 1;", 32, 31},                      // a column
      {132, "st.shared.b32 [%r4], 1;", 1, 0},                        // a padded column
      {0, "st.shared.b32 [%r4], 1;", 1, 0},                          // one word
      {1, "st.shared.b8 [%r4], 1;", 1, 0},                           // bytes of words
      {8, "st.shared.v2.b32 [%r4], {%r8, %r8};", 2, 0},              // half warps
      {16, "st.shared.v4.b32 [%r4], {%r8, %r8, %r8, %r8};", 4, 0},   // quarter warps
      {64, "st.shared.v4.b32 [%r4], {%r8, %r8, %r8, %r8};", 16, 12}, // 4 rows of 64 bytes meet in a bank
  };
  for (const Case &one : all) {
    const Counts counts = counted(at(one.stride, one.access));
    EXPECT_EQ(counts.sharedWritten.units, one.wavefronts) << one.access << one.stride;
    EXPECT_EQ(counts.sharedWritten.conflicts, one.conflicts) << one.access << one.stride;
  }
}

TEST(Counters, RowsOfMatrices) {
  const std::string fill = at(128, "and.b32 %r5, %r8, 7; shl.b32 %r5, %r5, 7; add.u32 %r4, %r6, %r5;\n");
  const std::string store = "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], {%r8};";
  EXPECT_EQ(counted(fill + store).sharedWritten.conflicts, 7u); // rows of 128 bytes
  EXPECT_EQ(
      counted(fill + "xor.b32 %r5, %r8, 0; and.b32 %r5, %r5, 7; shl.b32 %r5, %r5, 4; add.u32 %r4, %r4, %r5;\n" + store)
          .sharedWritten.conflicts,
      0u); // swizzled
}

TEST(Counters, InstructionsByClass) {
  const Counts counts = counted("cvt.rn.f32.u32 %f0, %r8; mul.f32 %f1, %f0, %f0; ex2.approx.f32 %f1, %f1;\n"
                                "setp.lt.u32 %p0, %r8, 7;\n@%p0 bra L;\nadd.u32 %r0, %r8, 1;\nL: bar.sync 0;\n"
                                "st.shared.b32 [%r6], 1;",
                                64);
  const auto of = [&](InstructionClass kind) { return counts.byClass[static_cast<size_t>(kind)]; };
  EXPECT_EQ(of(InstructionClass::F32), 2u);
  EXPECT_EQ(of(InstructionClass::Special), 2u);
  EXPECT_EQ(of(InstructionClass::Conversion), 2u);
  EXPECT_EQ(of(InstructionClass::Integer), 4u);
  EXPECT_EQ(of(InstructionClass::Control), 4u);
  EXPECT_EQ(of(InstructionClass::Barrier), 2u);
  EXPECT_EQ(counts.divergentBranches, 1u);
}

TEST(Counters, ProductsOfMatrices) {
  const Counts counts =
      counted("mov.b32 %r0, 0; mov.f32 %f0, 0f00000000;\nmma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
              "{%f1, %f2, %f3, %f4}, {%r0, %r0, %r0, %r0}, {%r0, %r0}, {%f0, %f0, %f0, %f0};");
  EXPECT_EQ(counts.multiplyAdds, 16u * 8 * 16);
}

} // namespace
