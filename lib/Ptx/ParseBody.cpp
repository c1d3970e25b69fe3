//===- ParseBody.cpp - Statements of a function ---------------------------===//
//
// Names belong to the block that declares them, so that a register or a label of inline assembly hides one outside. A
// label may be used before it stands; uses wait until their block ends, then go to the block around it.
//
//===----------------------------------------------------------------------===//
#include "ParseBody.h"
#include "Inline.h"
#include "base/Utf8.h"

#include <map>

namespace k2c::ptx {

namespace {

constexpr size_t maxDepth = 64;

/// What a name means.
struct Meaning {
  Operand::Kind kind;
  uint32_t index;
};

/// Operand `path` of instruction `code` is `name`, which is not known yet.
struct Use {
  size_t code;
  std::vector<uint32_t> path;
  std::string name;
};

struct Block {
  std::map<std::string, Meaning, std::less<>> names;
  std::vector<Use> uses;
};

class BodyParser {
public:
  BodyParser(Cursor &cursor, const Module &module, Function &function)
      : cursor(cursor), module(module), function(function) {
    Block &outer = blocks.emplace_back();
    for (const Variable &variable : module.variables)
      outer.names[variable.name] = {Operand::Kind::Variable, static_cast<uint32_t>(numbered++)};
    for (const Variable &parameter : function.parameters)
      outer.names[parameter.name] = {Operand::Kind::Variable, static_cast<uint32_t>(numbered++)};
    for (const Variable &result : function.results)
      declare(result);
  }

  void run() {
    blocks.emplace_back();
    while (!cursor.atEnd() && blocks.size() > 1)
      statement();
    if (blocks.size() > 1 && !cursor.error())
      return cursor.fail("'" + function.name + "' does not end", "close its braces", function.line);
    for (const Use &use : blocks[0].uses)
      unknown(use);
  }

private:
  void statement();
  void directive();
  void registers();
  void instruction();
  void closeBlock();
  Operand operand(std::vector<uint32_t> path);
  Operand number(bool isNegative);
  Operand named(std::vector<uint32_t> path);
  std::vector<Operand> list(char end, const std::vector<uint32_t> &path, size_t first = 0);
  void declare(const Variable &variable);
  const Meaning *find(std::string_view name) const;

  void unknown(const Use &use) {
    cursor.fail("'" + shortened(use.name) + "' is no register, variable or label of '" + shortened(function.name) + "'",
                "declare it before its use", function.code[use.code].line);
  }

  Cursor &cursor;
  const Module &module;
  Function &function;
  std::vector<Block> blocks;
  size_t numbered = 0; ///< variables
};

void BodyParser::declare(const Variable &variable) {
  blocks.back().names[variable.name] = {Operand::Kind::Variable, static_cast<uint32_t>(numbered++)};
  function.variables.push_back(variable);
}

const Meaning *BodyParser::find(std::string_view name) const {
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block)
    if (auto found = block->names.find(name); found != block->names.end())
      return &found->second;
  return nullptr;
}

void BodyParser::closeBlock() {
  Block closed = std::move(blocks.back());
  blocks.pop_back();
  for (Use &use : closed.uses) {
    const auto found = closed.names.find(use.name);
    if (found == closed.names.end()) {
      blocks.back().uses.push_back(std::move(use));
      continue;
    }
    Operand *place = &function.code[use.code].operands[use.path[0]];
    for (size_t i = 1; i < use.path.size(); ++i)
      place = &place->parts[use.path[i]];
    place->kind = found->second.kind;
    place->index = found->second.index;
  }
}

void BodyParser::statement() {
  const Token &token = cursor.peek();
  if (cursor.accept('{')) {
    if (blocks.size() >= maxDepth)
      return cursor.fail("blocks are nested " + std::to_string(maxDepth) + " deep", "nest them less");
    blocks.emplace_back();
  } else if (cursor.accept('}')) {
    function.lastLine = token.line;
    closeBlock();
  } else if (cursor.accept(';')) {
  } else if (token.kind == Token::Kind::Dotted) {
    directive();
  } else if (token.kind == Token::Kind::Name && cursor.peek(1).is(':')) {
    Meaning label{Operand::Kind::Label, static_cast<uint32_t>(function.code.size())};
    if (!blocks.back().names.emplace(std::string(token.text), label).second)
      return cursor.fail(quoted(token) + " is declared twice in one block", "give it another name");
    cursor.take();
    cursor.take();
  } else {
    instruction();
  }
}

void BodyParser::directive() {
  const Token token = cursor.take();
  static constexpr std::pair<std::string_view, Space> spaces[] = {{"local", Space::Local},
                                                                  {"shared", Space::Shared},
                                                                  {"global", Space::Global},
                                                                  {"const", Space::Const},
                                                                  {"param", Space::Param}};
  for (const auto &[word, space] : spaces)
    if (token.text == word) {
      declare(parseVariable(cursor, space));
      return cursor.expect(';', "a declaration");
    }
  if (token.text == "reg")
    return registers();
  if (token.text == "loc") { // ends with its line
    while (!cursor.atEnd() && cursor.peek().line == token.line)
      cursor.take();
    return;
  }
  if (token.text == "branchtargets") { // is kept as an instruction that does nothing, which brx.idx names
    Instruction made;
    made.line = token.line;
    made.opcode = token.text;
    function.code.push_back(std::move(made));
    std::vector<Operand> targets = list(';', {});
    if (!cursor.error())
      function.code.back().operands = std::move(targets);
    return;
  }
  if (token.text == "pragma") {
    cursor.take();
    return cursor.expect(';', ".pragma");
  }
  cursor.fail(quoted(token) + " in a function is not supported", "leave it out", token.line);
}

/// .reg .b32 %r<12>, %x;
void BodyParser::registers() {
  const std::optional<Type> type = cursor.acceptType();
  if (!type)
    return cursor.fail("registers of type " + quoted(cursor.peek()) + " are not supported");
  do {
    const std::string name = cursor.takeName("a register");
    uint64_t count = 1;
    const bool isRange = cursor.accept('<');
    if (isRange) {
      count = cursor.takeInteger("a range of registers", 0, maxRegisters);
      cursor.expect('>', "a range of registers");
    }
    if (function.registers.size() + count > maxRegisters)
      return cursor.fail("'" + function.name + "' declares more than " + std::to_string(maxRegisters) + " registers",
                         "split it");
    for (uint64_t i = 0; i < count && !cursor.error(); ++i) {
      const std::string one = isRange ? name + std::to_string(i) : name;
      const Meaning meaning{Operand::Kind::Register, static_cast<uint32_t>(function.registers.size())};
      if (!blocks.back().names.emplace(one, meaning).second)
        return cursor.fail("'" + shortened(one) + "' is declared twice in one block", "give it another name");
      function.registers.push_back({one, *type});
    }
  } while (cursor.accept(','));
  cursor.expect(';', ".reg");
}

void BodyParser::instruction() {
  Instruction made;
  made.line = cursor.peek().line;
  if (cursor.accept('@')) {
    made.isGuardNegated = cursor.accept('!');
    const std::string name = cursor.takeName("a guard");
    const Meaning *meaning = find(name);
    if (!cursor.error() &&
        (!meaning || meaning->kind != Operand::Kind::Register || function.registers[meaning->index].type != Type::Pred))
      return cursor.fail("the guard '" + shortened(name) + "' is no predicate register", "declare it before its use");
    made.guard = meaning ? meaning->index : 0;
  }
  made.opcode = cursor.takeName("a statement");
  while (cursor.peek().kind == Token::Kind::Dotted && cursor.peek().isAdjacent)
    made.modifiers.emplace_back(cursor.take().text);
  function.code.push_back(std::move(made));
  std::vector<Operand> operands = list(';', {});
  if (!cursor.error())
    function.code.back().operands = std::move(operands);
}

/// Operands up to `end`, which is taken; the first is operand `first` of what `path` names.
std::vector<Operand> BodyParser::list(char end, const std::vector<uint32_t> &path, size_t first) {
  std::vector<Operand> all;
  if (first == 0 && cursor.accept(end))
    return all;
  do {
    std::vector<uint32_t> place = path;
    place.push_back(static_cast<uint32_t>(first + all.size()));
    all.push_back(operand(std::move(place)));
  } while (cursor.accept(','));
  cursor.expect(end, "'" + shortened(function.code.back().spelling()) + "'");
  return all;
}

Operand BodyParser::operand(std::vector<uint32_t> path) {
  Operand made;
  if (path.size() > 8) {
    cursor.fail("operands are nested 8 deep", "nest them less");
    return made;
  }
  if (cursor.accept('{')) {
    made.kind = Operand::Kind::Vector;
    made.parts = list('}', path);
    return made;
  }
  if (cursor.accept('(')) {
    made.kind = Operand::Kind::Vector;
    made.parts = list(')', path);
    return made;
  }
  if (cursor.accept('[')) {
    made.kind = Operand::Kind::Address;
    std::vector<uint32_t> base = path;
    base.push_back(0);
    made.parts.push_back(operand(base));
    if (cursor.accept('+'))
      made.bits = number(cursor.accept('-')).bits;
    else if (cursor.accept('-'))
      made.bits = number(true).bits;
    if (cursor.accept(',')) {
      for (Operand &part : list(']', path, 1))
        made.parts.push_back(std::move(part));
    } else {
      cursor.expect(']', "an address");
    }
    return made;
  }
  if (cursor.accept('-'))
    return number(true);
  made.isNegated = cursor.accept('!');
  if (cursor.peek().kind != Token::Kind::Name)
    return number(false);
  const bool isNegated = made.isNegated;
  std::vector<uint32_t> first = path;
  first.push_back(0);
  const size_t waiting = blocks.back().uses.size();
  made = named(path);
  made.isNegated = isNegated;
  if (!cursor.accept('|'))
    return made;
  Operand pair;
  pair.kind = Operand::Kind::Pair;
  if (blocks.back().uses.size() > waiting) // the name stands within a pair
    blocks.back().uses.back().path = first;
  first.back() = 1;
  pair.parts.push_back(std::move(made));
  pair.parts.push_back(operand(first));
  return pair;
}

Operand BodyParser::number(bool isNegative) {
  Operand made;
  const Token &token = cursor.peek();
  switch (token.kind) {
  case Token::Kind::Integer:
    made.kind = Operand::Kind::Integer;
    made.bits = isNegative ? 0 - token.bits : token.bits;
    break;
  case Token::Kind::Float32:
    made.kind = Operand::Kind::Float32;
    made.bits = isNegative ? token.bits ^ 0x80000000u : token.bits;
    break;
  case Token::Kind::Float64:
    made.kind = Operand::Kind::Float64;
    made.bits = isNegative ? token.bits ^ (uint64_t(1) << 63) : token.bits;
    break;
  default:
    cursor.fail("an operand is expected where " + quoted(token) + " is");
    return made;
  }
  cursor.take();
  return made;
}

Operand BodyParser::named(std::vector<uint32_t> path) {
  Operand made;
  const std::string name(cursor.take().text);
  if (name == "_")
    return made;
  if (name == "WARP_SZ") {
    made.kind = Operand::Kind::Integer;
    made.bits = 32;
    return made;
  }
  if (const Meaning *meaning = find(name)) {
    made.kind = meaning->kind;
    made.index = meaning->index;
    if (meaning->kind == Operand::Kind::Register && cursor.peek().kind == Token::Kind::Dotted &&
        cursor.peek().isAdjacent)
      cursor.fail("an element of '" + shortened(name) + "' is not supported", "use scalar registers");
    return made;
  }
  if (name[0] == '%') {
    made.kind = Operand::Kind::Special;
    made.name = name.substr(1);
    if (cursor.peek().kind == Token::Kind::Dotted && cursor.peek().isAdjacent)
      made.name += "." + std::string(cursor.take().text);
    return made;
  }
  if (function.code.back().opcode == "call" && path.size() == 1) {
    made.kind = Operand::Kind::Function;
    made.name = name;
    return made;
  }
  blocks.back().uses.push_back({function.code.size() - 1, std::move(path), name});
  return made;
}

} // namespace

void parseBody(Cursor &cursor, const Module &module, Function &function) { BodyParser(cursor, module, function).run(); }

} // namespace k2c::ptx
