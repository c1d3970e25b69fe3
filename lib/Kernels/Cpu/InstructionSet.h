//===- InstructionSet.h - The instructions a contraction is made of -------===//
//
// What a target can say in a better way than Generic. A panel vector is what one load brings: `lanes` f32 weights, or
// `lanes` pairs of bf16 in i32 lanes (the earlier element in the low half). A factor is a row's element, or pair of
// elements, on all lanes. Block-scaled e4m3 weights become f32 as they are loaded. multiplyAdd is N1's step; two bf16
// factors multiply in pairs, the odd element first (N6).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_KERNELS_CPU_INSTRUCTIONSET_H
#define K2C_LIB_KERNELS_CPU_INSTRUCTIONSET_H

#include "Builder.h"
#include "k2c/Kernels/TileConfig.h"

namespace k2c::emit {

/// One step's factor of a row. `pair`: bf16 pairs as i32 lanes (pairs order); else one f32 vector for each element.
struct PanelFactor {
  Value pair;
  Value first, second; ///< second is null for f32 panels and for the half step
};

/// A vector of weights at `address`.
struct PanelVector {
  Value raw; ///< f32 lanes, or i32 lanes of bf16 pairs
  DType type;
};
PanelVector loadPanelVector(KernelBuilder &b, Value address, DType type, int64_t lanes);

/// Makes f32 of e4m3 codes (a vector of i8) and multiplies by `scale`, which is panelScale of the scales of their
/// columns.
PanelVector scaledWeights(KernelBuilder &b, Value codes, Value scale);
Value panelScale(KernelBuilder &b, Value scales);

/// The row element(s) of one step at `address`; `half`: the pair's second element is past the contraction's end.
PanelFactor loadFactor(KernelBuilder &b, Value address, DType x, DType w, int64_t lanes, bool half);

/// A step's elements of `several`, a vector of elements of a row, from element i on. Never a half step.
PanelFactor factorOf(KernelBuilder &b, Value several, int64_t i, DType x, DType w, int64_t lanes);
constexpr int64_t wideBytes = 16; ///< at an address that is a multiple of them

/// N1's step on every lane.
Value multiplyAdd(KernelBuilder &b, InstructionSet instructionSet, const PanelFactor &x, const PanelVector &w,
                  Value acc);

/// Avx512/: the pair step as one vdpbf16ps (N6: the same bits under DAZ and FTZ).
Value multiplyPairsAvx512(KernelBuilder &b, Value xPair, Value wPair, Value acc);

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_INSTRUCTIONSET_H
