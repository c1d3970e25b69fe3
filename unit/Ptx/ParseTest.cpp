// A PTX text as data: what names mean, and what is refused.
#include "TestKernel.h"

using namespace k2c;
using namespace k2c::ptx;

namespace {

Module parsed(const std::string &text) {
  Expected<Module> module = parse(text, "test.ptx");
  EXPECT_TRUE(module) << (module ? "" : module.error().text());
  return module ? std::move(*module) : Module();
}

std::string refusal(const std::string &text) {
  Expected<Module> module = parse(text, "test.ptx");
  return module ? "no error" : module.error().text();
}

TEST(Parse, ReadsWhatAModuleSaysOfItself) {
  const Module module = parsed(".version 8.6\n.target sm_90a, debug\n.address_size 64\n");
  EXPECT_EQ(std::make_pair(module.major, module.minor), std::make_pair(8, 6));
  EXPECT_EQ(module.target, "sm_90a");
}

TEST(Parse, LaysOutVariables) {
  const Module module = parsed(".version 8.0\n.target sm_80\n.extern .shared .align 128 .b8 all[];\n"
                               ".global .align 4 .u16 table[2][2] = {{1, 2}, {3}};\n.const .f32 half = 0f3F000000;\n"
                               ".global .s8 below = -1;\n");
  ASSERT_EQ(module.variables.size(), 4u);
  EXPECT_EQ(module.variables[0].elements, 0u);
  EXPECT_EQ(module.variables[0].alignment, 128u);
  EXPECT_EQ(module.variables[1].bytes(), 8u);
  const std::byte table[] = {std::byte(1), {}, std::byte(2), {}, std::byte(3), {}};
  EXPECT_EQ(module.variables[1].initial, std::vector<std::byte>(std::begin(table), std::end(table)));
  EXPECT_EQ(module.variables[2].initial[3], std::byte(0x3f));
  EXPECT_EQ(module.variables[3].initial[0], std::byte(0xff));
}

TEST(Parse, ReadsWhatAnEntrySaysOfItsLaunch) {
  const Module module =
      parsed(".version 8.0\n.target sm_90\n.visible .entry k(.param .align 64 .b8 map[128], .param .u64 "
             ".ptr .global .align 16 p)\n.reqntid 128, 2\n.minnctapersm 1\n.explicitcluster\n"
             ".reqnctapercluster 2\n{ ret; }\n");
  const Function &kernel = *module.find("k");
  EXPECT_EQ(kernel.requiredThreads, (Extent{128, 2, 1}));
  EXPECT_EQ(kernel.requiredCluster, (Extent{2, 1, 1}));
  EXPECT_EQ(kernel.parameters[0].bytes(), 128u);
  EXPECT_EQ(kernel.parameters[1].type, Type::U64);
}

TEST(Parse, NamesBelongToTheirBlocks) {
  const Module module = parsed(moduleOf("mov.b32 %r0, 1;\n{ .reg .b32 %r0; mov.b32 %r0, 2;\nAgain: bra Again; }\n"
                                        "Again: bra Again;"));
  const std::vector<Instruction> &code = module.find("k")->code;
  EXPECT_NE(code[0].operands[0].index, code[1].operands[0].index);
  EXPECT_EQ(code[2].operands[0].index, 2u); // the label inside
  EXPECT_EQ(code[3].operands[0].index, 3u);
}

TEST(Parse, ALabelMayStandBehindItsUse) {
  const Module module = parsed(moduleOf("{ bra End; }\nret;\nEnd: ret;"));
  const Operand &label = module.find("k")->code[0].operands[0];
  EXPECT_EQ(label.kind, Operand::Kind::Label);
  EXPECT_EQ(label.index, 2u);
}

TEST(Parse, ReadsOperandsOfAllKinds) {
  const Module module = parsed(moduleOf("ld.v2.b32 {%r0, _}, [%d0+-8];\nsetp.lt.and.s32 %p0|%p1, %r0, -3, !%p2;\n"
                                        "@!%p0 mov.f32 %f0, 0f3F800000;\nmov.u32 %r1, %tid.x;\nmov.u64 %d1, tile;"));
  const std::vector<Instruction> &code = module.find("k")->code;
  EXPECT_EQ(code[0].operands[0].parts[1].kind, Operand::Kind::Sink);
  EXPECT_EQ(code[0].operands[1].bits, uint64_t(-8));
  EXPECT_EQ(code[1].operands[0].kind, Operand::Kind::Pair);
  EXPECT_EQ(code[1].operands[2].bits, uint64_t(-3));
  EXPECT_TRUE(code[1].operands[3].isNegated);
  EXPECT_TRUE(code[2].isGuardNegated);
  EXPECT_EQ(code[2].operands[1].bits, 0x3f800000u);
  EXPECT_EQ(code[3].operands[1].name, "tid.x");
  EXPECT_EQ(code[4].operands[1].kind, Operand::Kind::Variable);
  EXPECT_EQ(code[1].spelling(), "setp.lt.and.s32");
}

TEST(Parse, VariablesMayStandBehindAFunction) {
  const Module module = parsed(moduleOf("{ .param .b64 own; ld.v2.b32 {%r0, _}, [own+-8];\nmov.u64 %d1, tile; }\n"
                                        "ld.param.u64 %d0, [in];") +
                               ".global .b8 later[64];\n.entry l(.param .u64 x) { .reg .b64 %d;\n"
                               "mov.u64 %d, later; ld.param.u64 %d, [x]; }\n.shared .b8 last[4];\n");
  const auto named = [&](const char *function, size_t instruction) {
    const Function &of = *module.find(function);
    const Operand &operand = of.code[instruction].operands[1];
    const Operand &variable = operand.kind == Operand::Kind::Address ? operand.parts[0] : operand;
    EXPECT_EQ(variable.kind, Operand::Kind::Variable);
    return module.variable(of, variable.index).name;
  };
  EXPECT_EQ(named("k", 0), "own");
  EXPECT_EQ(named("k", 1), "tile");
  EXPECT_EQ(named("k", 2), "in");
  EXPECT_EQ(named("l", 0), "later");
  EXPECT_EQ(named("l", 1), "x");
}

TEST(Parse, SkipsWhatIsForDebuggers) {
  const Module module = parsed(
      ".version 8.0\n.target sm_80\n.file 1 \"k.cu\"\n.entry k()\n{\n.loc 1 2 3\nret;\n}\n.section .debug_str\n{\n"
      ".b8 1, 2\n}\n");
  EXPECT_EQ(module.find("k")->code.size(), 1u);
}

struct Refused {
  const char *text, *message;
};

TEST(Parse, AnErrorNamesItsLine) {
  const std::string begin = ".version 8.0\n.target sm_80\n";
  const Refused all[] = {
      {"", "test.ptx:1: a module begins with .version, not with the end of the text; give the text of a PTX module"},
      {".version 8", "test.ptx:1: .version '8' is no number; write it as 8.6"},
      {".version 8.0", "test.ptx:1: .target is missing behind .version"},
      {".version 8.0\n.target sm_80, texmode_unified", "test.ptx:2: .target texmode_unified is not supported"},
      {".version 8.0\n.target sm_80\n.address_size 32", "test.ptx:3: .address_size needs a number from 64 to 64"},
      {".version 8.0\n.target sm_80\n/* no end", "test.ptx:3: a comment does not end"},
      {".version 8.0\n.target sm_80\n.alias a, b;", "test.ptx:3: '.alias' is not supported in a module"},
      {".version 8.0\n.target sm_80\n.global .u32 x[3] = {1, 2, 3, 4};",
       "has 3 elements and more initial values; give as many at most"},
      {".version 8.0\n.target sm_80\n.global .u32 x[99999999999999];", "needs a number from 0 to"},
      {".version 8.0\n.target sm_80\n.global .u32 x[1099511627776][99];", "'x' has more than 1099511627776 bytes"},
      {".version 8.0\n.target sm_80\n.global .align 3 .u32 x;", ".align 3 is no power of two"},
      {".version 8.0\n.target sm_80\n.global .u32 x;\n.global .u32 x;", "test.ptx:4: 'x' is declared twice"},
      {".version 8.0\n.target sm_80\n.entry k() { ret;", "test.ptx:3: 'k' does not end; close its braces"},
      {".version 8.0\n.target sm_80\n.entry k() { ret; }\n.entry k() { ret; }", "test.ptx:4: 'k' is defined twice"},
      {".version 8.0\n.target sm_80\n.entry k() { mov.u32 a, 0x123456789abcdef01; }",
       "'0x123456789abcdef01' is no number of 64 bits"},
      {".version 8.0\n.target sm_80\nfunny", "test.ptx:3: a directive is expected where 'funny' is"},
      {".version 8.0\n.target sm_80\n.global .attribute(.managed) .u32 x;",
       "test.ptx:3: '.attribute' of a variable is not supported; leave it out"},
      {".version 8.0\n.target sm_80\n.global .v2 .f32 x;", "test.ptx:3: variables of type '.v2' are not supported"},
      {".version 8.0\n.target sm_80\n.global .u64 x = y;",
       "test.ptx:3: the initial value 'y' of 'x' is not supported; give numbers"},
      {".version 8.0\n.target sm_80\n.global .u32;", "test.ptx:3: a variable needs a name where ';' is"},
      {".version 8.0\n.target sm_80\n.entry k(.reg .u32 x) { ret; }",
       "test.ptx:3: a parameter needs .param where '.reg' is"},
      {".version 8.0\n.target sm_80\n.entry k() .maxclusterrank 2 { ret; }",
       "test.ptx:3: '.maxclusterrank' of a function is not supported; leave it out"},
      {".version 8.0\n.target sm_80\n.file 1 \"k.cu", "test.ptx:3: a string does not end"},
      {".version 8.0\n.target sm_80\n#", "test.ptx:3: '#' is no part of PTX; give the text of a PTX module"},
      {".version 8.0\n.target sm_80\n.global .f32 x = 1.5e;", "test.ptx:3: '1.5e' is no number"},
      {".version 8.0\n.target sm_80\n.entry k() { mov.f32 a, 0f12; }", "'0f12' has not the 8 digits of its type"},
  };
  for (const Refused &one : all)
    EXPECT_TRUE(says(refusal(one.text), one.message));
}

TEST(Parse, AnErrorInABodyNamesItsLine) {
  const Refused all[] = {
      {"bra Nowhere;", "test.ptx:8: 'Nowhere' is no register, variable or label of 'k'; declare it before its use"},
      {"\n@%r0 ret;", "test.ptx:9: the guard '%r0' is no predicate register"},
      {".reg .b32 %r0; .reg .b32 %r0;", "test.ptx:8: '%r0' is declared twice in one block"},
      {".reg .b32 %x<4000000>;", "a range of registers needs a number from 0 to 131072"},
      {".reg .b32 %x<100000>; .reg .b32 %y<100000>;", "'k' declares more than 131072 registers; split it"},
      {".reg .b128 %x;", "registers of type '.b128' are not supported"},
      {".reg .v4 .b32 %x;", "registers of type '.v4' are not supported"},
      {"L: ret; L: ret;", "'L' is declared twice in one block"},
      {"mov.b32 %r0, %r1.x;", "an element of '%r1' is not supported; use scalar registers"},
      {"ret;\nmov.b32 %r0, ;", "test.ptx:9: an operand is expected where ';' is"},
      {".callprototype A;", "'.callprototype' in a function is not supported"},
      {"ld.b32 %r0, [%d0;", "an address needs ']' where ';' is"},
  };
  for (const Refused &one : all)
    EXPECT_TRUE(says(refusal(moduleOf(one.text)), one.message));
}

TEST(Parse, NestingHasABound) {
  EXPECT_TRUE(says(refusal(moduleOf(std::string(100, '{'))), "blocks are nested 64 deep; nest them less"));
  EXPECT_TRUE(
      says(refusal(moduleOf("mov.b32 " + std::string(100, '{'))), "operands are nested 8 deep; nest them less"));
}

TEST(Parse, ACutTextIsRefusedOrRead) {
  const std::string text = moduleOf("{ .reg .b32 %x; L: @%p1 bra L; }\nld.v2.b32 {%r0, %r1}, [%d0+4];\nret;");
  for (size_t size = 0; size < text.size(); ++size) {
    Expected<Module> module = parse(std::string_view(text).substr(0, size), "test.ptx");
    EXPECT_TRUE(!module || !module->find("k") || size + 2 > text.size()) << size;
  }
}

} // namespace
