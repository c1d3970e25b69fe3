//===- Angles.cpp - theta and scaling from frequencies --------------------------------===//
//
// Neighbours among the pairs that a scaling leaves alone, or divides alike, give theta, which people choose with few
// digits; the last pair gives the factor of a scaling. What is left of YaRN and Llama 3 are numbers that models choose
// from few. A guess counts where all frequencies, or all elements of the tables, are those of ours but for rounding,
// so that a wrong one is never taken.
//
//===----------------------------------------------------------------------===//
#include "Angles.h"

#include "base/Utf8.h"
#include "k2c/Model/Rope.h"
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace k2c::onnx {

namespace {

/// Powers in float32 differ by a few units in the last place between libraries: theta of 25,000 by two, measured. So do
/// the frequencies that one formula gives.
constexpr double frequencyError = 0x1p-21;

double rounded(double value, int digits) {
  const double scale = std::pow(10.0, std::floor(std::log10(value)) + 1 - digits);
  return std::round(value / scale) * scale;
}

/// Looks for the formula of frequencies that are known to `tolerance`; `isRight` says whether one that gives them is
/// it.
class FormulaFinder {
public:
  FormulaFinder(std::vector<float> frequencies, double tolerance, std::function<bool(const RopeSpec &)> isRight)
      : frequencies(std::move(frequencies)), tolerance(tolerance), isRight(std::move(isRight)) {}

  bool find(RopeSpec &rope) const {
    rope.theta = 10000;
    if (frequencies.size() < 2)
      return findScaling(rope);
    const size_t last = frequencies.size() - 1;
    for (size_t at : {size_t(0), last - 1, last / 2}) {
      const double ratio = double(frequencies[at]) / double(frequencies[at + 1]);
      const double exact = std::pow(ratio, double(rope.dims) / 2);
      double before = 0;
      for (int digits = 1; digits <= 6 && exact > 1; digits++) {
        rope.theta = rounded(exact, digits);
        if (rope.theta > 1 && rope.theta != std::exchange(before, rope.theta) && findScaling(rope))
          return true;
      }
    }
    return false;
  }

private:
  bool is(RopeSpec &rope, const RopeScaling &scaling) const {
    rope.scaling = scaling;
    const std::vector<float> ours = ropeInverseFrequencies(rope);
    for (size_t i = 0; i < ours.size(); i++)
      if (!(std::abs(double(ours[i]) - double(frequencies[i])) <= tolerance * double(ours[i]))) // NaN is none
        return false;
    return isRight(rope);
  }

  bool findScaling(RopeSpec &rope) const {
    if (is(rope, RopeUnscaled{}))
      return true;
    const std::vector<float> plain = ropeInverseFrequencies(rope);
    const double factor = rounded(double(plain.back()) / double(frequencies.back()), 5);
    if (!(factor > 1))
      return false;
    if (is(rope, RopeLinear{factor}))
      return true;
    for (int64_t context = 16; context <= (int64_t(1) << 20); context += context < 4096 ? 16 : 4096) {
      if (is(rope, RopeLlama3{factor, 1, 4, context}))
        return true;
      for (double fast : {32.0, 1.0})
        for (bool truncate : {true, false})
          if (is(rope, RopeYarn{factor, fast, 1, context, truncate}))
            return true;
    }
    return false;
  }

  std::vector<float> frequencies;
  double tolerance;
  std::function<bool(const RopeSpec &)> isRight;
};

/// Tables of cosines and sines, [positions, pairs].
class Tables {
public:
  Tables(Fold &fold, const Rotation &rotation) : fold(fold), rotation(rotation) {
    const auto found = fold.graph.constants.find(rotation.cosines.constant);
    rows = found == fold.graph.constants.end() || found->second.shape.empty() ? 0 : found->second.shape[0];
  }

  std::optional<double> at(const View &view, int64_t row, int64_t pair) const {
    return fold.constantAt(view.constant, view.offset + row * view.strides[0] + pair * view.strides[1]);
  }

  /// Angles at position 1 are the frequencies.
  std::vector<float> frequencies(double scale) const {
    std::vector<float> out;
    for (int64_t i = 0; i < rotation.dims / 2; i++)
      out.push_back(float(
          std::atan2(at(rotation.sines, 1, i).value_or(0) / scale, at(rotation.cosines, 1, i).value_or(0) / scale)));
    return out;
  }

  bool are(const RopeSpec &rope) const {
    const size_t half = size_t(rope.dims / 2);
    const std::vector<float> frequencies = ropeInverseFrequencies(rope);
    std::vector<float> ours(2 * half);
    for (int64_t row = 0; row < rows; row++) {
      ropeTableRows(rope, row, 1, ours.data());
      for (size_t i = 0; i < half; i++) {
        const double angleError = double(row) * frequencyError * double(frequencies[i]);
        if (!isNear(ours[i], at(rotation.cosines, row, int64_t(i)), angleError) ||
            !isNear(ours[half + i], at(rotation.sines, row, int64_t(i)), angleError))
          return false;
      }
    }
    return rows > 1;
  }

private:
  /// Within two units of the last place of 1, and the angle's error.
  bool isNear(float ours, std::optional<double> theirs, double angleError) const {
    return theirs && std::abs(double(ours) - *theirs) <= 0x1p-22 + angleError;
  }

  Fold &fold;
  const Rotation &rotation;
  int64_t rows = 0;
};

} // namespace

Expected<RopeSpec> ropeOf(Fold &fold, const Rotation &rotation) {
  RopeSpec rope;
  rope.dims = rotation.dims;
  rope.pairs = rotation.pairs;
  if (!rotation.frequencies.empty()) {
    const auto isRight = [](const RopeSpec &) { return true; };
    if (FormulaFinder(rotation.frequencies, frequencyError, isRight).find(rope))
      return rope;
  } else {
    const Tables tables(fold, rotation);
    rope.cosSinScale = tables.at(rotation.cosines, 0, 0).value_or(0);
    if (rope.cosSinScale > 0 && FormulaFinder(tables.frequencies(rope.cosSinScale), 1e-5, [&](const RopeSpec &guess) {
                                  return tables.are(guess);
                                }).find(rope))
      return rope;
  }
  return Error{fold.graph.path, "angles of the rotary embedding are none of a formula that is known",
               "known: theta, linear, YaRN and Llama 3 scaling"};
}

} // namespace k2c::onnx
