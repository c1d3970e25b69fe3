//===- ParseModule.cpp - Directives, variables and functions --------------===//
//
// What stands outside of functions, and around their bodies (PTX ISA, Variables, Directives). What only debuggers read,
// and what only bounds the registers that ptxas gives, is read over; every other directive that is not known is an
// error.
//
//===----------------------------------------------------------------------===//
#include "ParseBody.h"
#include "base/Utf8.h"

#include <algorithm>
#include <cstring>

namespace k2c::ptx {

namespace {

constexpr uint64_t maxVariableBytes = uint64_t(1) << 40;
constexpr uint64_t maxInitialBytes = uint64_t(1) << 30;
constexpr uint64_t maxThreads = uint64_t(1) << 31;

bool isPowerOfTwo(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

void parseAlignment(Cursor &cursor, uint64_t &alignment) {
  if (!cursor.acceptDotted("align"))
    return;
  const uint64_t said = cursor.takeInteger(".align", 1, 1 << 20);
  if (!isPowerOfTwo(said))
    return cursor.fail(".align " + std::to_string(said) + " is no power of two", "give one");
  alignment = said;
}

/// The type behind .space and .align.
void parseType(Cursor &cursor, Variable &variable) {
  parseAlignment(cursor, variable.alignment);
  if (cursor.acceptDotted("attribute"))
    return cursor.fail("'.attribute' of a variable is not supported", "leave it out");
  const std::optional<Type> type = cursor.acceptType();
  if (!type || *type == Type::Pred)
    return cursor.fail("variables of type " + quoted(cursor.peek()) + " are not supported");
  variable.type = *type;
  variable.alignment = std::max<uint64_t>(variable.alignment, static_cast<uint64_t>(bytesOf(*type)));
}

/// name, name[4], name[2][3], name[]
void parseNameAndExtent(Cursor &cursor, Variable &variable) {
  variable.line = cursor.peek().line;
  variable.name = cursor.takeName("a variable");
  while (cursor.accept('[')) {
    const bool isOpen = variable.elements == 1 && cursor.peek().is(']');
    const uint64_t count = isOpen ? 0 : cursor.takeInteger("an array", 0, maxVariableBytes);
    cursor.expect(']', "an array");
    if (__builtin_mul_overflow(variable.elements, count, &variable.elements) ||
        variable.elements > maxVariableBytes / static_cast<uint64_t>(bytesOf(variable.type)))
      return cursor.fail("'" + shortened(variable.name) + "' has more than " + std::to_string(maxVariableBytes) +
                         " bytes");
  }
}

/// = 5, = {1, 2, 3}; in nested braces as in flat ones.
void parseInitial(Cursor &cursor, Variable &variable) {
  const size_t width = static_cast<size_t>(bytesOf(variable.type));
  int depth = 0;
  do {
    while (cursor.accept('{'))
      ++depth;
    const bool isNegative = cursor.accept('-');
    const Token &token = cursor.peek();
    if (token.kind != Token::Kind::Integer && token.kind != Token::Kind::Float32 && token.kind != Token::Kind::Float64)
      return cursor.fail("the initial value " + quoted(token) + " of '" + shortened(variable.name) +
                             "' is not supported",
                         "give numbers");
    const uint64_t sign = uint64_t(1) << (bitsOf(variable.type) - 1);
    const uint64_t bits = !isNegative                          ? token.bits
                          : token.kind == Token::Kind::Integer ? 0 - token.bits
                                                               : token.bits ^ sign;
    cursor.take();
    const size_t at = variable.initial.size();
    if (at + width > std::min(variable.bytes(), maxInitialBytes))
      return cursor.fail("'" + shortened(variable.name) + "' has " + std::to_string(variable.elements) +
                             " elements and more initial values",
                         "give as many at most");
    variable.initial.resize(at + width);
    std::memcpy(variable.initial.data() + at, &bits, width);
    while (depth > 0 && cursor.accept('}'))
      --depth;
  } while (cursor.accept(','));
  if (depth != 0)
    cursor.expect('}', "an initial value");
}

/// .param .align 8 .u64 .ptr .global .align 16 name
Variable parseParameter(Cursor &cursor) {
  Variable made;
  made.space = Space::Param;
  if (!cursor.acceptDotted("param"))
    cursor.fail("a parameter needs .param where " + quoted(cursor.peek()) + " is");
  parseType(cursor, made);
  if (cursor.acceptDotted("ptr")) {
    for (const char *space : {"global", "const", "shared", "local"})
      cursor.acceptDotted(space);
    uint64_t pointee = 1;
    parseAlignment(cursor, pointee);
  }
  parseNameAndExtent(cursor, made);
  return made;
}

std::vector<Variable> parseParameters(Cursor &cursor) {
  std::vector<Variable> all;
  if (!cursor.accept('(') || cursor.accept(')'))
    return all;
  do
    all.push_back(parseParameter(cursor));
  while (cursor.accept(','));
  cursor.expect(')', "a list of parameters");
  return all;
}

void parseExtent(Cursor &cursor, const std::string &of, Extent &extent) {
  extent = {1, 1, 1};
  size_t axis = 0;
  do
    extent[axis++] = static_cast<uint32_t>(cursor.takeInteger(of, 1, maxThreads));
  while (axis < extent.size() && cursor.accept(','));
}

/// What stands between the parameters and the body.
void parsePerformance(Cursor &cursor, Function &function) {
  while (cursor.peek().kind == Token::Kind::Dotted) {
    if (cursor.acceptDotted("reqntid"))
      parseExtent(cursor, ".reqntid", function.requiredThreads);
    else if (cursor.acceptDotted("maxntid"))
      parseExtent(cursor, ".maxntid", function.maximalThreads);
    else if (cursor.acceptDotted("reqnctapercluster"))
      parseExtent(cursor, ".reqnctapercluster", function.requiredCluster);
    else if (cursor.acceptDotted("explicitcluster"))
      function.isExplicitCluster = true;
    else if (cursor.acceptDotted("minnctapersm"))
      function.minimalCtas = static_cast<uint32_t>(cursor.takeInteger(".minnctapersm", 1, maxThreads));
    else if (cursor.acceptDotted("maxnreg"))
      function.maximalRegisters = static_cast<uint32_t>(cursor.takeInteger(".maxnreg", 1, maxThreads));
    else if (cursor.acceptDotted("pragma"))
      cursor.take(), cursor.expect(';', ".pragma");
    else if (!cursor.acceptDotted("noreturn"))
      return cursor.fail(quoted(cursor.peek()) + " of a function is not supported", "leave it out");
  }
}

class ModuleParser {
public:
  ModuleParser(Cursor &cursor, Module &module) : cursor(cursor), module(module) {}

  void run() {
    header();
    while (!cursor.atEnd())
      item();
    renumber();
  }

private:
  void header();
  void item();
  void function(bool isEntry);
  void variable(Space space, bool isExternal);
  void renumber();

  Cursor &cursor;
  Module &module;
  std::vector<size_t> known; ///< variables of the module when each of its functions was read
};

/// .version 8.6  .target sm_90a, debug  .address_size 64
void ModuleParser::header() {
  if (!cursor.acceptDotted("version"))
    return cursor.fail("a module begins with .version, not with " + quoted(cursor.peek()),
                       "give the text of a PTX module");
  const Token version = cursor.take();
  const size_t dot = version.text.find('.');
  if (version.kind != Token::Kind::Float32 || dot == std::string_view::npos)
    return cursor.fail(".version " + quoted(version) + " is no number", "write it as 8.6", version.line);
  module.major = std::atoi(std::string(version.text.substr(0, dot)).c_str());
  module.minor = std::atoi(std::string(version.text.substr(dot + 1)).c_str());
  if (!cursor.acceptDotted("target"))
    return cursor.fail(".target is missing behind .version");
  module.target = cursor.takeName(".target");
  while (cursor.accept(','))
    if (const std::string mode = cursor.takeName(".target"); mode != "debug")
      return cursor.fail(".target " + shortened(mode) + " is not supported");
  if (cursor.acceptDotted("address_size"))
    cursor.takeInteger(".address_size", 64, 64);
}

void ModuleParser::item() {
  const Token token = cursor.take();
  if (token.is(';'))
    return;
  if (token.kind != Token::Kind::Dotted)
    return cursor.fail("a directive is expected where " + quoted(token) + " is", "", token.line);
  if (token.text == "file") { // ends with its line
    while (!cursor.atEnd() && cursor.peek().line == token.line)
      cursor.take();
    return;
  }
  if (token.text == "section") { // of a debugger: names and numbers
    while (!cursor.atEnd() && !cursor.accept('}'))
      cursor.take();
    return;
  }
  Token what = token;
  bool isExternal = false;
  while (what.isDotted("extern") || what.isDotted("visible") || what.isDotted("weak")) {
    isExternal |= what.isDotted("extern");
    what = cursor.take();
  }
  if (what.isDotted("entry") || what.isDotted("func"))
    return function(what.text == "entry");
  static constexpr std::pair<std::string_view, Space> spaces[] = {
      {"global", Space::Global}, {"const", Space::Const}, {"shared", Space::Shared}};
  for (const auto &[word, space] : spaces)
    if (what.isDotted(word))
      return variable(space, isExternal);
  cursor.fail(quoted(what) + " is not supported in a module", "leave it out", what.line);
}

void ModuleParser::variable(Space space, bool isExternal) {
  Variable made = parseVariable(cursor, space);
  made.isExternal = isExternal;
  cursor.expect(';', "a declaration");
  for (const Variable &other : module.variables)
    if (other.name == made.name)
      return cursor.fail("'" + shortened(made.name) + "' is declared twice", "give it another name", made.line);
  module.variables.push_back(std::move(made));
}

void ModuleParser::function(bool isEntry) {
  Function made;
  made.isEntry = isEntry;
  if (!isEntry)
    made.results = parseParameters(cursor);
  made.line = cursor.peek().line;
  made.name = cursor.takeName("a function");
  made.parameters = parseParameters(cursor);
  parsePerformance(cursor, made);
  if (!cursor.accept(';')) {
    cursor.expect('{', "a function");
    made.hasBody = true;
    if (module.find(made.name))
      return cursor.fail("'" + shortened(made.name) + "' is defined twice", "give it another name", made.line);
    parseBody(cursor, module, made);
  }
  module.functions.push_back(std::move(made));
  known.push_back(module.variables.size());
}

void moveVariables(Operand &operand, size_t from, size_t by) {
  if (operand.kind == Operand::Kind::Variable && operand.index >= from)
    operand.index += static_cast<uint32_t>(by);
  for (Operand &part : operand.parts)
    moveVariables(part, from, by);
}

/// A function's own variables come behind those of the module, of which more may have been declared since.
void ModuleParser::renumber() {
  for (size_t i = 0; i < known.size(); ++i)
    if (const size_t later = module.variables.size() - known[i]; later != 0)
      for (Instruction &instruction : module.functions[i].code)
        for (Operand &operand : instruction.operands)
          moveVariables(operand, known[i], later);
}

} // namespace

Variable parseVariable(Cursor &cursor, Space space) {
  Variable made;
  made.space = space;
  parseType(cursor, made);
  parseNameAndExtent(cursor, made);
  if (cursor.accept('='))
    parseInitial(cursor, made);
  return made;
}

Expected<Module> parse(std::string_view text, std::string name) {
  Expected<std::vector<Token>> tokens = lex(text, name);
  if (!tokens)
    return tokens.takeError();
  Module module;
  module.name = name;
  Cursor cursor(std::move(*tokens), std::move(name));
  ModuleParser(cursor, module).run();
  if (cursor.error())
    return *cursor.error();
  return module;
}

} // namespace k2c::ptx
