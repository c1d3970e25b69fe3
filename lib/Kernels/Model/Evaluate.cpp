//===- Evaluate.cpp - Entry of the scalar reading and its arithmetic ----------===//
//
// Arithmetic every body shares: bf16 rounding, the contraction of N1 and N6, the row normalisation, lists of element
// operations.
//
//===----------------------------------------------------------------------===//
#include "k2c/Kernels/Evaluate.h"
#include "Evaluation.h"
#include "k2c/Kernels/Verify.h"
#include "k2rt/polynomials.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <xmmintrin.h>

namespace k2c::evaluation {

namespace {
constexpr unsigned flushToZero = 0x8000, denormalsAreZero = 0x0040; // MXCSR
constexpr int64_t normChains = 64;                                  // RmsNormDesc
} // namespace

FlushDenormals::FlushDenormals() : saved(_mm_getcsr()) { _mm_setcsr(saved | flushToZero | denormalsAreZero); }
FlushDenormals::~FlushDenormals() { _mm_setcsr(saved); }

uint16_t toBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return uint16_t(bits >> 16 | 0x40);
  if (magnitude < 0x00800000)
    return uint16_t(bits >> 16 & 0x8000);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float roundTo(DType type, float value) {
  if (type == DType::F32)
    return value;
  uint16_t bits = toBf16(value);
  return load(&bits, 0, DType::BF16);
}

std::vector<float> loadRow(const void *base, int64_t first, int64_t count, DType type) {
  std::vector<float> row(count);
  for (int64_t i = 0; i < count; ++i)
    row[i] = load(base, first + i, type);
  return row;
}

float ofE4M3(uint8_t code) {
  int exponent = code >> 3 & 15, mantissa = code & 7;
  float magnitude = exponent == 0 ? std::ldexp(float(mantissa), -9) : std::ldexp(float(8 + mantissa), exponent - 10);
  if (exponent == 15 && mantissa == 7)
    magnitude = std::numeric_limits<float>::quiet_NaN();
  return code & 0x80 ? -magnitude : magnitude;
}

template <class Layout>
static std::vector<float> loadColumn(const void *base, const Layout &layout, int64_t m, int64_t column) {
  const Matrix &matrix = layout.matrix;
  std::vector<float> values(matrix.k);
  for (int64_t k = 0; k < matrix.k; ++k) {
    const char *element = as<char>(base) + layout.offset(m, column, k);
    if (!matrix.isScaled()) {
      values[k] = load(element, 0, matrix.type);
      continue;
    }
    float scale;
    std::memcpy(&scale, as<char>(base) + layout.scaleOffset(m, column, k), sizeof scale);
    values[k] = ofE4M3(*as<uint8_t>(element)) * scale;
  }
  return values;
}

std::vector<float> loadColumn(const void *base, const MatrixLayout &layout, int64_t m, int64_t column) {
  return std::visit([&](const auto &known) { return loadColumn(base, known, m, column); }, layout);
}

/// One FMA chain from +0 over [begin, end).
static float chain(const float *x, const float *w, int64_t begin, int64_t end, bool pairs) {
  float acc = 0;
  if (!pairs) {
    for (int64_t i = begin; i < end; ++i)
      acc = std::fma(x[i], w[i], acc);
    return acc;
  }
  for (int64_t i = begin; i < end; i += 2) {
    bool whole = i + 1 < end;
    acc = std::fma(whole ? x[i + 1] : 0.0f, whole ? w[i + 1] : 0.0f, acc);
    acc = std::fma(x[i], w[i], acc);
  }
  return acc;
}

float contract(const float *x, const float *w, Contraction order, bool pairs) {
  int64_t length = leafLength(order.k, order.leaves);
  std::vector<float> sums(order.leaves);
  for (int64_t leaf = 0; leaf < order.leaves; ++leaf)
    sums[leaf] = chain(x, w, std::min(leaf * length, order.k), std::min((leaf + 1) * length, order.k), pairs);
  for (int64_t count = order.leaves / 2; count >= 1; count /= 2)
    for (int64_t i = 0; i < count; ++i)
      sums[i] = sums[2 * i] + sums[2 * i + 1];
  return sums[0];
}

void normalize(std::vector<float> &row, const void *weight, DType weightType, double eps, DType type) {
  float chains[normChains] = {};
  for (size_t i = 0; i < row.size(); ++i)
    chains[i % normChains] = std::fma(row[i], row[i], chains[i % normChains]);
  for (int64_t half = normChains / 2; half >= 1; half /= 2)
    for (int64_t c = 0; c < half; ++c)
      chains[c] += chains[c + half];
  float mean = chains[0] / float(row.size());
  float factor = 1.0f / std::sqrt(mean + float(eps));
  for (size_t i = 0; i < row.size(); ++i)
    row[i] = roundTo(type, load(weight, i, weightType) * (row[i] * factor));
}

static float apply(ElementOp op, float a, float b) {
  switch (op) {
  case ElementOp::Round:
    return a;
  case ElementOp::Add:
    return a + b;
  case ElementOp::Mul:
    return a * b;
  case ElementOp::Min:
    return a < b ? a : b;
  case ElementOp::Max:
    return a > b ? a : b;
  case ElementOp::Silu:
    return k2rt_siluf(a);
  }
  return 0;
}

float elementOf(const Elementwise &list, const std::function<float(int64_t)> &input) {
  std::vector<float> results;
  for (const ElementStep &step : list.steps) {
    float terms[2] = {}, *next = terms;
    for (const ElementTerm &term : step)
      *next++ = term.kind == ElementTerm::Kind::Input  ? input(term.index)
                : term.kind == ElementTerm::Kind::Step ? results[term.index]
                                                       : float(term.value);
    results.push_back(roundTo(step.type, apply(step.op, terms[0], terms[1])));
  }
  return results.empty() ? input(0) : results.back();
}

bool takesRow(FormFilter filter, const k2rt_ir_step &step, int64_t row) {
  if (filter == FormFilter::All)
    return true;
  int32_t form = as<int32_t>(step.row_form)[row];
  return form == (filter == FormFilter::Expanded ? K2RT_FORM_EXPANDED : K2RT_FORM_ABSORBED);
}

int64_t rowCount(RowSpace space, const k2rt_ir_step &step, int64_t slotsPerToken) {
  if (space == RowSpace::Output)
    return step.output_rows;
  if (space == RowSpace::Entering)
    return step.entering_rows;
  return space == RowSpace::Slot ? step.token_rows * slotsPerToken : step.token_rows;
}

Error invalid(std::string message, std::string remedy) { return {"", std::move(message), std::move(remedy)}; }

} // namespace k2c::evaluation

namespace k2c {

Status evaluate(const KernelDesc &desc, void *const *args, const k2rt_ir_step &step, WeightLayout layout) {
  Status sound = verify(desc);
  if (!sound)
    return sound;
  evaluation::FlushDenormals flush;
  Status status = std::visit(
      [&](const auto &body) { return evaluation::run(body, evaluation::Arguments(args, layout), step); }, desc.body);
  if (status)
    return status;
  Error error = status.takeError();
  error.where = desc.name;
  return error;
}

} // namespace k2c
