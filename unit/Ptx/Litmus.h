// Litmus kernels: a text that is right, and the same text with one part missing or too weak.
#ifndef K2C_UNIT_PTX_LITMUS_H
#define K2C_UNIT_PTX_LITMUS_H

#include "TestKernel.h"

namespace k2c::ptx {

/// Who runs. %r9 is the role: the number of the CTA or, in one CTA, of the warp; %r8 the lane; %p15: it is not 0.
struct Shape {
  uint32_t ctas, warps, cluster;
  uint32_t lanes = 32;
};

struct Litmus {
  const char *name;
  Shape shape;
  std::string text;       ///< is right
  std::string part, weak; ///< `weak` in the place of the first `part`
  std::string finding;    ///< of the text that is wrong then; empty: a race, or bytes that are not there yet
};

/// %d8: out, all of it written, with data at 0 and flags from 64 on; %d9: in; %r7: the thread; %r6: tile, %r5: that of
/// the other CTA of a cluster of two.
inline std::string litmusText(const Litmus &litmus, const std::string &body) {
  const bool isOfCtas = litmus.shape.ctas > 1;
  return "ld.param.u64 %d8, [out]; ld.param.u64 %d9, [in]; mov.u32 %r7, %tid.x; mov.u32 %r8, %laneid;\n"
         "shr.u32 %r9, %r7, 5; setp.ne.b32 %p15, %r8, 0; mov.u32 %r6, tile;\n" +
         std::string(isOfCtas ? "mov.u32 %r9, %ctaid.x; xor.b32 %r5, %r9, 1;\n" : "") +
         (litmus.shape.cluster > 1 ? "mapa.shared::cluster.u32 %r5, %r6, %r5;\n" : "") + body;
}

inline std::string verdict(const Litmus &litmus, const std::string &body, uint64_t seed, bool isByWarp = true) {
  TestKernel kernel(litmusText(litmus, body));
  kernel.memory.markWritten(kernel.out.data(), kernel.out.size() * 4);
  kernel.launch.grid = {litmus.shape.ctas, 1, 1};
  kernel.launch.cluster = {litmus.shape.cluster, 1, 1};
  kernel.launch.block = {(litmus.shape.warps - 1) * 32 + litmus.shape.lanes, 1, 1};
  kernel.options.isStrict = true;
  kernel.options.isByWarp = isByWarp;
  kernel.options.idleInstructions = 20000;
  kernel.options.seed = seed;
  return kernel.run();
}

/// The right text is accepted under every seed, and the other one's finding is made under one of them.
inline void check(const Litmus &litmus) {
  constexpr uint64_t seeds = 24;
  const size_t at = litmus.text.find(litmus.part);
  ASSERT_NE(at, std::string::npos) << litmus.name << ": it has no '" << litmus.part << "'";
  std::string wrong = litmus.text;
  wrong.replace(at, litmus.part.size(), litmus.weak);
  const auto isWanted = [&](const std::string &said) {
    return !litmus.finding.empty()       ? says(said, litmus.finding)
           : says(said, "never written") ? testing::AssertionSuccess()
                                         : says(said, "nothing orders it with '");
  };
  std::string said;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    ASSERT_EQ(verdict(litmus, litmus.text, seed), "") << litmus.name << ", seed " << seed;
    if (!isWanted(said))
      said = verdict(litmus, wrong, seed);
  }
  EXPECT_TRUE(isWanted(said)) << litmus.name << ", without '" << litmus.part << "'";
}

/// Role 0 gives, the others wait for a flag at `flag` of `out` and take.
inline std::string await(const std::string &load, const std::string &flag, const std::string &value = "1") {
  return "Wait" + flag + ": " + load + " %r1, [%d8+" + flag + "];\nsetp.ne.b32 %p2, %r1, " + value +
         ";\n@%p2 bra Wait" + flag + ";\n";
}
inline std::string gives(const std::string &body) {
  return "setp.ne.b32 %p0, %r9, 0;\n@%p0 bra Take;\n" + body + "\nret;\nTake:\n";
}

} // namespace k2c::ptx

#endif // K2C_UNIT_PTX_LITMUS_H
