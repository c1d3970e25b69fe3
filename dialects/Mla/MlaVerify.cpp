//===- MlaVerify.cpp - Verifiers of the mla dialect -----------------------===//
//
// Ids are those of MlaBase.td and MlaOps.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Mla/Mla.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace k2c::mla;

/// [C1] of forms.
LogicalResult FormsAttr::verify(function_ref<InFlightDiagnostic()> emitError, Form, Form generated) {
  if (generated == Form::Table)
    return emitError() << "'#mla.forms' [C1] expects one form for generated segments, got table";
  return success();
}

/// [C1] of view.
LogicalResult ViewType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t latent, int64_t rope, Type) {
  for (int64_t width : {latent, rope})
    if (width <= 0)
      return emitError() << "'!mla.view' [C1] expects positive widths, got " << width;
  return success();
}

/// `<latent = 512 x f32, rope = 64 x f32>`; [C2] of view.
Type ViewType::parse(AsmParser &parser) {
  SMLoc place = parser.getCurrentLocation();
  SmallVector<int64_t> latent, rope;
  Type element, ropeElement;
  if (parser.parseLess() || parser.parseKeyword("latent") || parser.parseEqual() ||
      parseDimsAndElement(parser, latent, element) || parser.parseComma() || parser.parseKeyword("rope") ||
      parser.parseEqual() || parseDimsAndElement(parser, rope, ropeElement) || parser.parseGreater())
    return {};
  if (latent.size() != 1 || rope.size() != 1) {
    parser.emitError(place, "expected `latent = width x type, rope = width x type`");
    return {};
  }
  if (element != ropeElement) {
    parser.emitError(place, "'!mla.view' [C2] expects one element type, got ") << element << " and " << ropeElement;
    return {};
  }
  return getChecked([&] { return parser.emitError(place); }, parser.getContext(), latent[0], rope[0], element);
}

void ViewType::print(AsmPrinter &printer) const {
  printer << "<latent = ";
  printDimsAndElement(printer, getLatent(), getElement());
  printer << ", rope = ";
  printDimsAndElement(printer, getRope(), getElement());
  printer << '>';
}

LogicalResult AppendOp::verifySymbolUses(SymbolTableCollection &) { return success(); }
