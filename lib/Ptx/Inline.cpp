//===- Inline.cpp - Calls become what they call ---------------------------===//
//
// PTX ISA, Control Flow Instructions: call. An instruction of a body is copied with its registers, variables and labels
// numbered anew; a call is followed into its function, whose ret becomes a branch behind it. The parameters of a call
// are .param variables of who calls, and become variables of local memory: who is called reads and writes them in their
// place. So lanes of a call go on in the order of the text, and meet behind it as they do behind any branch.
//
//===----------------------------------------------------------------------===//
#include "Inline.h"
#include "base/Utf8.h"

#include <tuple>

namespace k2c::ptx {

namespace {

constexpr size_t maxInstructions = size_t(1) << 20;
constexpr size_t maxDepth = 32, maxCalls = 1 << 16;

class Inliner {
public:
  Inliner(const Module &module, Function &made) : module(module), made(made) {}

  /// Appends the code of `from`; `variables`: what its variables are in `made`, those of the module left out.
  void append(const Function &from, const std::vector<VariableId> &variables, size_t depth);
  std::optional<Error> failure;

private:
  void call(const Instruction &instruction, const Instruction &copied, size_t depth);
  void renumber(Operand &operand, uint32_t firstRegister, const std::vector<VariableId> &variables) const;
  void fail(const Instruction &at, const std::string &what, const std::string &remedy) {
    if (!failure)
      failure = Error{module.name + ":" + std::to_string(at.line),
                      "'" + shortened(made.name) + "': '" + shortened(at.spelling()) + "' " + what, remedy};
  }

  const Module &module;
  Function &made;
  size_t calls = 0;
};

void Inliner::renumber(Operand &operand, uint32_t firstRegister, const std::vector<VariableId> &variables) const {
  if (operand.kind == Operand::Kind::Register)
    operand.index += firstRegister;
  else if (operand.kind == Operand::Kind::Variable && operand.index >= module.variables.size())
    operand.index = variables[operand.index - module.variables.size()];
  for (Operand &part : operand.parts)
    renumber(part, firstRegister, variables);
}

/// Labels of `operand` are instructions of a body, which stand at `places` now.
void moveLabels(Operand &operand, const std::vector<uint32_t> &places) {
  if (operand.kind == Operand::Kind::Label)
    operand.index = places[operand.index];
  for (Operand &part : operand.parts)
    moveLabels(part, places);
}

Instruction branchTo(uint32_t target, const Instruction &like) {
  Instruction made;
  made.opcode = "bra";
  made.line = like.line;
  made.guard = like.guard;
  made.isGuardNegated = like.isGuardNegated;
  Operand &label = made.operands.emplace_back();
  label.kind = Operand::Kind::Label;
  label.index = target;
  return made;
}

void Inliner::append(const Function &from, const std::vector<VariableId> &variables, size_t depth) {
  const auto firstRegister = static_cast<uint32_t>(made.registers.size());
  made.registers.insert(made.registers.end(), from.registers.begin(), from.registers.end());
  std::vector<uint32_t> places;        // of its instructions, and of its end
  std::vector<size_t> labelled, ended; // copies that have labels; branches to the end
  for (const Instruction &instruction : from.code) {
    places.push_back(static_cast<uint32_t>(made.code.size()));
    if (failure || made.code.size() > maxInstructions)
      return fail(instruction, "makes the kernel longer than " + std::to_string(maxInstructions) + " instructions",
                  "call fewer functions");
    Instruction copied = instruction;
    if (copied.guard != Instruction::noGuard)
      copied.guard += firstRegister;
    for (Operand &operand : copied.operands)
      renumber(operand, firstRegister, variables);
    if (instruction.opcode == "call") {
      call(instruction, copied, depth);
      continue;
    }
    if (instruction.opcode == "ret" && depth > 0) {
      ended.push_back(made.code.size());
      made.code.push_back(branchTo(0, copied));
      continue;
    }
    labelled.push_back(made.code.size());
    made.code.push_back(std::move(copied));
  }
  places.push_back(static_cast<uint32_t>(made.code.size()));
  for (const size_t at : labelled)
    for (Operand &operand : made.code[at].operands)
      moveLabels(operand, places);
  for (const size_t at : ended)
    made.code[at].operands[0].index = places.back();
}

/// call (results), name, (parameters);
void Inliner::call(const Instruction &instruction, const Instruction &copied, size_t depth) {
  const Function *called = nullptr;
  std::vector<VariableId> variables, results, parameters;
  bool isKnown = instruction.modifiers.empty() || instruction.modifiers == std::vector<std::string>{"uni"};
  std::string name = "?";
  for (const Operand &operand : copied.operands) {
    if (operand.kind == Operand::Kind::Function) {
      name = operand.name;
      called = module.find(name);
      results.swap(parameters);
      continue;
    }
    isKnown &= operand.kind == Operand::Kind::Vector;
    for (const Operand &part : operand.parts) {
      isKnown &= part.kind == Operand::Kind::Variable;
      parameters.push_back(part.index);
    }
  }
  if (!called)
    return fail(instruction, "calls '" + shortened(name) + "', which has no body here",
                "leave it out; registers cannot be called");
  if (depth >= maxDepth)
    return fail(instruction, "calls functions " + std::to_string(maxDepth) + " deep", "let none call itself");
  if (++calls > maxCalls)
    return fail(instruction,
                "is call " + std::to_string(calls) +
                    " of the kernel, those of what it calls included, and there may be " + std::to_string(maxCalls),
                "call fewer functions");
  if (!isKnown || called->isEntry || results.size() != called->results.size() ||
      parameters.size() != called->parameters.size())
    return fail(instruction, "does not call '" + shortened(name) + "' with a .param variable for each of its own",
                "let them agree");
  for (const auto &[what, count, most] :
       {std::tuple("registers", made.registers.size() + called->registers.size(), maxRegisters),
        std::tuple("variables", made.variables.size() + called->variables.size() - results.size(), maxVariables)})
    if (count > most)
      return fail(instruction,
                  "brings the kernel to " + std::to_string(count) + " " + what + ", and there may be " +
                      std::to_string(most),
                  "call fewer functions");
  const size_t own = module.variables.size() + made.parameters.size();
  variables = parameters;
  variables.insert(variables.end(), results.begin(), results.end());
  for (size_t i = results.size(); i < called->variables.size(); ++i) { // results are the first of them
    variables.push_back(static_cast<VariableId>(own + made.variables.size()));
    made.variables.push_back(called->variables[i]);
  }
  const size_t guarded = made.code.size();
  if (copied.guard != Instruction::noGuard) {
    made.code.push_back(branchTo(0, copied));
    made.code.back().isGuardNegated = !copied.isGuardNegated;
  }
  append(*called, variables, depth + 1);
  if (copied.guard != Instruction::noGuard)
    made.code[guarded].operands[0].index = static_cast<uint32_t>(made.code.size());
}

} // namespace

Expected<Function> withoutCalls(const Module &module, const Function &entry) {
  Function made = entry;
  made.registers.clear();
  made.code.clear();
  std::vector<VariableId> variables;
  for (size_t i = 0; i < entry.parameters.size() + entry.variables.size(); ++i)
    variables.push_back(static_cast<VariableId>(module.variables.size() + i));
  Inliner inliner(module, made);
  inliner.append(entry, variables, 0);
  if (inliner.failure)
    return *inliner.failure;
  for (Variable &variable : made.variables)
    if (variable.space == Space::Param)
      variable.space = Space::Local;
  return made;
}

} // namespace k2c::ptx
