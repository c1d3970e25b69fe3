//===- Decoder.cpp - From an instruction to an operation ------------------===//
//
// Registers and variables get their places first; then each instruction is given to the decoder of its opcode, which
// names what it reads and writes as it takes its operands. From that the last step knows which registers may be read
// before they are written.
//
//===----------------------------------------------------------------------===//
#include "Decoder.h"
#include "Counters.h"
#include "Definitions.h"
#include "Inline.h"
#include "Special.h"
#include "base/Utf8.h"
#include "k2c/Ptx/Machine.h"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace k2c::ptx {

namespace {

constexpr uint32_t lanesOfWarp = 32;

const Opcodes &opcodes() {
  static const Opcodes all = [] {
    Opcodes made;
    for (const auto add :
         {addArithmetic, addBits, addComparisons, addFloats, addMoves, addConversions, addMemory, addControl,
          addWarpWide, addAtomics, addMBarriers, addBulkCopies, addMatrixMoves, addMma, addRegisters, addWgmma})
      add(made);
    return made;
  }();
  return all;
}

uint64_t alignedTo(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

} // namespace

void Decoder::fail(std::string message, std::string remedy) {
  if (!failure)
    failure = Error{program.moduleName + ":" + std::to_string(current ? current->line : program.function.line),
                    "'" + shortened(program.function.name) + "': " + std::move(message), std::move(remedy)};
}

std::string_view Decoder::nextModifier() const {
  return taken < current->modifiers.size() ? std::string_view(current->modifiers[taken]) : std::string_view();
}

bool Decoder::hasModifier(std::string_view word) const {
  return std::find(current->modifiers.begin() + static_cast<ptrdiff_t>(taken), current->modifiers.end(), word) !=
         current->modifiers.end();
}

bool Decoder::accept(std::string_view word) {
  if (taken == current->modifiers.size() || nextModifier() != word)
    return false;
  ++taken;
  return true;
}

int Decoder::acceptOneOf(std::initializer_list<std::string_view> words) {
  int index = 0;
  for (const std::string_view word : words) {
    if (accept(word))
      return index;
    ++index;
  }
  return -1;
}

std::optional<std::string_view> Decoder::acceptPrefix(std::string_view prefix) {
  const std::string_view next = nextModifier();
  if (next.substr(0, prefix.size()) != prefix)
    return std::nullopt;
  ++taken;
  return next.substr(prefix.size());
}

std::optional<Type> Decoder::acceptType() {
  const std::optional<Type> type = typeSpelled(nextModifier());
  if (type)
    ++taken;
  return type;
}

Type Decoder::takeType() {
  if (const std::optional<Type> type = acceptType())
    return *type;
  fail("'" + shortened(current->spelling()) + "' is not supported: " +
       (nextModifier().empty() ? "its type is missing"
                               : "'." + shortened(nextModifier()) + "' is no type that is known"));
  return Type::B32;
}

void Decoder::expectOperands(size_t least, size_t most) {
  const size_t count = operandCount();
  if (count < least || count > most)
    fail("'" + shortened(current->spelling()) + "' has " + std::to_string(count) + " operands and takes " +
         (least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most)));
}

const Operand &Decoder::operandAt(size_t index) {
  static const Operand none;
  assert((index < operandCount() || hasFailed()) && "expectOperands comes first");
  return index < operandCount() ? current->operands[index] : none;
}

Slot Decoder::constantSlotOf(uint64_t bits, bool isWide) {
  if (!isWide)
    bits &= 0xffffffffu;
  const auto [found, isNew] = constants.emplace(std::pair(bits, isWide), 0);
  if (isNew) {
    found->second = constantSlot | static_cast<Slot>(program.constants.size() * sizeof(uint64_t));
    const size_t words = isWide ? lanesOfWarp : lanesOfWarp / 2;
    program.constants.insert(program.constants.end(), words, isWide ? bits : bits | bits << 32);
  }
  return found->second;
}

uint32_t Decoder::addList(const std::vector<Slot> &slots) {
  const auto first = static_cast<uint32_t>(program.lists.size());
  program.lists.insert(program.lists.end(), slots.begin(), slots.end());
  return first;
}

uint64_t Decoder::constant(const Operand &operand, const std::string &what) {
  if (operand.kind == Operand::Kind::Integer)
    return operand.bits;
  fail(what + " of '" + shortened(current->spelling()) + "' has to be a number");
  return 0;
}

Slot Decoder::variableAddress(uint32_t id) {
  if (program.variableAddress[id] == 0)
    fail("variable '" + shortened(module.variable(program.function, id).name) + "' has no address",
         "give one to whoever decodes the kernel");
  return constantSlotOf(program.variableAddress[id], true);
}

Slot Decoder::sourceOf(const Operand &operand, Type type, bool mayBeWider) {
  const int bits = bitsOf(type);
  switch (operand.kind) {
  case Operand::Kind::Register: {
    const Register &named = program.function.registers[operand.index];
    const int has = bitsOf(named.type);
    if ((type == Type::Pred) != (named.type == Type::Pred) || (mayBeWider ? has < bits : has != bits)) {
      fail("register '" + shortened(named.name) + "' has " + std::to_string(has) + " bits, and '" +
           shortened(current->spelling()) + "' reads " + std::to_string(bits));
      return 0;
    }
    reads(program.slotOfRegister[operand.index]);
    return program.slotOfRegister[operand.index];
  }
  case Operand::Kind::Integer:
    if (type == Type::Pred) // true and false
      return constantSlotOf(operand.bits ? ~uint64_t(0) : 0, false);
    if (type == Type::F32 || type == Type::F64)
      break;
    return constantSlotOf(bits < 64 ? operand.bits & ((uint64_t(1) << bits) - 1) : operand.bits, bits == 64);
  case Operand::Kind::Float32:
  case Operand::Kind::Float64:
    if (bits != (operand.kind == Operand::Kind::Float32 ? 32 : 64))
      break;
    return constantSlotOf(operand.bits, bits == 64);
  case Operand::Kind::Special: {
    const Slot slot = specialSlot(operand.name);
    if (bits != 32 && slot != noSlot)
      fail("'%" + shortened(operand.name) + "' has 32 bits, and '" + shortened(current->spelling()) + "' reads " +
           std::to_string(bits));
    return slot;
  }
  case Operand::Kind::Variable:
    if (bits == 64)
      return variableAddress(operand.index);
    if (bits == 32 && module.variable(program.function, operand.index).space == Space::Shared)
      return constantSlotOf(program.variableAddress[operand.index], false);
    break;
  default:
    break;
  }
  fail("an operand of '" + shortened(current->spelling()) + "' cannot be read as ." + std::string(spellingOf(type)));
  return 0;
}

Slot Decoder::destinationOf(const Operand &operand, Type type, bool mayBeWider) {
  if (operand.kind != Operand::Kind::Register) {
    fail("what '" + shortened(current->spelling()) + "' writes has to be a register");
    return 0;
  }
  const Register &named = program.function.registers[operand.index];
  const int has = bitsOf(named.type), bits = bitsOf(type);
  if ((type == Type::Pred) != (named.type == Type::Pred) || (mayBeWider ? has < bits : has != bits))
    fail("register '" + shortened(named.name) + "' has " + std::to_string(has) + " bits, and '" +
         shortened(current->spelling()) + "' writes " + std::to_string(bits));
  writes(program.slotOfRegister[operand.index]);
  return program.slotOfRegister[operand.index];
}

Slot Decoder::destinationOrSink(const Operand &operand, Type type, bool mayBeWider) {
  return operand.kind == Operand::Kind::Sink ? noSlot : destinationOf(operand, type, mayBeWider);
}

void Decoder::address(const Operand &operand, size_t index, Window window) {
  Operation &made = operation();
  if (window == Window::Param && operand.kind == Operand::Kind::Address &&
      operand.parts[0].kind == Operand::Kind::Variable &&
      module.variable(program.function, operand.parts[0].index).space == Space::Local)
    window = Window::Local; // a parameter of a call (Inline.cpp)
  made.window = window;
  if (operand.kind != Operand::Kind::Address || operand.parts.size() != 1) {
    fail("'" + shortened(current->spelling()) + "' needs an address in brackets");
    return;
  }
  made.immediate = operand.bits;
  const Operand &base = operand.parts[0];
  const bool isNarrow = base.kind == Operand::Kind::Register && bitsOf(typeOfRegister(base)) == 32;
  if (isNarrow && window != Window::Shared && window != Window::Local)
    fail("an address of 32 bits is one of .shared or .local, and '" + shortened(current->spelling()) + "' takes 64");
  made.sources[index] = sourceOf(base, isNarrow ? Type::B32 : Type::B64);
  made.addressBytes = isNarrow ? 4 : 8;
}

Slot Decoder::matrixRegister(const Operand &operand, bool isWritten) {
  const Slot slot = isWritten ? destinationOf(operand, Type::B32) : sourceOf(operand, Type::B32);
  if (operand.kind != Operand::Kind::Register)
    fail("'" + shortened(current->spelling()) + "' needs registers");
  program.matrixSlots.emplace(slot, static_cast<uint32_t>(program.matrixSlots.size()));
  return slot;
}

/// What instructions other than products read and write of the registers of products.
void Decoder::findTouched() {
  for (size_t i = 0; i < program.code.size(); ++i) {
    Operation &made = program.code[i];
    if (program.function.code.size() > i && program.function.code[i].opcode == "wgmma")
      continue;
    const auto list = [&](const std::vector<Slot> &slots, uint32_t &first, uint32_t &count) {
      first = static_cast<uint32_t>(program.lists.size());
      for (const Slot slot : slots)
        if (const auto found = program.matrixSlots.find(slot); found != program.matrixSlots.end())
          program.lists.push_back(found->second);
      count = static_cast<uint32_t>(program.lists.size()) - first;
    };
    list(allRead[i], made.touched, made.readCount);
    uint32_t written = 0;
    list(allWritten[i], written, made.writtenCount); // behind those that are read
  }
}

uint32_t Decoder::addAddress(const Operand &operand) {
  const auto number = static_cast<uint32_t>(program.addresses.size());
  if (operand.kind != Operand::Kind::Address) {
    fail("'" + shortened(current->spelling()) + "' needs an address in brackets");
    return number;
  }
  const Operand &base = operand.parts[0];
  const bool isNarrow = base.kind == Operand::Kind::Register && bitsOf(typeOfRegister(base)) == 32;
  program.addresses.push_back(
      {sourceOf(base, isNarrow ? Type::B32 : Type::B64), operand.bits, static_cast<uint8_t>(isNarrow ? 4 : 8)});
  return number;
}

Slot Decoder::specialSlot(const std::string &name) {
  const std::optional<Special> special = specialNamed(name);
  if (!special) {
    fail("special register '%" + shortened(name) + "' is not supported");
    return noSlot;
  }
  const auto [found, isNew] = program.specials.emplace(*special, program.registerBytes);
  if (isNew)
    program.registerBytes += lanesOfWarp * 4;
  return found->second;
}

/// Gives every register its slot, and every variable its address.
void Decoder::layOut() {
  program.slotOfRegister.resize(program.function.registers.size());
  for (const bool isPredicate : {false, true}) // these are small
    for (size_t i = 0; i < program.slotOfRegister.size(); ++i) {
      const int bits = bitsOf(program.function.registers[i].type);
      if ((bits == 1) != isPredicate)
        continue;
      program.slotOfRegister[i] = program.registerBytes;
      program.registerBytes += isPredicate ? 4 : lanesOfWarp * (bits == 64 ? 8 : 4);
    }
  program.registerBytes = static_cast<uint32_t>(alignedTo(program.registerBytes, 64));
  const auto lay = [&](const Variable &variable) {
    uint64_t address = 0;
    switch (variable.space) {
    case Space::Param:
      program.paramBytes = alignedTo(program.paramBytes, variable.alignment);
      program.paramOffsets.push_back(program.paramBytes);
      address = paramWindow + program.paramBytes;
      program.paramBytes += variable.bytes();
      break;
    case Space::Shared:
      program.sharedBytes = alignedTo(program.sharedBytes, variable.alignment);
      address = firstSharedAddress + program.sharedBytes;
      program.sharedBytes += variable.bytes();
      break;
    case Space::Local:
      program.localBytes = alignedTo(program.localBytes, variable.alignment);
      address = localWindow + program.localBytes;
      program.localBytes += variable.bytes();
      break;
    case Space::Global:
    case Space::Const:
      if (const auto found = addresses.find(variable.name); found != addresses.end())
        address = found->second;
      break;
    }
    program.variableAddress.push_back(address);
  };
  for (const Variable &variable : module.variables)
    lay(variable);
  for (const Variable &parameter : program.function.parameters)
    lay(parameter);
  for (const Variable &variable : program.function.variables)
    lay(variable);
}

void Decoder::decode(const Instruction &instruction) {
  current = &instruction;
  taken = 0;
  read.clear();
  written.clear();
  Operation &made = program.code.emplace_back();
  made.line = instruction.line;
  made.instruction = static_cast<uint32_t>(program.code.size() - 1);
  if (instruction.guard != Instruction::noGuard) {
    made.guard = program.slotOfRegister[instruction.guard];
    made.isGuardNegated = instruction.isGuardNegated;
    reads(made.guard);
  }
  const auto found = opcodes().find(instruction.opcode);
  if (found == opcodes().end())
    return fail("instruction '" + shortened(instruction.spelling()) + "' is not supported");
  found->second(*this);
  if (taken < instruction.modifiers.size())
    fail("'" + shortened(instruction.spelling()) + "' is not supported: '." + shortened(nextModifier()) +
         "' is not known there");
  made.kind = static_cast<uint8_t>(classOf(instruction, made));
  allRead.push_back(read);
  allWritten.push_back(written);
}

/// What a device gives a thread. (CUDA Programming Guide, Technical Specifications)
constexpr uint64_t maxLocalBytes = 512 << 10, maxParameterBytes = 32764;

Status Decoder::run() {
  layOut();
  for (const auto &[what, bytes, most] : {std::tuple("local memory", program.localBytes, maxLocalBytes),
                                          std::tuple("parameters", program.paramBytes, maxParameterBytes)})
    if (bytes > most)
      fail(std::to_string(bytes) + " bytes of " + what + ", and there are " + std::to_string(most));
  if (failure)
    return *failure;
  program.code.reserve(program.function.code.size() + 1);
  for (const Instruction &instruction : program.function.code) {
    decode(instruction);
    if (failure)
      return *failure;
  }
  Instruction end; // of who runs past the last instruction
  end.opcode = "exit";
  end.line = program.function.lastLine;
  decode(end);
  findUndefined(program, allRead, allWritten);
  findTouched();
  return Status::success();
}

Kernel::Kernel(std::unique_ptr<Program> decoded) : decoded(std::move(decoded)) {}
Kernel::Kernel(Kernel &&) noexcept = default;
Kernel &Kernel::operator=(Kernel &&) noexcept = default;
Kernel::~Kernel() = default;

Expected<Kernel> Kernel::decode(const Module &module, std::string_view name,
                                const std::map<std::string, uint64_t> &addresses) {
  const Function *found = module.find(name);
  if (!found || !found->isEntry)
    return Error{module.name, "there is no entry '" + shortened(name) + "'", "name an entry of the module"};
  auto program = std::make_unique<Program>();
  program->moduleName = module.name;
  Expected<Function> flat = withoutCalls(module, *found);
  if (!flat)
    return flat.takeError();
  program->function = std::move(*flat);
  if (Status status = Decoder(module, *program, addresses).run(); !status)
    return status.takeError();
  return Kernel(std::move(program));
}

} // namespace k2c::ptx
