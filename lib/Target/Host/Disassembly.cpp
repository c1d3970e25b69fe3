//===- Disassembly.cpp - The machine code of a function, as text ----------===//
//
// llvm-objdump prints addresses; what branches go to becomes labels here (its own --symbolize-operands drops operands
// that are relative to the instruction pointer). A loop is what lies between a label and a branch back to it. Branches
// come in rising order, so one pass finds the loops that have no other inside.
//
//===----------------------------------------------------------------------===//
#include "k2c/Target/Disassembly.h"

#include "ToolOutput.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Program.h"
#include <map>
#include <vector>

using llvm::StringRef;

namespace k2c {

static constexpr const char *disassembler = "llvm-objdump-22";

namespace {

/// A line of llvm-objdump: "    48d1: \tmovq\t%rsp, %rbp".
struct Instruction {
  uint64_t address = 0;
  std::string mnemonic, operands;
  std::optional<uint64_t> target; ///< of a branch to an address: "jb\t0x4df0 <f+0x520>"
};

} // namespace

static std::optional<Instruction> instructionOf(StringRef line) {
  Instruction instruction;
  auto [address, code] = line.trim().split(':');
  if (code.empty() || address.getAsInteger(16, instruction.address))
    return std::nullopt;
  const auto [mnemonic, operands] = code.trim().split('\t');
  instruction.mnemonic = mnemonic.trim().str();
  instruction.operands = operands.trim().str();
  uint64_t target = 0;
  if (mnemonic.starts_with("j") && !operands.split(' ').first.getAsInteger(0, target))
    instruction.target = target;
  return instruction;
}

/// With names for what branches go to, numbered in their order.
static std::string labelled(const std::vector<Instruction> &code) {
  std::map<uint64_t, std::string> labels;
  for (const Instruction &instruction : code)
    if (instruction.target)
      labels[*instruction.target];
  size_t number = 0;
  for (auto &[address, label] : labels)
    label = "<L" + std::to_string(number++) + ">";
  std::string text;
  for (const Instruction &instruction : code) {
    if (const auto label = labels.find(instruction.address); label != labels.end())
      text += label->second + ":\n";
    const std::string &mnemonic = instruction.mnemonic;
    const std::string &operands = instruction.target ? labels[*instruction.target] : instruction.operands;
    text += "  " + mnemonic +
            (operands.empty() ? "" : std::string(mnemonic.size() < 13 ? 14 - mnemonic.size() : 1, ' ')) + operands +
            "\n";
  }
  return text;
}

Expected<std::optional<std::string>> disassemble(const std::string &path, const std::string &symbol) {
  llvm::ErrorOr<std::string> tool = llvm::sys::findProgramByName(disassembler);
  if (!tool)
    return std::optional<std::string>();
  const std::string only = "--disassemble-symbols=" + symbol;
  Expected<ToolOutput> printed = runTool(*tool, {"--disassemble", "--no-show-raw-insn", only, path}, path);
  if (!printed) {
    Error error = printed.takeError();
    if (error.remedy.empty())
      error.remedy = "compile it again";
    return error;
  }
  std::vector<Instruction> code;
  for (StringRef line : llvm::split(StringRef(printed->out), '\n'))
    if (std::optional<Instruction> instruction = instructionOf(line))
      code.push_back(std::move(*instruction));
  if (code.empty())
    return Error{path, "has no function " + symbol, "compile it again"};
  return std::optional<std::string>(labelled(code));
}

/// Whether the instruction of this name is a fused multiply-add, or a dot product, of vectors.
static bool isMultiplyAdd(StringRef mnemonic) {
  for (StringRef family : {"vfmadd", "vfmsub", "vfnmadd", "vfnmsub", "vdpbf16", "vpdp"})
    if (mnemonic.starts_with(family))
      return !mnemonic.ends_with("ss") && !mnemonic.ends_with("sd");
  return false;
}

namespace {

/// What instructions do.
struct Counts {
  int64_t all = 0, vectors = 0, multiplyAdds = 0;

  void add(StringRef mnemonic) {
    all += 1;
    vectors += mnemonic.starts_with("v");
    multiplyAdds += isMultiplyAdd(mnemonic);
  }
};

/// The lines of a function.
class Lines {
public:
  explicit Lines(StringRef assembly) {
    llvm::SplitString(assembly, lines, "\n");
    before.resize(lines.size() + 1);
    for (size_t i = 0; i < lines.size(); ++i) {
      before[i + 1] = before[i];
      if (!isLabel(i))
        before[i + 1].add(instruction(i).first);
    }
  }
  size_t size() const { return lines.size(); }
  bool isLabel(size_t i) const { return lines[i].starts_with("<"); }
  /// "<L3>" of "<L3>:".
  StringRef label(size_t i) const { return lines[i].drop_back(1); }
  /// Mnemonic and operands.
  std::pair<StringRef, StringRef> instruction(size_t i) const {
    auto [mnemonic, operands] = lines[i].trim().split(' ');
    return {mnemonic, operands.trim()};
  }
  /// Of lines [from, to).
  Counts counts(size_t from, size_t to) const {
    return {before[to].all - before[from].all, before[to].vectors - before[from].vectors,
            before[to].multiplyAdds - before[from].multiplyAdds};
  }
  AssemblyPart part(size_t from, size_t to) const {
    AssemblyPart part;
    for (size_t i = from; i < to; ++i)
      part.text += lines[i].str() + "\n";
    part.instructions = counts(from, to).all;
    part.multiplyAdds = counts(from, to).multiplyAdds;
    return part;
  }

private:
  llvm::SmallVector<StringRef> lines;
  std::vector<Counts> before; ///< each line, and behind the last
};

} // namespace

AssemblyPart wholeFunction(const std::string &assembly) {
  const Lines lines(assembly);
  return lines.part(0, lines.size());
}

AssemblyPart mainLoop(const std::string &assembly) {
  const Lines lines(assembly);
  llvm::StringMap<size_t> labels;
  // A loop that begins before one that has ended has that one inside.
  size_t least = 0, from = 0, to = 0;
  std::pair<int64_t, int64_t> greatest(-1, -1);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines.isLabel(i)) {
      labels[lines.label(i)] = i;
      continue;
    }
    const auto [mnemonic, operand] = lines.instruction(i);
    const auto begin = mnemonic.starts_with("j") ? labels.find(operand) : labels.end();
    if (begin == labels.end() || begin->second < least)
      continue;
    least = begin->second + 1;
    const Counts loop = lines.counts(begin->second, i + 1);
    if (const std::pair here(loop.multiplyAdds, loop.vectors); here > greatest) {
      greatest = here;
      from = begin->second;
      to = i + 1;
    }
  }
  return lines.part(from, to);
}

} // namespace k2c
