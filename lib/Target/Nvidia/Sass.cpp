//===- Sass.cpp - The machine code of a GPU, as text -------------------------------------------===//
//
// What nvdisasm prints:
//
//   .L_x_17:
//           /*1290*/                   FFMA R64, R50, R46, R64 ;
//           /*2480*/              @!P1 BRA `(.L_x_17) ;
//
// A loop is what lies between a label and a branch back to it. Branches come in rising order, so one pass finds the
// loops that have no other inside. A branch to itself is how the assembler ends a function.
//
//===----------------------------------------------------------------------===//
#include "k2c/Target/Sass.h"
#include "lib/Target/Host/ToolOutput.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>

using llvm::StringRef;

namespace k2c {

int64_t instructionsOf(const InstructionMix &mix) {
  int64_t all = 0;
  for (const auto &[name, count] : mix)
    all += count;
  return all;
}

Expected<std::string> sassOf(const std::string &nvdisasm, const std::string &path) {
  Expected<ToolOutput> printed = runTool(nvdisasm, {"--print-code", path}, path);
  if (printed)
    return std::move(printed->out);
  Error error = printed.takeError();
  if (error.remedy.empty())
    error.remedy = "name another with K2C_NVDISASM, one of the toolkit that ptxas is of or a later one";
  return error;
}

namespace {

struct Instruction {
  StringRef name;   ///< in full: LDG.E.64
  StringRef target; ///< of a branch: ".L_x_17"; else ""
};

} // namespace

/// Without the predicate that guards it, "@!P1" or "@%p1".
static StringRef unguarded(StringRef code) {
  return code.starts_with("@") ? code.drop_until([](char c) { return c == ' ' || c == '\t'; }).ltrim() : code;
}

static std::optional<Instruction> instructionOf(StringRef line) {
  if (!line.consume_front("/*"))
    return std::nullopt;
  const StringRef code = unguarded(line.split("*/").second.ltrim());
  const auto [name, operands] = code.split(' ');
  if (name.empty() || !llvm::isUpper(name.front()))
    return std::nullopt;
  Instruction instruction{name.take_until([](char c) { return c == ';'; }), ""};
  if (name.starts_with("BRA"))
    instruction.target = operands.split("`(").second.split(')').first;
  return instruction;
}

static StringRef family(StringRef name) { return name.split('.').first; }

static bool isMultiplyAdd(StringRef name) {
  return llvm::is_contained({"FFMA", "DFMA", "HMMA", "IMMA", "DMMA", "QMMA", "OMMA", "HGMMA", "QGMMA", "IGMMA"},
                            family(name));
}

InstructionMix mixOfSass(const std::string &sass) {
  InstructionMix mix;
  for (StringRef line : llvm::split(StringRef(sass), '\n'))
    if (const std::optional<Instruction> instruction = instructionOf(line.trim()))
      ++mix[family(instruction->name).str()];
  return mix;
}

/// "ld.global" of "ld.relaxed.sys.global.b32", "fma" of "fma.rn.ftz.f32".
static std::string ptxName(StringRef opcode) {
  llvm::SmallVector<StringRef> parts;
  opcode.split(parts, '.');
  for (StringRef part : llvm::drop_begin(parts))
    if (llvm::is_contained({"global", "shared", "local", "param", "const"}, part.split(':').first))
      return (parts.front() + "." + part.split(':').first).str();
  return parts.front().str();
}

InstructionMix mixOfPtx(const std::string &ptx) {
  InstructionMix mix;
  int64_t depth = 0; // of braces: where there are any is a function's body
  for (StringRef line : llvm::split(StringRef(ptx), '\n')) {
    line = line.split("//").first.trim();
    depth += int64_t(line.count('{')) - int64_t(line.count('}'));
    const StringRef code = unguarded(line);
    if (depth > 0 && code.ends_with(";") && llvm::isLower(code.front()))
      ++mix[ptxName(code.take_until([](char c) { return c == ' ' || c == '\t' || c == ';'; }))];
  }
  return mix;
}

/// Those that have no other inside.
static std::vector<InstructionMix> innermostLoops(StringRef sass) {
  std::vector<StringRef> names;
  llvm::StringMap<size_t> labels;
  std::vector<InstructionMix> loops;
  size_t least = 0; // a loop that begins before one that has ended has that one inside
  for (StringRef line : llvm::split(sass, '\n')) {
    line = line.trim();
    if (line.starts_with(".L") && line.consume_back(":"))
      labels[line] = names.size();
    const std::optional<Instruction> instruction = instructionOf(line);
    if (!instruction)
      continue;
    names.push_back(instruction->name);
    const auto begin = labels.find(instruction->target);
    if (begin == labels.end() || begin->second < least || begin->second + 1 == names.size())
      continue;
    least = begin->second + 1;
    InstructionMix &loop = loops.emplace_back();
    for (StringRef name : llvm::ArrayRef(names).drop_front(begin->second))
      ++loop[name.str()];
  }
  return loops;
}

int64_t multiplyAddsOf(const InstructionMix &loop) {
  int64_t all = 0;
  for (const auto &[name, count] : loop)
    all += isMultiplyAdd(name) ? count : 0;
  return all;
}

/// Of LDG.E.128.CONSTANT and the like.
static int64_t accessBytes(StringRef name) {
  constexpr int64_t lanes = 32;
  int64_t bytes = 4;
  llvm::SmallVector<StringRef> parts;
  name.split(parts, '.');
  for (StringRef part : llvm::drop_begin(parts)) {
    if (part == "64" || part == "128")
      bytes = part == "64" ? 8 : 16;
    else if (part == "U8" || part == "S8")
      bytes = 1;
    else if (part == "U16" || part == "S16")
      bytes = 2;
  }
  return lanes * bytes;
}

static int64_t bytesOf(const InstructionMix &loop, llvm::ArrayRef<StringRef> families) {
  int64_t all = 0;
  for (const auto &[name, count] : loop)
    if (llvm::is_contained(families, family(name)))
      all += count * accessBytes(name);
  return all;
}

int64_t sharedBytesOf(const InstructionMix &loop) { return bytesOf(loop, {"LDS", "STS", "LDSM", "STSM", "ATOMS"}); }

static int64_t accessedBytesOf(const InstructionMix &loop) {
  return sharedBytesOf(loop) + bytesOf(loop, {"LDG", "STG", "LD", "ST", "LDL", "STL", "ATOMG", "ATOM", "RED", "REDG"});
}

bool hasTensorProducts(const InstructionMix &loop) {
  return llvm::any_of(loop, [](const auto &each) { return family(each.first).ends_with("MMA"); });
}

int64_t l1CyclesOf(const InstructionMix &loop) {
  constexpr int64_t schedulers = 4, bytesPerCycle = 128;
  return schedulers * accessedBytesOf(loop) / bytesPerCycle;
}

std::vector<InstructionMix> mainLoops(const std::string &sass) {
  std::vector<InstructionMix> loops = innermostLoops(sass);
  for (int64_t (*measure)(const InstructionMix &) : {multiplyAddsOf, instructionsOf}) {
    int64_t most = 0;
    for (const InstructionMix &loop : loops)
      most = std::max(most, measure(loop));
    if (most > 0) {
      llvm::erase_if(loops, [&](const InstructionMix &loop) { return measure(loop) * 2 < most; });
      break;
    }
  }
  return loops;
}

} // namespace k2c
