//===- SassTest.cpp - Machine code of a GPU as text: mixes, main loops, what they must not have ---===//
#include "k2c/Target/Sass.h"
#include "k2c/Target/Nvidia.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

/// A loop that multiplies within one that does not, one of few products, and how a function ends.
const std::string sass = R"(
	.section	.text.k,"ax",@progbits
k:
.text.k:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   STL [R1], R2 ;
.L_x_1:
        /*0020*/              @!P0 BRA `(.L_x_4) ;
.L_x_2:
        /*0030*/                   LDG.E.64 R2, desc[UR10][R2.64] ;
        /*0040*/                   FFMA R64, R50, R46, R64 ;
        /*0050*/                   FFMA R65, R51, R46, R65 ;
        /*0060*/              @!P1 BRA `(.L_x_2) ;
        /*0070*/                   MEMBAR.SC.GPU ;
        /*0080*/               @P2 BRA `(.L_x_1) ;
.L_x_3:
        /*0090*/                   FFMA.FTZ R64, R50, R46, R64 ;
        /*00a0*/                   STL.64 [R1], R64 ;
        /*00b0*/               @P2 BRA `(.L_x_3) ;
.L_x_4:
        /*00c0*/                   EXIT ;
.L_x_5:
        /*00d0*/                   BRA `(.L_x_5) ;
)";

std::string refused(const std::string &text) {
  Status status = checkCode("linear", {"", 40, 0, 0}, text);
  return status ? "" : status.takeError().text();
}

TEST(Sass, InstructionsAreCountedByFamily) {
  const InstructionMix wanted = {{"LDC", 1},  {"STL", 2},    {"BRA", 5}, {"LDG", 1},
                                 {"FFMA", 3}, {"MEMBAR", 1}, {"EXIT", 1}};
  EXPECT_EQ(mixOfSass(sass), wanted);
  EXPECT_EQ(instructionsOf(wanted), 14);
}

TEST(Sass, MainLoopsHaveHalfOfTheMostMultiplyAddsAtLeast) {
  const std::vector<InstructionMix> both = {{{"LDG.E.64", 1}, {"FFMA", 2}, {"BRA", 1}},
                                            {{"FFMA.FTZ", 1}, {"STL.64", 1}, {"BRA", 1}}};
  EXPECT_EQ(mainLoops(sass), both);
  std::string more = sass;
  more.insert(more.find("        /*0060*/"), "        /*0058*/ FFMA R66, R51, R46, R65 ;\n");
  EXPECT_EQ(mainLoops(more), (std::vector<InstructionMix>{{{"LDG.E.64", 1}, {"FFMA", 3}, {"BRA", 1}}}));
}

TEST(Sass, MainLoopsWithoutMultiplyAddsAreTheLongest) {
  std::string text = sass;
  for (size_t at; (at = text.find("FFMA")) != std::string::npos;)
    text.replace(at, 4, "FADD");
  EXPECT_EQ(mainLoops(text).size(), 2u);
  EXPECT_TRUE(mainLoops("/*0*/ EXIT ;\n").empty());
}

TEST(Sass, LoopsAskForBytesByTheirAccesses) {
  const InstructionMix loop = {
      {"LDG.E.128.CONSTANT", 2}, {"LDS.U8", 1}, {"STS.64", 1}, {"LDG.E", 1}, {"LDC.64", 9}, {"FFMA", 40}};
  EXPECT_EQ(sharedBytesOf(loop), 32 + 32 * 8);
  EXPECT_EQ(l1CyclesOf(loop), 4 * (32 * (2 * 16 + 4) + 32 + 32 * 8) / 128);
  EXPECT_FALSE(hasTensorProducts(loop));
  EXPECT_TRUE(hasTensorProducts({{"HGMMA.64x256x16.F32.BF16", 1}}));
}

TEST(Sass, CodeThatSpillsIsRefused) {
  EXPECT_TRUE(checkCode("linear", {"", 255, 0, 0}, std::nullopt));
  EXPECT_EQ(
      checkCode("linear", {"", 255, 20, 0}, std::nullopt).takeError().text(),
      "linear: ptxas spills 20 bytes of a thread beside 255 registers, and 0 are allowed; name a later ptxas with "
      "K2C_PTXAS, or one that is not there: the driver compiles PTX");
}

TEST(Sass, MainLoopsNeitherWaitForMemoryNorKeepRegistersThere) {
  const std::string remedy = ", and 0 are allowed; name a later ptxas with K2C_PTXAS, or one that is not there: the "
                             "driver compiles PTX";
  EXPECT_EQ(refused(sass), "linear: a main loop of 3 instructions has 1 of STL.64, which writes local memory" + remedy);
  auto inLoop = [](const std::string &name) {
    return ".L_1:\n/*0*/ FFMA R1, R2, R3, R4 ;\n/*10*/ " + name + " ;\n/*20*/ BRA `(.L_1) ;\n";
  };
  EXPECT_EQ(refused(inLoop("LDG.E R1, [R2.64]")), "");
  const std::string waits = "which waits until the device has seen what it wrote";
  for (const auto &[name, does] : std::initializer_list<std::pair<std::string, std::string>>{
           {"MEMBAR.SC.GPU", waits},
           {"ERRBAR", waits},
           {"LDL.128", "which reads local memory"},
           {"BRA.U.ANY", "which runs lanes one after the other"}})
    EXPECT_EQ(refused(inLoop(name)), "linear: a main loop of 3 instructions has 1 of " + name + ", " + does + remedy);
}

TEST(Sass, InstructionsOfPtxAreCountedWithTheirMemory) {
  const std::string ptx = R"(.version 8.0
.visible .entry k(
	.param .u64 k_param_0
)
.reqntid 128
{
	.reg .b32 	%r<4>;
// %bb.0:
	ld.param.b64 	%rd1, [k_param_0];
	ld.relaxed.sys.global.v2.b32 	{%r1, %r2}, [%rd1];
	{ // callseq
	st.shared::cta.b32 	[%r1], %r2;
	}
$L__BB0_1:
	fma.rn.ftz.f32 	%f1, %f2, %f3, %f4; // a product
	@%p1 bra 	$L__BB0_1;
	ret;
}
)";
  const InstructionMix wanted = {{"ld.param", 1}, {"ld.global", 1}, {"st.shared", 1},
                                 {"fma", 1},      {"bra", 1},       {"ret", 1}};
  EXPECT_EQ(mixOfPtx(ptx), wanted);
}

TEST(Sass, NvdisasmOfAnotherToolkitIsAnError) {
  EXPECT_EQ(sassOf("/bin/false", "k.cubin").error().text(),
            "k.cubin: false failed: exit code 1; name another with K2C_NVDISASM, one of the toolkit that ptxas is of "
            "or a later "
            "one");
}

} // namespace
