//===- Strides.cpp - Registers over the lanes of a warp -------------------===//
//
// Over the lanes of a warp a register is
//
//   uniform   all lanes have the same
//   strided   value(lane) = value(0) + stride * lane modulo 2^32, and the stride is no multiple of 2^32
//   unknown   neither is shown
//
// The modulus is that of 32-bit registers. Strides are those of sums, of products with constants, of what lanes read at
// one address, and so on: who reads a register is looked at again when it changes, which is at most twice. That holds
// as long as lanes go the same way. Where a branch is taken by some of them, they may have their values of different
// rounds of a loop: in the whole function a register is unknown then if it is written in two places, loaded from memory
// that may change, or comes from other lanes (shfl, vote, redux, bar.red).
//
//===----------------------------------------------------------------------===//
#include "Strides.h"

namespace k2c::ptx {

namespace {

constexpr uint32_t lanes = 32;

const Value unseen{};
const Value unknown{Value::Kind::Unknown, 0, {}, false};
const Value uniform{Value::Kind::Uniform, 0, {}, false};

/// Of a register that is `isWide`, with more than 32 bits: those above may differ where the others do not.
Value strided(uint32_t stride, bool isWide = false) {
  if (stride == 0)
    return isWide ? unknown : uniform;
  return {Value::Kind::Strided, stride, {}, false};
}

/// Whether it is about integers of 32 bits or more, and keeps the lowest 32.
bool isModular(const Instruction &instruction) {
  bool hasType = false;
  for (const std::string &modifier : instruction.modifiers)
    if (const std::optional<Type> type = typeSpelled(modifier)) {
      hasType = true;
      const TypeKind kind = kindOf(*type);
      if (kind == TypeKind::Float || kind == TypeKind::Packed || bitsOf(*type) < 32)
        return false;
    }
  return hasType && !hasModifier(instruction, "sat") && !hasModifier(instruction, "hi");
}

Value special(std::string_view name) {
  constexpr std::string_view same[] = {"tid.y",   "tid.z",   "ntid.x",   "ntid.y",   "ntid.z",   "ctaid.x",
                                       "ctaid.y", "ctaid.z", "nctaid.x", "nctaid.y", "nctaid.z", "nwarpid"};
  if (name == "tid.x")
    return {Value::Kind::Strided, 1, {}, true};
  if (name == "laneid")
    return strided(1);
  return isIn(same, name) ? uniform : unknown;
}

/// The registers that `operand` reads, vectors and addresses included.
void addRegisters(const Operand &operand, std::vector<uint32_t> &indices) {
  if (operand.kind == Operand::Kind::Register)
    indices.push_back(operand.index);
  for (const Operand &part : operand.parts)
    addRegisters(part, indices);
}

} // namespace

bool hasModifier(const Instruction &instruction, std::string_view wanted) {
  return std::any_of(instruction.modifiers.begin(), instruction.modifiers.end(), [&](const std::string &modifier) {
    return std::string_view(modifier).substr(0, modifier.find(':')) == wanted; // shared::cta
  });
}

bool isArithmetic(std::string_view opcode) {
  constexpr std::string_view known[] = {"abs",      "add", "and", "bfe",   "bfi",  "bfind", "brev", "clz",  "cnot",
                                        "copysign", "cos", "cvt", "cvta",  "div",  "ex2",   "fma",  "lg2",  "lop3",
                                        "mad",      "max", "min", "mov",   "mul",  "neg",   "not",  "or",   "popc",
                                        "prmt",     "rcp", "rem", "rsqrt", "sad",  "selp",  "set",  "setp", "shf",
                                        "shl",      "shr", "sin", "slct",  "sqrt", "sub",   "tanh", "xor"};
  return isIn(known, opcode);
}

Strides::Strides(const Function &function, bool isParted)
    : function(function), isParted(isParted), values(function.registers.size(), unknown), written(values.size()),
      readers(values.size()) {
  for (const Variable &variable : function.variables) {
    hasLocal |= variable.space == Space::Local;
    hasOwnParams |= variable.space == Space::Param;
  }
  for (const Instruction &instruction : function.code)
    add(instruction);
  update();
  for (uint32_t index = 0; index < values.size(); ++index) // its first value is of what was never written
    if (values[index].kind == Value::Kind::Unseen)
      set(index, unknown);
  update();
}

/// What an instruction with many operands computes is not looked into, so that each takes a bounded number of steps.
void Strides::add(const Instruction &instruction) {
  constexpr std::string_view others[] = {"ld", "shfl", "vote", "redux", "bar", "barrier"};
  constexpr size_t maxSources = 16;
  std::vector<uint32_t> indices = results(instruction), sources;
  if (indices.empty())
    return;
  for (size_t i = 1; i < instruction.operands.size(); ++i)
    addRegisters(instruction.operands[i], sources);
  if (instruction.guard != Instruction::noGuard)
    sources.push_back(instruction.guard);
  const bool isKnown = isArithmetic(instruction.opcode) || isIn(others, instruction.opcode);
  const bool isLookedInto = isKnown && sources.size() <= maxSources;
  for (uint32_t index : indices) {
    if (written[index]++ == 0 && isLookedInto)
      values[index] = unseen;
    if (!isLookedInto)
      values[index] = unknown;
  }
  if (!isLookedInto)
    return;
  const auto number = static_cast<uint32_t>(writers.size());
  writers.push_back({&instruction, std::move(indices), true});
  queue.push_back(number);
  for (uint32_t index : sources)
    readers[index].push_back(number);
}

void Strides::update() {
  while (!queue.empty()) {
    Writer &writer = writers[queue.back()];
    queue.pop_back();
    writer.isQueued = false;
    step(writer);
  }
}

void Strides::set(uint32_t index, const Value &value) {
  const bool changes = !(values[index] == value);
  values[index] = value;
  for (size_t i = 0; changes && i < readers[index].size(); ++i)
    if (Writer &reader = writers[readers[index][i]]; !reader.isQueued) {
      reader.isQueued = true;
      queue.push_back(readers[index][i]);
    }
}

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
    return {Value::Kind::Uniform, 0, static_cast<uint32_t>(operand.bits), false};
  case Operand::Kind::Float32:
  case Operand::Kind::Float64:
  case Operand::Kind::Variable:
    return uniform;
  case Operand::Kind::Special:
    return special(operand.name);
  case Operand::Kind::Address: {
    const Value base = of(operand.parts.front());
    return {base.kind, base.stride, {}, false};
  }
  case Operand::Kind::Vector:
    for (const Operand &part : operand.parts)
      if (const Value value = of(part); !value.isUniform())
        return value.kind == Value::Kind::Unseen ? value : unknown;
    return uniform;
  default:
    return unknown;
  }
}

/// Joins what `writer` computes with what its results were.
void Strides::step(const Writer &writer) {
  const Instruction &instruction = *writer.instruction;
  if (instruction.guard != Instruction::noGuard && values[instruction.guard].kind == Value::Kind::Unseen)
    return;
  const bool isTogetherHere = isTogether(instruction);
  const Value of = computed(instruction);
  if (isTogetherHere && of.kind == Value::Kind::Unseen)
    return;
  for (uint32_t index : writer.results) {
    const Value &known = values[index];
    const bool mayMix = !isTogetherHere || (isParted && written[index] > 1);
    Value joined = mayMix ? unknown : of;
    if (known.kind != Value::Kind::Unseen && !(known == joined))
      joined = unknown;
    if (written[index] > 1) {
      joined.constant.reset();
      joined.isThread = false;
    }
    set(index, joined);
  }
}

Value Strides::computed(const Instruction &instruction) const {
  const std::string_view opcode = instruction.opcode;
  if (opcode == "bar" || opcode == "barrier")
    return isParted ? unknown : uniform;
  if (opcode == "ld")
    return loaded(instruction);
  std::vector<Value> sources;
  for (size_t i = 1; i < instruction.operands.size(); ++i) {
    sources.push_back(of(instruction.operands[i]));
    if (sources.back().kind == Value::Kind::Unseen)
      return unseen;
  }
  if (!isArithmetic(opcode))
    return exchanged(instruction, sources);
  if (const Value value = affine(instruction, sources); value.kind != Value::Kind::Unknown)
    return value;
  const bool isSame = std::all_of(sources.begin(), sources.end(), [](const Value &v) { return v.isUniform(); });
  return isSame ? uniform : unknown;
}

/// What the lanes of one mask, its last operand, get of each other.
Value Strides::exchanged(const Instruction &instruction, const std::vector<Value> &sources) const {
  if (isParted || sources.empty() || !sources.back().isUniform())
    return unknown;
  if (instruction.opcode != "shfl")
    return uniform;
  const bool isOfOneLane = hasModifier(instruction, "idx") && sources.size() == 4 && sources[1].isUniform();
  return isOfOneLane && sources[2].constant == lanes - 1 ? uniform : unknown;
}

/// What lanes read at one address; parameters and constants stay as they are, and strong reads may see different
/// writes.
Value Strides::loaded(const Instruction &instruction) const {
  if (instruction.operands.size() < 2)
    return unknown;
  const Value address = of(instruction.operands[1]);
  if (address.kind == Value::Kind::Unseen)
    return address;
  const auto isOf = [&](std::string_view word) { return hasModifier(instruction, word); };
  const bool isStrong = isOf("volatile") || isOf("relaxed") || isOf("acquire") || isOf("mmio");
  const bool isKept = isOf("const") || (isOf("param") && !hasOwnParams);
  const bool isGeneric = !isOf("param") && !isOf("local");
  const bool isOfAll = isKept || isOf("global") || isOf("shared") || (isGeneric && !hasLocal && !hasOwnParams);
  return address.isUniform() && isOfAll && !isStrong && (isKept || !isParted) ? uniform : unknown;
}

/// Of integers modulo 2^32; unknown: by this it is not.
Value Strides::affine(const Instruction &instruction, const std::vector<Value> &sources) const {
  const std::string_view opcode = instruction.opcode;
  const Operand &result = instruction.operands.front();
  if (sources.empty() || result.kind != Operand::Kind::Register || !isModular(instruction))
    return unknown;
  const bool isWide = bitsOf(function.registers[result.index].type) > 32;
  const Value &a = sources.front();
  if (opcode == "mov" || opcode == "cvt")
    return a;
  if (opcode == "cvta") // adds where a window begins
    return {a.kind, a.stride, {}, false};
  if (sources.size() < 2 || a.kind == Value::Kind::Unknown || sources[1].kind == Value::Kind::Unknown)
    return unknown;
  const Value &b = sources[1];
  if (opcode == "add")
    return strided(a.stride + b.stride, isWide);
  if (opcode == "sub")
    return strided(a.stride - b.stride, isWide);
  if (opcode == "shl" && b.constant)
    return strided(*b.constant < 32 ? a.stride << *b.constant : 0, isWide);
  if (opcode == "shr" && a.isThread && b.constant && *b.constant >= 5)
    return uniform;
  if (opcode == "and" && a.isThread && b.constant == lanes - 1)
    return strided(1);
  if (opcode == "selp" && sources.size() == 3 && sources[2].isUniform() && a == b)
    return {a.kind, a.stride, {}, false};
  if ((opcode == "mul" || opcode == "mad") && (a.constant || b.constant)) {
    const uint32_t product = a.constant ? b.stride * *a.constant : a.stride * *b.constant;
    if (opcode == "mul")
      return strided(product, isWide);
    if (sources.size() == 3 && sources[2].kind != Value::Kind::Unknown)
      return strided(product + sources[2].stride, isWide);
  }
  return unknown;
}

} // namespace k2c::ptx
