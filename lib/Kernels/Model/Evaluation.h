//===- Evaluation.h - What the evaluate readings share ------------------------===//
//
// Elements as f32 whatever their storage, one rounding at each store, the contraction of N1 and N6, and the argument
// array read in order. Internal to K2CKernelModel.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_KERNELS_MODEL_EVALUATION_H
#define K2C_LIB_KERNELS_MODEL_EVALUATION_H

#include "base/Error.h"
#include "k2c/Kernels/WeightLayout.h"
#include "k2rt/program.h"
#include <cstring>
#include <functional>
#include <vector>

namespace k2c::evaluation {

/// DAZ and FTZ while it lives: what every worker computes under (N6).
class FlushDenormals {
public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals &) = delete;
  FlushDenormals &operator=(const FlushDenormals &) = delete;

private:
  unsigned saved;
};

/// The bits of the nearest bf16, ties to even; NaN stays a (quiet) NaN, subnormal inputs become zeros.
uint16_t toBf16(float value);

/// `value` rounded to `type` (F32 or BF16) and widened again.
float roundTo(DType type, float value);

/// Element `index` of an array of F32 or BF16.
inline float load(const void *base, int64_t index, DType type) {
  if (type == DType::F32)
    return static_cast<const float *>(base)[index];
  uint32_t bits = uint32_t(static_cast<const uint16_t *>(base)[index]) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline void store(void *base, int64_t index, DType type, float value) {
  if (type == DType::F32)
    static_cast<float *>(base)[index] = value;
  else
    static_cast<uint16_t *>(base)[index] = toBf16(value);
}

/// Elements [first, first + count) as f32.
std::vector<float> loadRow(const void *base, int64_t first, int64_t count, DType type);

/// Row `row` of `rows`, all `width` elements.
inline std::vector<float> loadRow(const void *base, const Rows &rows, int64_t row) {
  return loadRow(base, row * rows.stride, rows.width, rows.type);
}

/// Row `number` of `rows` becomes `row`, and zeros behind its end.
inline void storeRow(void *base, const Rows &rows, int64_t number, std::vector<float> row) {
  row.resize(static_cast<size_t>(rows.width), 0.0f);
  for (int64_t i = 0; i < rows.width; ++i)
    store(base, number * rows.stride + i, rows.type, row[i]);
}

/// The value of an e4m3fn code: sign, four bits of exponent (bias 7), three of mantissa; 0x7f and 0xff are NaN.
float ofE4M3(uint8_t code);

/// Column `column` (W[column][0 .. k)) of matrix `m`; block-scaled elements times their scale, in f32.
std::vector<float> loadColumn(const void *base, const MatrixLayout &layout, int64_t m, int64_t column);

/// N1 and N6: sum of x[i] * w[i] in the order of Contraction. `pairs`: both factors are stored as bf16.
float contract(const float *x, const float *w, Contraction order, bool pairs);

/// RmsNormDesc's arithmetic in place, rounded to `type`. `row` has `width` elements.
void normalize(std::vector<float> &row, const void *weight, DType weightType, double eps, DType type);

/// The result of `list` on one element; input(i) is that of input i, widened to f32. Not yet rounded when the list has
/// no steps.
float elementOf(const Elementwise &list, const std::function<float(int64_t)> &input);

/// The larger of two numbers as N3 takes it: `b` unless a > b.
inline float larger(float a, float b) { return a > b ? a : b; }

template <class T> const T *as(const void *pointer) { return static_cast<const T *>(pointer); }

/// The argument array, read in order.
class Arguments {
public:
  Arguments(void *const *args, WeightLayout weights) : weights(weights), next(args) {}
  void *pointer() { return *next++; }
  template <class T> T *array() { return static_cast<T *>(pointer()); }
  int64_t ordinal() { return reinterpret_cast<intptr_t>(pointer()); }

  WeightLayout weights; ///< of all matrices

private:
  void *const *next;
};

/// A permutation as PermutationDesc lays it out.
struct Permutation {
  int32_t *offsets = nullptr;     ///< [experts + 1]
  int32_t *routeOfSlot = nullptr; ///< [rows * topK]
  int32_t *slotOfRoute = nullptr; ///< [rows * topK]

  Permutation(void *base, int64_t experts, int64_t routes)
      : offsets(static_cast<int32_t *>(base)), routeOfSlot(offsets + experts + 1), slotOfRoute(routeOfSlot + routes) {}
};

/// An output of one of a token's experts.
struct Contribution {
  int64_t expert;
  std::vector<float> row;
};

/// N5's tree over a token's contributions: the subtree of `count` leaves from leaf `first` on, of `perLeaf` experts
/// each, rounded to `type` at each addition; empty when no expert of it is present.
std::vector<float> sumOfExperts(const std::vector<Contribution> &contributions, int64_t first, int64_t count,
                                int64_t perLeaf, DType type);

/// True when the row's segment form passes the filter.
bool takesRow(FormFilter filter, const k2rt_ir_step &step, int64_t row);

/// Rows of a space; Slot has slotsPerToken a token.
int64_t rowCount(RowSpace space, const k2rt_ir_step &step, int64_t slotsPerToken = 1);

Error invalid(std::string message, std::string remedy = "");

Status run(const EmbedDesc &, Arguments, const k2rt_ir_step &);
Status run(const RmsNormDesc &, Arguments, const k2rt_ir_step &);
Status run(const LinearDesc &, Arguments, const k2rt_ir_step &);
Status run(const HeadLinearDesc &, Arguments, const k2rt_ir_step &);
Status run(const RotaryDesc &, Arguments, const k2rt_ir_step &);
Status run(const AppendDesc &, Arguments, const k2rt_ir_step &);
Status run(const GqaAttentionDesc &, Arguments, const k2rt_ir_step &);
Status run(const AbsorbedAttentionDesc &, Arguments, const k2rt_ir_step &);
Status run(const ExpandedAttentionDesc &, Arguments, const k2rt_ir_step &);
Status run(const RoutingDesc &, Arguments, const k2rt_ir_step &);
Status run(const PermutationDesc &, Arguments, const k2rt_ir_step &);
Status run(const PermuteDesc &, Arguments, const k2rt_ir_step &);
Status run(const UnpermuteDesc &, Arguments, const k2rt_ir_step &);
Status run(const RowwiseDesc &, Arguments, const k2rt_ir_step &);
Status run(const OutputRowsDesc &, Arguments, const k2rt_ir_step &);
Status run(const CaptureDesc &, Arguments, const k2rt_ir_step &);
Status run(const LocateDesc &, Arguments, const k2rt_ir_step &);
Status run(const RoutePlanDesc &, Arguments, const k2rt_ir_step &);
Status run(const PackDesc &, Arguments, const k2rt_ir_step &);
Status run(const UnpackDesc &, Arguments, const k2rt_ir_step &);
Status run(const ReturnPlanDesc &, Arguments, const k2rt_ir_step &);
Status run(const ReduceSubtreesDesc &, Arguments, const k2rt_ir_step &);
Status run(const MergeSubtreesDesc &, Arguments, const k2rt_ir_step &);
Status run(const CombineDesc &, Arguments, const k2rt_ir_step &);
Status run(const TokenIdsDesc &, Arguments, const k2rt_ir_step &);
Status run(const LookupDesc &, Arguments, const k2rt_ir_step &);
Status run(const SharePlanDesc &, Arguments, const k2rt_ir_step &);
Status run(const CloseGapsDesc &, Arguments, const k2rt_ir_step &);
Status run(const ShareReturnDesc &, Arguments, const k2rt_ir_step &);
Status run(const JoinColumnsDesc &, Arguments, const k2rt_ir_step &);
Status run(const PartPlanDesc &, Arguments, const k2rt_ir_step &);
Status run(const AddPartsDesc &, Arguments, const k2rt_ir_step &);
Status run(const BlockArgmaxDesc &, Arguments, const k2rt_ir_step &);
Status run(const GreedySampleDesc &, Arguments, const k2rt_ir_step &);

} // namespace k2c::evaluation

#endif // K2C_LIB_KERNELS_MODEL_EVALUATION_H
