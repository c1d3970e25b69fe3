//===- NnAssembly.cpp - Assembly directives shared by all dialects --------===//
//
// Weight references, domains, planes and layers, and the attributes and types whose form a tablegen format cannot say.
//
//===----------------------------------------------------------------------===//
#include "dialects/Nn/Nn.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include <charconv>

using namespace mlir;
using namespace k2c::nn;

FailureOr<FloatAttr> k2c::parseReal(AsmParser &parser) {
  double value;
  if (parser.parseFloat(value))
    return failure();
  return parser.getBuilder().getF64FloatAttr(value);
}

void k2c::printReal(AsmPrinter &printer, FloatAttr value) {
  char digits[32];
  std::to_chars_result end = std::to_chars(std::begin(digits), std::end(digits), value.getValueAsDouble());
  StringRef text(digits, end.ptr - digits);
  // MLIR's lexer wants a point in every real number.
  auto [mantissa, exponent] = text.split('e');
  printer << mantissa << (mantissa.contains('.') ? "" : ".0");
  if (!exponent.empty())
    printer << 'e' << exponent;
}

ParseResult k2c::parseReal(OpAsmParser &parser, FloatAttr &value) {
  FailureOr<FloatAttr> parsed = parseReal(static_cast<AsmParser &>(parser));
  if (succeeded(parsed))
    value = *parsed;
  return failure(failed(parsed));
}

void k2c::printReal(OpAsmPrinter &printer, Operation *, FloatAttr value) { printReal(printer, value); }

//===----------------------------------------------------------------------===//
// Weight references
//===----------------------------------------------------------------------===//

ParseResult k2c::parseWeightRef(OpAsmParser &parser, FlatSymbolRefAttr &family,
                                std::optional<OpAsmParser::UnresolvedOperand> &operand, Type &type) {
  OpAsmParser::UnresolvedOperand value;
  StringAttr name;
  if (succeeded(parser.parseOptionalSymbolName(name))) {
    family = FlatSymbolRefAttr::get(name);
    if (failed(parser.parseOptionalLSquare()))
      return success();
    type = parser.getBuilder().getIndexType();
    if (parser.parseOperand(value) || parser.parseRSquare())
      return failure();
  } else if (parser.parseOperand(value) || parser.parseColonType(type)) {
    return failure();
  }
  operand = value;
  return success();
}

void k2c::printWeightRef(OpAsmPrinter &printer, Operation *, FlatSymbolRefAttr family, Value operand, Type type) {
  if (!family) {
    printer << operand << " : " << type;
    return;
  }
  printer.printSymbolName(family.getValue());
  if (operand)
    printer << '[' << operand << ']';
}

ParseResult k2c::parseOptionalWeightRef(OpAsmParser &parser, StringRef keyword, FlatSymbolRefAttr &family,
                                        std::optional<OpAsmParser::UnresolvedOperand> &operand, Type &type) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  return parseWeightRef(parser, family, operand, type);
}

void k2c::printOptionalWeightRef(OpAsmPrinter &printer, Operation *op, StringRef keyword, FlatSymbolRefAttr family,
                                 Value operand, Type type) {
  if (!family && !operand)
    return;
  printer << ' ' << keyword << ' ';
  printWeightRef(printer, op, family, operand, type);
}

//===----------------------------------------------------------------------===//
// Domains, planes, layer runs
//===----------------------------------------------------------------------===//

ParseResult k2c::parseIndices(AsmParser &parser, IndicesAttr &indices) {
  SmallVector<IndexRange> ranges;
  SMLoc place = parser.getCurrentLocation();
  do {
    IndexRange &range = ranges.emplace_back();
    if (parser.parseInteger(range.from) || parser.parseKeyword("to") || parser.parseInteger(range.to) ||
        (succeeded(parser.parseOptionalKeyword("step")) && parser.parseInteger(range.step)))
      return failure();
  } while (succeeded(parser.parseOptionalKeyword("and")));
  indices = IndicesAttr::getChecked([&] { return parser.emitError(place); }, parser.getContext(),
                                    ArrayRef<IndexRange>(ranges));
  return success(indices != nullptr);
}

void k2c::printIndices(AsmPrinter &printer, IndicesAttr indices) {
  llvm::interleave(
      indices.getRanges(), printer,
      [&](const IndexRange &range) {
        printer << range.from << " to " << range.to;
        if (range.step != 1)
          printer << " step " << range.step;
      },
      " and ");
}

ParseResult k2c::parseDomains(OpAsmParser &parser, ArrayAttr &domains) {
  SmallVector<Attribute> list;
  MLIRContext *context = parser.getContext();
  auto parseOne = [&]() -> ParseResult {
    std::string name;
    IndicesAttr indices;
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() || parseIndices(parser, indices))
      return failure();
    list.push_back(DomainAttr::get(context, name, indices));
    return success();
  };
  if (succeeded(parser.parseOptionalKeyword("over")) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOne))
    return failure();
  domains = ArrayAttr::get(context, list);
  return success();
}

void k2c::printDomains(OpAsmPrinter &printer, Operation *, ArrayAttr domains) {
  if (domains.empty())
    return;
  printer << " over (";
  llvm::interleaveComma(domains.getAsRange<DomainAttr>(), printer, [&](DomainAttr domain) {
    printer.printKeywordOrString(domain.getName());
    printer << " = ";
    printIndices(printer, domain.getIndices());
  });
  printer << ')';
}

ParseResult k2c::parseDimsAndElement(AsmParser &parser, SmallVectorImpl<int64_t> &dims, Type &element) {
  return failure(parser.parseDimensionList(dims, /*allowDynamic=*/false) || parser.parseType(element));
}

void k2c::printDimsAndElement(AsmPrinter &printer, ArrayRef<int64_t> dims, Type element) {
  for (int64_t dim : dims)
    printer << dim << " x ";
  printer << element;
}

namespace k2c {
/// `planes (latent = 512 x f32, rope = 64 x f32)`.
static ParseResult parsePlanes(OpAsmParser &parser, ArrayAttr &planes) {
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    std::string name;
    SmallVector<int64_t> dims;
    Type element;
    SMLoc place = parser.getCurrentLocation();
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() || parseDimsAndElement(parser, dims, element))
      return failure();
    auto plane = PlaneAttr::getChecked([&] { return parser.emitError(place); }, parser.getContext(), StringRef(name),
                                       ArrayRef<int64_t>(dims), element);
    list.push_back(plane);
    return success(plane != nullptr);
  };
  if (parser.parseKeyword("planes") || parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseOne))
    return failure();
  planes = ArrayAttr::get(parser.getContext(), list);
  return success();
}

static void printPlanes(OpAsmPrinter &printer, Operation *, ArrayAttr planes) {
  printer << "planes (";
  llvm::interleaveComma(planes.getAsRange<PlaneAttr>(), printer, [&](PlaneAttr plane) {
    printer.printKeywordOrString(plane.getName());
    printer << " = ";
    printDimsAndElement(printer, plane.getDims(), plane.getElement());
  });
  printer << ')';
}

/// `@layer` or, in turns, `(@dense_layer, @moe_layer)`.
static ParseResult parseCallees(OpAsmParser &parser, SmallVector<FlatSymbolRefAttr> &callees) {
  auto parseOne = [&]() -> ParseResult {
    StringAttr name;
    if (parser.parseSymbolName(name))
      return failure();
    callees.push_back(FlatSymbolRefAttr::get(name));
    return success();
  };
  if (succeeded(parser.parseOptionalLParen()))
    return failure(parser.parseCommaSeparatedList(parseOne) || parser.parseRParen());
  return parseOne();
}

/// `%x, %y reads %t, %b`: what is carried, what is read, the step.
static ParseResult parseLayerOperands(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &carried,
                                      SmallVectorImpl<OpAsmParser::UnresolvedOperand> &read,
                                      OpAsmParser::UnresolvedOperand &batch) {
  if (parser.parseOperandList(carried))
    return failure();
  const bool reads = succeeded(parser.parseOptionalKeyword("reads"));
  if (reads && parser.parseOperandList(read))
    return failure();
  auto &last = reads ? read : carried;
  if (last.empty())
    return parser.emitError(parser.getCurrentLocation(), "expected the step behind what layers take");
  batch = last.pop_back_val();
  return success();
}

static void printLayerOperands(OpAsmPrinter &printer, Operation *, OperandRange carried, OperandRange read,
                               Value batch) {
  printer << carried;
  printer << (read.empty() ? ", " : " reads ");
  for (Value value : read)
    printer << value << ", ";
  printer << batch;
}

/// `!x, !y reads !t`; results have the types of what is carried.
static ParseResult parseLayerTypes(OpAsmParser &parser, SmallVectorImpl<Type> &carried, SmallVectorImpl<Type> &read,
                                   SmallVectorImpl<Type> &outputs) {
  if (parser.parseTypeList(carried) || (succeeded(parser.parseOptionalKeyword("reads")) && parser.parseTypeList(read)))
    return failure();
  llvm::append_range(outputs, carried);
  return success();
}

static void printLayerTypes(OpAsmPrinter &printer, Operation *, TypeRange carried, TypeRange read, TypeRange) {
  llvm::interleaveComma(carried, printer);
  if (!read.empty())
    llvm::interleaveComma(read, printer << " reads ");
}

/// `[@dense_layer[0 to 1], @moe_layer[1 to 3]]`.
static ParseResult parseLayerRuns(OpAsmParser &parser, ArrayAttr &runs) {
  SmallVector<Attribute> list;
  auto parseOne = [&]() -> ParseResult {
    SmallVector<FlatSymbolRefAttr> callees;
    int64_t from, to;
    SMLoc place = parser.getCurrentLocation();
    if (parseCallees(parser, callees) || parser.parseLSquare() || parser.parseInteger(from) ||
        parser.parseKeyword("to") || parser.parseInteger(to) || parser.parseRSquare())
      return failure();
    auto run = LayerRunAttr::getChecked([&] { return parser.emitError(place); }, parser.getContext(),
                                        ArrayRef<FlatSymbolRefAttr>(callees), from, to);
    list.push_back(run);
    return success(run != nullptr);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  runs = ArrayAttr::get(parser.getContext(), list);
  return success();
}

static void printLayerRuns(OpAsmPrinter &printer, Operation *, ArrayAttr runs) {
  printer << '[';
  llvm::interleaveComma(runs.getAsRange<LayerRunAttr>(), printer, [&](LayerRunAttr run) {
    ArrayRef<FlatSymbolRefAttr> callees = run.getCallees();
    printer << (callees.size() > 1 ? "(" : "");
    llvm::interleaveComma(callees, printer, [&](FlatSymbolRefAttr callee) { printer << callee; });
    printer << (callees.size() > 1 ? ")[" : "[") << run.getFrom() << " to " << run.getTo() << ']';
  });
  printer << ']';
}
} // namespace k2c

//===----------------------------------------------------------------------===//
// Attributes and types
//===----------------------------------------------------------------------===//

/// `<token>`, `<slot, 8>`, `<recv, site = 12, max = 8192>`.
Attribute RowsAttr::parse(AsmParser &parser, Type) {
  SMLoc place = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  auto kind = FieldParser<RowKind>::parse(parser);
  int64_t perToken = 0, site = -1, max = -1;
  if (failed(kind))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    if (succeeded(parser.parseOptionalKeyword("site"))) {
      if (parser.parseEqual() || parser.parseInteger(site))
        return {};
    } else if (succeeded(parser.parseOptionalKeyword("max"))) {
      if (parser.parseEqual() || parser.parseInteger(max))
        return {};
    } else if (parser.parseInteger(perToken)) {
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(place); }, parser.getContext(), *kind, perToken, site, max);
}

void RowsAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyRowKind(getKind());
  if (getPerToken())
    printer << ", " << getPerToken();
  if (getSite() >= 0)
    printer << ", site = " << getSite();
  if (getMax() >= 0)
    printer << ", max = " << getMax();
  printer << '>';
}

/// `<0 to 4 and 5 to 61 step 2>`.
Attribute IndicesAttr::parse(AsmParser &parser, Type) {
  IndicesAttr indices;
  if (parser.parseLess() || parseIndices(parser, indices) || parser.parseGreater())
    return {};
  return indices;
}

void IndicesAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printIndices(printer, *this);
  printer << '>';
}

Attribute SliceAttr::parse(AsmParser &parser, Type) {
  SMLoc place = parser.getCurrentLocation();
  SmallVector<int64_t> dims;
  int64_t dim, from, to;
  auto parseDim = [&] { return parser.parseInteger(dims.emplace_back()); };
  auto parseField = [&](StringRef name, int64_t &value) {
    return failure(parser.parseComma() || parser.parseKeyword(name) || parser.parseEqual() ||
                   parser.parseInteger(value));
  };
  if (parser.parseLess() || parser.parseKeyword("dims") || parser.parseEqual() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim) || failed(parseField("dim", dim)) ||
      failed(parseField("from", from)) || failed(parseField("to", to)))
    return {};
  bool transpose = succeeded(parser.parseOptionalComma());
  if ((transpose && parser.parseKeyword("transpose")) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(place); }, parser.getContext(), ArrayRef<int64_t>(dims), dim, from,
                    to, transpose);
}

void SliceAttr::print(AsmPrinter &printer) const {
  printer << "<dims = [";
  llvm::interleaveComma(getDims(), printer);
  printer << "], dim = " << getDim() << ", from = " << getFrom() << ", to = " << getTo();
  if (getTranspose())
    printer << ", transpose";
  printer << '>';
}

Type KvViewType::parse(AsmParser &parser) {
  SMLoc place = parser.getCurrentLocation();
  SmallVector<int64_t> keys, values;
  Type keyElement, valueElement;
  int64_t group;
  if (parser.parseLess() || parser.parseKeyword("k") || parser.parseEqual() ||
      parseDimsAndElement(parser, keys, keyElement) || parser.parseComma() || parser.parseKeyword("v") ||
      parser.parseEqual() || parseDimsAndElement(parser, values, valueElement) || parseCacheGroup(parser, group) ||
      parser.parseGreater())
    return {};
  if (keys.size() != 2 || values.size() != 2 || keyElement != valueElement) {
    parser.emitError(place, "expected `k = heads x dims x type, v = heads x dims x type` with one type");
    return {};
  }
  if (keys[0] != values[0]) {
    parser.emitError(place, "'!nn.kv_view' [C1] expects ")
        << keys[0] << " key heads to equal " << values[0] << " value heads";
    return {};
  }
  return getChecked([&] { return parser.emitError(place); }, parser.getContext(), keys[0], keys[1], values[1],
                    keyElement, group);
}

void KvViewType::print(AsmPrinter &printer) const {
  printer << "<k = ";
  printDimsAndElement(printer, {getHeads(), getKeyDims()}, getElement());
  printer << ", v = ";
  printDimsAndElement(printer, {getHeads(), getValueDims()}, getElement());
  printCacheGroup(printer, getGroup());
  printer << '>';
}

#define GET_OP_CLASSES
#include "dialects/Nn/NnOps.cpp.inc"
