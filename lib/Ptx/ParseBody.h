//===- ParseBody.h - Statements of a function -----------------------------===//
#ifndef K2C_LIB_PTX_PARSEBODY_H
#define K2C_LIB_PTX_PARSEBODY_H

#include "Cursor.h"

namespace k2c::ptx {

/// The declaration behind .global, .shared, ..: alignment, type, name, elements, initial value.
Variable parseVariable(Cursor &cursor, Space space);

/// The statements behind a function's opening brace, up to its closing one.
void parseBody(Cursor &cursor, const Module &module, Function &function);

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_PARSEBODY_H
