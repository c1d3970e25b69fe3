//===- numerics.h - Version of the numerics contract --------------------------===//
//
// Part of the identity of a program's bits, with the compute type, the form of MLA and the class. It grows when an
// order of accumulation, a rounding point or a polynomial changes; the draw of a token is no part of it (N0 speaks of
// logits). The IR (nn.numerics), manifest.json and --version state this constant; the runtime refuses another.
//
// 1  the orders of N1 to N7 with attention's weights in f32, outputs divided by their sum
// 2  attention in bf16 rounds weights to bf16 and weighs keys in pairs; outputs are multiplied by 1 / sum
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_NUMERICS_H
#define K2RT_NUMERICS_H

#define K2RT_NUMERICS_VERSION 2

/// N3: keys of a block of the online softmax, which are the tokens of a page of the cache.
#define K2RT_PAGE_TOKENS 64

#define K2RT_TEXT_OF(number) #number
#define K2RT_NUMERICS_TEXT_OF(version) "numerics " K2RT_TEXT_OF(version)
#define K2RT_NUMERICS_PREFIX_OF(version) "v" K2RT_TEXT_OF(version) "/"
/// What `--version` says of it.
#define K2RT_NUMERICS_TEXT K2RT_NUMERICS_TEXT_OF(K2RT_NUMERICS_VERSION)
/// How the numerics id of a manifest begins: "v2/".
#define K2RT_NUMERICS_PREFIX K2RT_NUMERICS_PREFIX_OF(K2RT_NUMERICS_VERSION)

#endif // K2RT_NUMERICS_H
