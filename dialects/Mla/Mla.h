//===- Mla.h - The mla dialect ----------------------------------------------===//
//
// Multi-head latent attention. See Rationale.md.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_MLA_MLA_H
#define K2C_DIALECTS_MLA_MLA_H

#include "dialects/Nn/Nn.h"

#include "dialects/Mla/MlaDialect.h.inc"
#include "dialects/Mla/MlaEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Mla/MlaAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Mla/MlaTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Mla/MlaOps.h.inc"

#endif // K2C_DIALECTS_MLA_MLA_H
