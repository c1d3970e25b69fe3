//===- Moe.h - The moe dialect ----------------------------------------------===//
//
// Routing, permutation and combination of experts. See Rationale.md.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_MOE_MOE_H
#define K2C_DIALECTS_MOE_MOE_H

#include "dialects/Dist/Dist.h"
#include "dialects/Nn/Nn.h"

#include "dialects/Moe/MoeDialect.h.inc"
#include "dialects/Moe/MoeEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Moe/MoeAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Moe/MoeTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Moe/MoeOps.h.inc"

#endif // K2C_DIALECTS_MOE_MOE_H
