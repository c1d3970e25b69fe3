// mbarriers and copies of the asynchronous proxy.
#include "TestKernel.h"
#include "k2c/Ptx/TensorMap.h"

#include <cstring>

using namespace k2c;
using namespace k2c::ptx;

namespace {

/// %d9: in, %d8: out; one mbarrier of one arrival at tile + 4088, which thread 0 has made.
const std::string begin =
    "ld.param.u64 %d8, [out]; ld.param.u64 %d9, [in]; mov.u32 %r8, %tid.x; setp.ne.b32 %p8, %r8, 0;\n"
    "@%p8 bra Made;\nmbarrier.init.shared.b64 [tile+4088], 1; fence.mbarrier_init.release.cluster;\n"
    "fence.proxy.async;\nMade: bar.sync 0;\n";
const std::string await = "Wait: mbarrier.try_wait.parity.shared.b64 %p0, [tile+4088], 0;\n@!%p0 bra Wait;\n";
const std::string copyIn = "@%p8 bra Begun;\nmbarrier.arrive.expect_tx.shared.b64 _, [tile+4088], 256;\n"
                           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d9], 256, "
                           "[tile+4088];\nBegun:\n";

struct Result {
  std::string error;
  std::vector<uint32_t> out;
};

Result run(const std::string &body, uint64_t seed, uint32_t threads = 64, const TensorMap *map = nullptr) {
  TestKernel kernel(body);
  for (size_t i = 0; i < kernel.in.size(); ++i)
    kernel.in[i] = static_cast<uint32_t>(i);
  if (map) {
    TensorMap own = *map;
    own.base = reinterpret_cast<uint64_t>(kernel.in.data());
    const auto object = encode(own);
    std::memcpy(kernel.in.data() + 2048, object.data(), object.size());
  }
  kernel.launch.block = {threads, 1, 1};
  kernel.options.isStrict = true;
  kernel.options.seed = seed;
  std::string error = kernel.run();
  return {std::move(error), {kernel.out.begin(), kernel.out.end()}};
}

TEST(Async, ACopyIsThereWhenItsBarrierSaysSo) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Result right = run(begin + copyIn + await +
                                 "ld.shared.b32 %r0, [tile+252];\nsetp.ne.b32 %p1, %r8, 9;\n"
                                 "@%p1 ret;\nst.global.b32 [%d8], %r0;",
                             seed);
    EXPECT_EQ(right.error, "");
    EXPECT_EQ(right.out[0], 63u);
    const Result early = run(begin + copyIn + "ld.shared.b32 %r0, [tile+252];", seed);
    EXPECT_NE(early.error, "") << "read before it is there, seed " << seed;
  }
}

TEST(Async, WhatThreadsWroteNeedsAProxyFence) {
  const std::string write = "st.shared.b32 [tile], 5;\n",
                    wait = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n";
  const std::string store = "cp.async.bulk.global.shared::cta.bulk_group [%d8], [tile], 16;\n";
  const std::string fill = "st.shared.v4.b32 [tile], {%r8, %r8, %r8, %r8};\n";
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Result right = run(begin + fill + "fence.proxy.async.shared::cta;\n" + store + wait, seed, 1);
    EXPECT_EQ(right.error, "");
    EXPECT_EQ(right.out[0], 0u);
    EXPECT_TRUE(
        says(run(begin + fill + store + wait, seed, 1).error,
             "and nothing orders it with 'st.shared.v4.b32' at line 13 of CTA 0, warp 0, lanes 0x1; let a barrier "
             "or a wait, and a proxy fence behind what threads have written, be between them"));
    EXPECT_TRUE(
        says(run(begin + fill + "fence.proxy.async;\n" + store + write, seed, 1).error, "nothing orders it with"));
    EXPECT_EQ(run(begin + fill + "fence.proxy.async;\n" + store +
                      "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\n" + write,
                  seed, 1)
                  .error,
              "");
  }
}

TEST(Async, ABoxOfATensorIsSwizzledAndFilled) {
  TensorMap map;
  map.rank = 2;
  map.elementBytes = 4;
  map.swizzleBytes = 128;
  map.extents = {40, 3};
  map.strides = {4, 160};
  map.box = {32, 4};
  const std::string copy =
      "@%p8 bra Begun;\nmbarrier.arrive.expect_tx.shared.b64 _, [tile+4088], 512;\nadd.s64 %d0, %d9, 8192;\n"
      "mov.b32 %r0, 16; mov.b32 %r1, 0;\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%d0, "
      "{%r0, %r1}], [tile+4088];\nBegun:\n";
  const Result made = run(begin + copy + await +
                              "setp.ne.b32 %p1, %r8, 0;\n@%p1 ret;\nld.shared.b32 %r2, [tile];\n"
                              "ld.shared.b32 %r3, [tile+144]; ld.shared.b32 %r4, [tile+96];\n"
                              "ld.shared.b32 %r5, [tile+384];\nst.global.v4.b32 [%d8], {%r2, %r3, %r4, %r5};",
                          5, 64, &map);
  EXPECT_EQ(made.error, "");
  EXPECT_EQ(made.out[0], 16u);      // line 0, element 16
  EXPECT_EQ(made.out[1], 40u + 16); // line 1: its first chunk stands second
  EXPECT_EQ(made.out[2], 0u);       // behind the 40 elements of a line
  EXPECT_EQ(made.out[3], 0u);       // behind the 3 lines
}

/// Two boxes of ones are added to a tensor of numbers.
const std::string reduce =
    "mov.b32 %r0, 1; mov.b32 %f0, 0f3f800000; shl.b32 %r2, %r8, 2; add.u32 %r2, %r2, tile; st.shared.b32 [%r2], "
    "VALUE;\n"
    "fence.proxy.async.shared::cta;\nbar.sync 0;\n@%p8 ret;\nadd.s64 %d0, %d9, 8192; mov.b32 %r1, 8;\n"
    "cp.reduce.async.bulk.tensor.1d.global.shared::cta.KIND.tile.bulk_group [%d0, {%r1}], [tile];\n"
    "cp.reduce.async.bulk.tensor.1d.global.shared::cta.KIND.bulk_group [%d0, {%r1}], [tile];\n"
    "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nld.global.b32 %r3, [%d9+32];\nst.global.b32 [%d8], "
    "%r3;\nld.global.b32 %r3, [%d9+28];\nst.global.b32 [%d8+4], %r3;";

std::string reduced(std::string kind, const std::string &value) {
  std::string text = reduce;
  for (size_t at = 0; (at = text.find("KIND")) != std::string::npos;)
    text.replace(at, 4, kind);
  return text.replace(text.find("VALUE"), 5, value);
}

TEST(Async, ACopyReducesATensor) {
  TensorMap map;
  map.elementBytes = 4;
  map.type = Type::U32;
  map.extents = {64};
  map.box = {32};
  const auto left = [&](const std::string &kind, const std::string &value) {
    const Result made = run(begin + reduced(kind, value), 3, 64, &map);
    EXPECT_EQ(made.error, "") << kind;
    EXPECT_EQ(made.out[1], 7u) << "before its box";
    return made.out[0];
  };
  EXPECT_EQ(left("add", "%r0"), 8u + 1 + 1);
  EXPECT_EQ(left("min", "%r0"), 1u);
  EXPECT_EQ(left("max", "%r0"), 8u);
  EXPECT_EQ(left("or", "%r0"), 9u);
  EXPECT_EQ(left("xor", "%r0"), 8u);
  map.type = Type::F32;
  EXPECT_EQ(left("add", "%f0"), 0x40000000u); // 8 is a number of which nothing is left
  EXPECT_TRUE(says(run(begin + reduced("max", "%f0"), 3, 64, &map).error,
                   "its map has elements of .f32, which it cannot reduce; encode one with their type"));
  EXPECT_TRUE(says(run(begin + reduced("inc", "%r0"), 3, 64, &map).error, "is not supported"));
}

struct Finding {
  const char *body, *message;
};

TEST(Async, WhatIsWrongWithABarrierIsSaid) {
  const Finding all[] = {
      {"mbarrier.init.shared.b64 [tile], 0;", "an mbarrier of 0 arrivals; give from 1 to 1048575"},
      {"mbarrier.init.shared.b64 [tile+4088], 1;",
       "there is an mbarrier at this address already; use mbarrier.inval before"},
      {"mbarrier.arrive.shared.b64 _, [tile];",
       "there is no mbarrier at shared address 1024; use mbarrier.init before"},
      {"mbarrier.arrive.shared.b64 _, [tile+4088], 2;", "more have arrived at an mbarrier than the 1 of a phase"},
      {"mov.b32 %r0, 2; mbarrier.test_wait.parity.shared.b64 %p0, [tile+4088], %r0;", "a parity of 2; give 0 or 1"},
      {"mov.b64 %d0, 3; mbarrier.test_wait.shared.b64 %p0, [tile+4088], %d0;",
       "it waits for phase 3, and phase 0 is the current one; wait for that or the one before"},
      {"mbarrier.expect_tx.relaxed.cta.shared.b64 [tile+4088], 64;\nmbarrier.inval.shared.b64 [tile+4088];",
       "its phase waits for arrivals or bytes; wait for it before"},
      {"mov.b32 %r0, tile; mov.b32 %r1, 1; mapa.shared::cluster.u32 %r2, %r0, %r1;",
       "it names a CTA behind the 1 of the cluster"},
      {"st.shared.b32 [tile+4092], 1;", "and an mbarrier is there; use mbarrier.inval before"},
  };
  for (const Finding &one : all)
    EXPECT_TRUE(says(run(begin + one.body, 1, 1).error, one.message)) << one.body;
}

TEST(Async, APhaseIsNotOverrun) { // who waits by parity has to be there before the phase after the next begins
  bool isFound = false;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string error =
        run(begin +
                "setp.ge.u32 %p1, %r8, 32;\n@%p1 bra Late;\n@%p8 ret;\nmbarrier.arrive.shared.b64 _, [tile+4088];\n"
                "mbarrier.arrive.shared.b64 _, [tile+4088];\nret;\nLate:\n" +
                await,
            seed)
            .error;
    EXPECT_NE(error, "");
    isFound |=
        error.find("it waits for phase 0, and phase 2 has begun: by its parity it cannot tell; let who arrives wait "
                   "for who waits") != std::string::npos;
  }
  EXPECT_TRUE(isFound);
}

TEST(Async, WhatIsWrongWithACopyOfAThreadIsSaid) {
  const Finding all[] = {
      {"mov.b32 %r0, 0x5000400; cp.async.ca.shared.global [%r0], [%d9], 16;", "it copies to a CTA that is not its own"},
      {"cp.async.ca.shared.global [tile+4], [%d9], 16;",
       "it copies 16 of 16 bytes from or to addresses of which one may be no multiple of that; align them"},
      {"cp.async.cg.shared.global [tile], [%d9], 8;", "'cp.async.cg.shared.global' cannot copy 8 bytes"},
      {"st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [tile+2], %r8, [tile+4088];",
       "it stores to a CTA that its mbarrier is not of, or out of alignment; let both be in one CTA"},
      {"st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [tile], %r8, [tile+4088];",
       "'st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32' stores 2 values"},
  };
  for (const Finding &one : all)
    EXPECT_TRUE(says(run(begin + one.body, 1, 1).error, one.message)) << one.body;
}

TEST(Async, WhatIsWrongWithACopyIsSaid) {
  const std::string map = "add.s64 %d0, %d9, 8192; mov.b32 %r0, 0;\n";
  const Finding all[] = {
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d9], 24, [tile+4088];",
       "it copies 24 bytes from or to addresses of which one is no multiple of 16; give multiples of 16"},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d9], 32, [tile+64];",
       "there is no mbarrier at shared address 1088; use mbarrier.init before"},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+4096], [%d9], 16, [tile+4088];",
       "it copies 16 bytes at shared address 5120, and there are 4096 from 1024 on; stay within what the launch gives"},
      {"add.s64 %d0, %d9, 1048576; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d0], "
       "32, "
       "[tile+4088];",
       "bytes of global memory that no allocation holds"},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d8], 32, [tile+4088];",
       "it copies bytes of 'out' that were never written; write them first"},
      {"cp.async.bulk.global.shared::cta.bulk_group [%d8], [tile], 16;",
       "it copies bytes at shared address 1024 that were never written"},
      {"add.s64 %d0, %d9, 8192; mov.b32 %r0, 0; "
       "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes "
       "[tile], [%d0, {%r0}], [tile+4088];",
       "what its address names is no tensor map; encode one with the driver"},
      {"mov.b16 %h0, 2; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], "
       "[%d9], "
       "32, [tile+4088], %h0;",
       "its mask names CTAs that the cluster of 1 does not have"},
      {"mov.b32 %r0, 0x5000400; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%d9], 32, "
       "[tile+4088];",
       "it copies to a CTA that the cluster does not have"},
      {"mov.b32 %r0, 0x5000400; cp.async.bulk.global.shared::cta.bulk_group [%d8], [%r0], 32;",
       "it copies from a CTA that is not its own"},
      {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d0, {%r0}], [tile+4088];",
       "'cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes' needs a map and 2 coordinates"},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes tile, [%d9], 32, [tile+4088];",
       "'cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes' needs an address in brackets"},
      {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [tile], [tile], 16, "
       "[tile+4088];",
       "'cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32' is not supported"},
      {"setmaxnreg.inc.sync.aligned.u32 41;",
       "'setmaxnreg.inc.sync.aligned.u32' asks for 41 registers; give a multiple of 8 from 24 to 256"},
      {"cp.async.bulk.wait_group %r8;", "the number of groups of 'cp.async.bulk.wait_group' has to be a number"},
      {"setmaxnreg.inc.sync.aligned.u32 %r8;",
       "the number of registers of 'setmaxnreg.inc.sync.aligned.u32' has to be a number"},
  };
  for (const Finding &one : all)
    EXPECT_TRUE(says(run(begin + one.body, 1, 1).error, one.message)) << one.body;
  TensorMap flat;
  flat.elementBytes = 4;
  flat.extents = {64};
  flat.box = {32};
  const std::string copy =
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d0, {%r0, "
      "%r0}], [tile+4088];";
  EXPECT_TRUE(says(run(begin + map + copy, 1, 1, &flat).error,
                   "it copies a tensor of 2 dimensions, and its map has 1; let them agree"));
  const std::string odd =
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [tile+64], [%d0, "
      "{%r0}], [tile+4088];";
  EXPECT_TRUE(says(run(begin + map + odd, 1, 1, &flat).error,
                   "it copies a tensor at shared address 1088, which is no multiple of 128; align it"));
}

TEST(Async, AMapThatWasDamagedIsNone) {
  TensorMap map;
  map.extents = {16};
  map.box = {16};
  auto object = encode(map);
  EXPECT_EQ(decodeTensorMap(object.data())->boxBytes(), 16u);
  object[0] = std::byte(1);
  EXPECT_FALSE(decodeTensorMap(object.data()));
}

} // namespace
