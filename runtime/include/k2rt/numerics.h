//===- numerics.h - Version of the numerics contract --------------------------===//
//
// Part of the identity of a program's bits, with the compute type, the form of MLA and the class. It grows when an
// order of accumulation, a rounding point or a polynomial changes.
//
// 1  the orders of N1 to N7 with attention's weights in f32, outputs divided by their sum
// 2  attention in bf16 rounds weights to bf16 and weighs keys in pairs; outputs are multiplied by 1 / sum
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_NUMERICS_H
#define K2RT_NUMERICS_H

#define K2RT_NUMERICS_VERSION 2

#define K2RT_TEXT_OF(number) #number
#define K2RT_NUMERICS_TEXT_OF(version) "numerics " K2RT_TEXT_OF(version)
/// What `--version` says of it.
#define K2RT_NUMERICS_TEXT K2RT_NUMERICS_TEXT_OF(K2RT_NUMERICS_VERSION)

#endif // K2RT_NUMERICS_H
