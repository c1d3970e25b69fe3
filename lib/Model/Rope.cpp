//===- Rope.cpp - tables of the rotary embedding --------------------------===//
//
// Frequencies follow the formulas of the papers (YaRN: Peng et al. 2023,
// section 3; llama3: the Llama 3.1 release) in the order and precision of the
// published implementations: float32 on vectors, float64 on scalars. The build
// sets -ffp-contract=off: each product and sum rounds as written.
//
//===----------------------------------------------------------------------===//

#include "k2c/Model/Rope.h"
#include "k2c/Support/Polynomials.h"
#include "k2rt/polynomials.h"

#include <algorithm>
#include <cmath>

using namespace k2c;

namespace {

constexpr double pi = 0x1.921fb54442d18p+1;

template <class... F> struct Overloaded : F... {
  using F::operator()...;
};
template <class... F> Overloaded(F...) -> Overloaded<F...>;

/// theta^(2j/dims), whose reciprocal is the unscaled frequency.
std::vector<float> periods(const RopeSpec &rope) {
  std::vector<float> result(static_cast<size_t>(rope.dims / 2));
  for (size_t j = 0; j < result.size(); ++j) {
    float exponent = static_cast<float>(2 * j) / static_cast<float>(rope.dims);
    result[j] = static_cast<float>(
        poly::pow(static_cast<double>(static_cast<float>(rope.theta)), static_cast<double>(exponent)));
  }
  return result;
}

/// The dimension that turns `rotations` times within the original context.
double correctionDim(const RopeSpec &rope, const RopeYarn &yarn, double rotations) {
  double context = static_cast<double>(yarn.originalContext);
  return static_cast<double>(rope.dims) * poly::log(context / (rotations * 2 * pi)) / (2 * poly::log(rope.theta));
}

void scaleYarn(const RopeSpec &rope, const RopeYarn &yarn, const std::vector<float> &period,
               std::vector<float> &inverse) {
  double low = correctionDim(rope, yarn, yarn.betaFast);
  double high = correctionDim(rope, yarn, yarn.betaSlow);
  if (yarn.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rope.dims - 1));
  if (low == high)
    high += 0.001; // no singularity
  float lowF = static_cast<float>(low), span = static_cast<float>(high - low);
  float factor = static_cast<float>(yarn.factor);
  for (size_t j = 0; j < inverse.size(); ++j) {
    float ramp = (static_cast<float>(j) - lowF) / span;
    float keep = 1 - std::min(std::max(ramp, 0.0f), 1.0f);
    float extrapolated = 1 / period[j];
    float interpolated = 1 / (factor * period[j]);
    inverse[j] = interpolated * (1 - keep) + extrapolated * keep;
  }
}

void scaleLlama3(const RopeLlama3 &llama3, std::vector<float> &inverse) {
  float factor = static_cast<float>(llama3.factor);
  float lowFactor = static_cast<float>(llama3.lowFrequencyFactor);
  float context = static_cast<float>(llama3.originalContext);
  float range = static_cast<float>(llama3.highFrequencyFactor - llama3.lowFrequencyFactor);
  float longest = static_cast<float>(static_cast<double>(context) / llama3.lowFrequencyFactor);
  float shortest = static_cast<float>(static_cast<double>(context) / llama3.highFrequencyFactor);
  for (float &f : inverse) {
    float wavelength = static_cast<float>(2 * pi) / f;
    if (wavelength < shortest)
      continue;
    if (wavelength > longest) {
      f /= factor;
      continue;
    }
    float smooth = (context / wavelength - lowFactor) / range;
    f = (1 - smooth) * f / factor + smooth * f;
  }
}

} // namespace

double k2c::yarnMagnitude(double factor, double mscale) {
  return factor > 1 ? std::fma(0.1 * mscale, poly::log(factor), 1.0) : 1.0;
}

double k2c::yarnMscale(double factor, double scale) { return (std::sqrt(scale) - 1) / (yarnMagnitude(factor, 1) - 1); }

std::vector<float> k2c::ropeInverseFrequencies(const RopeSpec &rope) {
  std::vector<float> period = periods(rope);
  std::vector<float> inverse(period.size());
  for (size_t j = 0; j < period.size(); ++j)
    inverse[j] = 1 / period[j];
  std::visit(Overloaded{[&](const RopeYarn &yarn) { scaleYarn(rope, yarn, period, inverse); },
                        [&](const RopeLlama3 &llama3) { scaleLlama3(llama3, inverse); },
                        [&](const RopeLinear &linear) {
                          for (float &f : inverse)
                            f /= static_cast<float>(linear.factor);
                        },
                        [&](const RopePublished &published) { inverse = published.frequencies; },
                        [](const RopeDynamic &) {}, [](const RopeUnscaled &) {}},
             rope.scaling);
  return inverse;
}

void k2c::ropeTableRows(const RopeSpec &rope, int64_t first, int64_t count, float *out) {
  std::vector<float> inverse = ropeInverseFrequencies(rope);
  size_t half = inverse.size();
  for (int64_t row = 0; row < count; ++row, out += 2 * half)
    for (size_t j = 0; j < half; ++j) {
      float angle = static_cast<float>(first + row) * inverse[j];
      double sine, cosine;
      k2rt_sincos(static_cast<double>(angle), &sine, &cosine);
      out[j] = static_cast<float>(cosine * rope.cosSinScale);
      out[half + j] = static_cast<float>(sine * rope.cosSinScale);
    }
}

std::vector<float> k2c::ropeTable(const RopeSpec &rope, int64_t positions) {
  std::vector<float> table(static_cast<size_t>(positions * rope.dims));
  ropeTableRows(rope, 0, positions, table.data());
  return table;
}
