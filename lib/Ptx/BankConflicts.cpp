//===- BankConflicts.cpp - Whether shared memory answers a warp at once -----===//
//
// Shared memory has 32 banks of four bytes. An access of a warp is free of conflicts if its lanes read one address, or
// if lane i reads at base + i * stride and the stride is the access's width, or an odd multiple of it. So a register is
//
//   value(lane) = value(0) + stride * lane     where the stride is known; 0: all lanes have the same
//
// or unknown. Strides are those of sums, of products with constants, of what lanes read at one address, and so on,
// until no more are found. That holds as long as lanes go the same way. Where a branch is taken by some of them, a
// register that is written in two places may be of either in each lane, and what is loaded may have changed meanwhile:
// both are unknown then, in the whole function.
//
// Threads of a CTA lie along one axis, so a warp has 32 that follow each other. What other instructions than loads and
// stores do to shared memory is not looked into: those that touch none are listed, and with any other one (atom, wmma,
// call) nothing is shown. (PTX ISA, State Spaces; the CUDA Programming Guide, Shared Memory)
//
//===----------------------------------------------------------------------===//
#include "k2c/Ptx/BankConflicts.h"

#include <algorithm>
#include <string_view>

namespace k2c::ptx {

namespace {

constexpr int64_t lanes = 32;

struct Value {
  enum class Kind : uint8_t { Unseen, Strided, Unknown };

  Kind kind = Kind::Unseen;
  int64_t stride = 0;
  std::optional<int64_t> constant;
  bool isThread = false; ///< the number of the thread in its CTA

  bool isUniform() const { return kind == Kind::Strided && stride == 0; }
  bool operator==(const Value &other) const { return kind == other.kind && stride == other.stride; }
};

const Value unknown{Value::Kind::Unknown, 0, {}, false};
const Value uniform{Value::Kind::Strided, 0, {}, false};

Value strided(int64_t stride) { return {Value::Kind::Strided, stride, {}, false}; }

template <size_t N> bool isIn(const std::string_view (&words)[N], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

bool hasModifier(const Instruction &instruction, std::string_view wanted) {
  return std::any_of(instruction.modifiers.begin(), instruction.modifiers.end(), [&](const std::string &modifier) {
    return std::string_view(modifier).substr(0, modifier.find(':')) == wanted; // shared::cta
  });
}

/// What an instruction computes of one value for all lanes is one value.
bool isArithmetic(std::string_view opcode) {
  constexpr std::string_view known[] = {"abs",      "add", "and", "bfe",   "bfi",  "bfind", "brev", "clz",  "cnot",
                                        "copysign", "cos", "cvt", "cvta",  "div",  "ex2",   "fma",  "lg2",  "lop3",
                                        "mad",      "max", "min", "mov",   "mul",  "neg",   "not",  "or",   "popc",
                                        "prmt",     "rcp", "rem", "rsqrt", "sad",  "selp",  "set",  "setp", "shf",
                                        "shl",      "shr", "sin", "slct",  "sqrt", "sub",   "tanh", "xor"};
  return isIn(known, opcode);
}

bool isOfFloats(const Instruction &instruction) {
  return std::any_of(instruction.modifiers.begin(), instruction.modifiers.end(), [](const std::string &modifier) {
    const std::optional<Type> type = typeSpelled(modifier);
    return type && (kindOf(*type) == TypeKind::Float || kindOf(*type) == TypeKind::Packed);
  });
}

Value special(std::string_view name) {
  constexpr std::string_view same[] = {"tid.y",   "tid.z",    "ntid.x",   "ntid.y",   "ntid.z", "ctaid.x", "ctaid.y",
                                       "ctaid.z", "nctaid.x", "nctaid.y", "nctaid.z", "warpid", "nwarpid", "smid"};
  if (name == "tid.x")
    return {Value::Kind::Strided, 1, {}, true};
  if (name == "laneid")
    return strided(1);
  return isIn(same, name) ? uniform : unknown;
}

/// The strides of a function's registers.
class Strides {
public:
  Strides(const Function &function, bool isParted)
      : isParted(isParted), values(function.registers.size()), written(values.size()) {
    std::vector<std::pair<const Instruction *, std::vector<uint32_t>>> writing;
    for (const Instruction &instruction : function.code)
      if (std::vector<uint32_t> indices = results(instruction); !indices.empty())
        writing.emplace_back(&instruction, std::move(indices));
    for (const auto &[instruction, indices] : writing)
      for (uint32_t index : indices)
        ++written[index];
    for (bool changes = true; changes;) {
      changes = false;
      for (const auto &[instruction, indices] : writing)
        changes |= step(*instruction, indices);
    }
  }

  /// Whether all lanes of a warp that execute it do what it says, or none.
  bool isTogether(const Instruction &instruction) const {
    return instruction.guard == Instruction::noGuard || values[instruction.guard].isUniform();
  }
  Value of(const Operand &operand) const;

private:
  static std::vector<uint32_t> results(const Instruction &instruction);
  bool step(const Instruction &instruction, const std::vector<uint32_t> &indices);
  Value computed(const Instruction &instruction) const;
  Value loaded(const Instruction &instruction) const;
  Value affine(const Instruction &instruction, const std::vector<Value> &sources) const;

  const bool isParted; ///< lanes may go different ways
  std::vector<Value> values;
  std::vector<int> written; ///< in how many places
};

/// Registers that an instruction may write: of its first operand, where that is no address.
std::vector<uint32_t> Strides::results(const Instruction &instruction) {
  std::vector<uint32_t> indices;
  if (instruction.operands.empty())
    return indices;
  const Operand &first = instruction.operands.front();
  const bool isList = first.kind == Operand::Kind::Vector || first.kind == Operand::Kind::Pair;
  for (const Operand &part : isList ? first.parts : std::vector<Operand>{first})
    if (part.kind == Operand::Kind::Register)
      indices.push_back(part.index);
  return indices;
}

Value Strides::of(const Operand &operand) const {
  switch (operand.kind) {
  case Operand::Kind::Register:
    return values[operand.index];
  case Operand::Kind::Integer:
    return {Value::Kind::Strided, 0, static_cast<int64_t>(operand.bits), false};
  case Operand::Kind::Float32:
  case Operand::Kind::Float64:
  case Operand::Kind::Variable:
    return uniform;
  case Operand::Kind::Special:
    return special(operand.name);
  case Operand::Kind::Address:
    return of(operand.parts.front());
  case Operand::Kind::Vector:
    for (const Operand &part : operand.parts)
      if (const Value value = of(part); !value.isUniform())
        return value.kind == Value::Kind::Unseen ? value : unknown;
    return uniform;
  default:
    return unknown;
  }
}

/// Joins what the instruction computes with what `indices`, its results, were; true: one has changed.
bool Strides::step(const Instruction &instruction, const std::vector<uint32_t> &indices) {
  const bool isTogetherHere = isTogether(instruction);
  const Value of = computed(instruction);
  bool changes = false;
  for (uint32_t index : indices) {
    Value &known = values[index];
    const bool mayMix = !isTogetherHere || (isParted && written[index] > 1);
    const Value value = mayMix ? unknown : of;
    if (value.kind == Value::Kind::Unseen || known.kind == Value::Kind::Unknown)
      continue;
    const Value joined = known.kind == Value::Kind::Unseen || known == value ? value : unknown;
    changes |= !(joined == known);
    known = joined;
    if (written[index] > 1)
      known.constant.reset();
    known.isThread &= written[index] == 1;
  }
  return changes;
}

Value Strides::computed(const Instruction &instruction) const {
  constexpr std::string_view sameForAll[] = {"vote", "redux", "bar", "barrier"};
  const std::string_view opcode = instruction.opcode;
  if (isIn(sameForAll, opcode))
    return uniform;
  if (opcode == "ld")
    return loaded(instruction);
  std::vector<Value> sources;
  for (size_t i = 1; i < instruction.operands.size(); ++i) {
    sources.push_back(of(instruction.operands[i]));
    if (sources.back().kind == Value::Kind::Unseen)
      return sources.back();
  }
  if (opcode == "shfl" && sources.size() >= 3)
    return hasModifier(instruction, "idx") && sources[1].isUniform() && sources[2].constant == lanes - 1 ? uniform
                                                                                                         : unknown;
  if (!isArithmetic(opcode))
    return unknown;
  if (!isOfFloats(instruction))
    if (const Value value = affine(instruction, sources); value.kind == Value::Kind::Strided)
      return value;
  const bool isSame = std::all_of(sources.begin(), sources.end(), [](const Value &v) { return v.isUniform(); });
  return isSame ? uniform : unknown;
}

/// What lanes read at one address; parameters and constants stay as they are.
Value Strides::loaded(const Instruction &instruction) const {
  const Value address = of(instruction.operands.back());
  if (address.kind == Value::Kind::Unseen)
    return address;
  const bool isKept = hasModifier(instruction, "param") || hasModifier(instruction, "const");
  return address.isUniform() && (isKept || !isParted) ? uniform : unknown;
}

/// Of integers; unknown: by this it is not.
Value Strides::affine(const Instruction &instruction, const std::vector<Value> &sources) const {
  const std::string_view opcode = instruction.opcode;
  if (sources.empty() || sources.front().kind == Value::Kind::Unknown)
    return unknown;
  const Value &a = sources.front();
  const bool isCopy = opcode == "mov" || opcode == "cvta" || opcode == "cvt";
  if (isCopy && instruction.operands.front().kind == Operand::Kind::Register)
    return a;
  if (sources.size() < 2 || sources[1].kind == Value::Kind::Unknown)
    return unknown;
  const Value &b = sources[1];
  const bool isHigh = hasModifier(instruction, "hi");
  if (opcode == "add")
    return strided(a.stride + b.stride);
  if (opcode == "sub")
    return strided(a.stride - b.stride);
  if (opcode == "shl" && b.constant && *b.constant >= 0 && *b.constant < 32)
    return strided(a.stride * (int64_t(1) << *b.constant));
  if (opcode == "shr" && a.isThread && b.constant && *b.constant >= 5)
    return uniform;
  if (opcode == "and" && a.isThread && b.constant == lanes - 1)
    return strided(1);
  if (opcode == "selp" && sources.size() == 3 && sources[2].isUniform() && a.stride == b.stride)
    return strided(a.stride);
  if ((opcode == "mul" || opcode == "mad") && !isHigh && (a.constant || b.constant)) {
    const int64_t product = a.constant ? b.stride * *a.constant : a.stride * *b.constant;
    if (opcode == "mul")
      return strided(product);
    if (sources.size() == 3 && sources[2].kind == Value::Kind::Strided)
      return strided(product + sources[2].stride);
  }
  return unknown;
}

/// Of a load or store: of one lane.
int64_t widthOf(const Instruction &instruction) {
  int64_t width = 0, elements = 1;
  for (const std::string &modifier : instruction.modifiers)
    if (const std::optional<Type> type = typeSpelled(modifier))
      width = bytesOf(*type);
    else if (modifier == "v2" || modifier == "v4" || modifier == "v8")
      elements = modifier[1] - '0';
  return width * elements;
}

bool isSpread(int64_t stride, int64_t width) {
  if (stride == 0 || std::abs(stride) == width)
    return true;
  return width >= 4 && stride % width == 0 && stride / width % 2 != 0;
}

/// Of loads, stores, and what touches no shared memory.
bool isFree(const Instruction &instruction, const Strides &strides) {
  constexpr std::string_view elsewhere[] = {"global", "local", "param", "const"};
  constexpr std::string_view without[] = {"activemask", "bar",      "barrier", "bra",    "branchtargets",
                                          "brx",        "elect",    "exit",    "fence",  "griddepcontrol",
                                          "isspacep",   "mapa",     "match",   "membar", "mma",
                                          "nanosleep",  "prefetch", "redux",   "ret",    "setmaxnreg",
                                          "shfl",       "trap",     "vote"};
  const auto isOf = [&](std::string_view space) { return hasModifier(instruction, space); };
  const std::string_view opcode = instruction.opcode;
  if (isArithmetic(opcode) || isIn(without, opcode))
    return true;
  if (opcode != "call" && std::any_of(std::begin(elsewhere), std::end(elsewhere), isOf) && !isOf("shared"))
    return true;
  const size_t place = opcode == "ld" ? 1 : 0;
  const int64_t width = widthOf(instruction);
  if ((opcode != "ld" && opcode != "st") || isOf("async") || width == 0 || instruction.operands.size() <= place)
    return false;
  const Value address = strides.of(instruction.operands[place]);
  return address.kind == Value::Kind::Strided && isSpread(address.stride, width);
}

/// Whether there is shared memory, or may be.
bool namesSharedMemory(const Module &module) {
  const auto isShared = [](const Variable &variable) { return variable.space == Space::Shared; };
  const auto declares = [&](const std::vector<Variable> &variables) {
    return std::any_of(variables.begin(), variables.end(), isShared);
  };
  return declares(module.variables) ||
         std::any_of(module.functions.begin(), module.functions.end(), [&](const Function &function) {
           return declares(function.variables) ||
                  std::any_of(function.code.begin(), function.code.end(), [](const Instruction &instruction) {
                    return instruction.opcode == "call" || hasModifier(instruction, "shared");
                  });
         });
}

} // namespace

bool hasNoBankConflicts(const Module &module, const Function &function) {
  if (!namesSharedMemory(module))
    return true;
  const Extent &threads = function.requiredThreads;
  if (!function.isEntry || threads[0] == 0 || threads[0] % lanes != 0 || threads[1] > 1 || threads[2] > 1)
    return false;
  const auto parts = [](const Strides &strides, const Instruction &instruction) {
    return instruction.opcode == "brx" || (instruction.opcode == "bra" && !strides.isTogether(instruction));
  };
  for (const bool isParted : {false, true}) {
    const Strides strides(function, isParted);
    if (!isParted && std::any_of(function.code.begin(), function.code.end(),
                                 [&](const Instruction &each) { return parts(strides, each); }))
      continue;
    return std::all_of(function.code.begin(), function.code.end(),
                       [&](const Instruction &each) { return isFree(each, strides); });
  }
  return false;
}

} // namespace k2c::ptx
