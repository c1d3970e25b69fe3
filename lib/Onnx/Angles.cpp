//===- Angles.cpp - theta and scaling from frequencies --------------------------------===//
//
// Neighbours among the pairs that a scaling leaves alone, or divides alike, give theta, which people choose with few
// digits; the last pair gives the factor of a scaling. What is left of YaRN and Llama 3 are numbers that models choose
// from few. A config.json beside the graph states the formula, as a first guess. A guess counts where all frequencies,
// or all elements of the tables, are those of ours but for rounding, so that a wrong one is never taken.
//
//===----------------------------------------------------------------------===//
#include "Angles.h"

#include "Elements.h"
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

/// Pairs beyond which frequencies of YaRN and Llama 3 stay numbers: a guess computes all of them, there may be 200,000
/// guesses, and no model turns as many.
constexpr size_t maxScaledPairs = 256;

double rounded(double value, int digits) {
  const double scale = std::pow(10.0, std::floor(std::log10(value)) + 1 - digits);
  return std::round(value / scale) * scale;
}

/// Looks for the formula of frequencies, of which each is known to a part of itself, its error; `isRight` says whether
/// one that gives them is it.
class FormulaFinder {
public:
  FormulaFinder(std::vector<float> frequencies, std::vector<double> errors,
                std::function<bool(const RopeSpec &)> isRight)
      : frequencies(std::move(frequencies)), errors(std::move(errors)), isRight(std::move(isRight)) {}

  bool find(RopeSpec &rope, const std::vector<RopeSpec> &stated) const {
    for (const RopeSpec &guess : stated) {
      rope.theta = guess.theta;
      rope.maxContext = guess.maxContext;
      if (guess.dims == rope.dims && is(rope, guess.scaling))
        return true;
    }
    rope.theta = 10000;
    rope.maxContext = 0;
    if (frequencies.size() < 2)
      return findScaling(rope);
    const size_t last = frequencies.size() - 1;
    for (size_t at : {size_t(0), last - 1, last / 2}) {
      const double ratio = double(frequencies[at]) / double(frequencies[at + 1]);
      for (double theta : roundings(std::pow(ratio, double(rope.dims) / 2), 6)) {
        rope.theta = theta;
        if (findScaling(rope))
          return true;
      }
    }
    return false;
  }

private:
  /// `value` in 1 to `digits` digits, without those that are equal, of values above 1.
  static std::vector<double> roundings(double value, int digits) {
    std::vector<double> out;
    for (int count = 1; count <= digits && value > 1; count++)
      if (const double some = rounded(value, count); some > 1 && (out.empty() || out.back() != some))
        out.push_back(some);
    return out;
  }

  bool is(RopeSpec &rope, const RopeScaling &scaling) const {
    rope.scaling = scaling;
    const std::vector<float> ours = ropeInverseFrequencies(rope);
    for (size_t i = 0; i < ours.size(); i++)
      if (!(std::abs(double(ours[i]) - double(frequencies[i])) <= errors[i] * double(ours[i]))) // NaN is none
        return false;
    return isRight(rope);
  }

  bool findScaling(RopeSpec &rope) const {
    if (is(rope, RopeUnscaled{}))
      return true;
    const std::vector<float> plain = ropeInverseFrequencies(rope);
    const std::vector<double> factors = roundings(double(plain.back()) / double(frequencies.back()), 5);
    return std::any_of(factors.begin(), factors.end(), [&](double factor) { return findScaling(rope, factor); });
  }

  bool findScaling(RopeSpec &rope, double factor) const {
    if (is(rope, RopeLinear{factor}))
      return true;
    if (frequencies.size() > maxScaledPairs)
      return false;
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
  std::vector<double> errors;
  std::function<bool(const RopeSpec &)> isRight;
};

/// Tables of cosines and sines, [positions, pairs]. They may be of any length: rows are read as they are needed.
class Tables {
public:
  Tables(const Fold &fold, const Rotation &rotation)
      : fold(fold), rotation(rotation), cosines(constantOf(rotation.cosines)), sines(constantOf(rotation.sines)),
        pairs(rotation.dims / 2) {
    if (!cosines || !sines)
      return;
    // The views are a graph's own numbers.
    const int64_t elements = cosines->elements(), toRow = rotation.cosines.strides[0],
                  toPair = rotation.cosines.strides[1];
    const auto isInside = [&](int64_t number) { return number >= 0 && number < elements; };
    int64_t last = 0;
    if (toRow < 1 || !isInside(rotation.cosines.offset) || !isInside(toPair) ||
        __builtin_mul_overflow(pairs - 1, toPair, &last) || !isInside(last) ||
        last >= elements - rotation.cosines.offset)
      return;
    rows = (elements - 1 - rotation.cosines.offset - last) / toRow + 1;
    // As a part of the factor that all have: what rounding to their type changes. Float32's are computed in float32.
    roundoff = std::max(roundoffOf16(cosines->type), 0x1p-22);
  }

  int64_t positions() const { return rows; }

  double scale() const { return rows < 2 ? 0 : row(*cosines, rotation.cosines, 0).at(0); }

  /// Angles at position 1, and better ones of what turns fast: from an angle at position p follows which of the angles
  /// at 2 p, equal but for whole turns, is meant. `errors`: relative ones.
  std::vector<float> frequencies(double scale, std::vector<double> &errors) const {
    std::vector<double> out;
    for (int64_t position = 1; position < rows; position *= 2) {
      const std::vector<double> x = row(*cosines, rotation.cosines, position);
      const std::vector<double> y = row(*sines, rotation.sines, position);
      errors.clear();
      for (size_t i = 0; i < size_t(pairs); i++) {
        const double angle = std::atan2(y[i] / scale, x[i] / scale), turn = 2 * std::acos(-1.0);
        if (position == 1)
          out.push_back(angle);
        else
          out[i] = (angle + turn * std::round((out[i] * double(position) - angle) / turn)) / double(position);
        errors.push_back(frequencyError + 4 * roundoff / std::max(1.0, out[i] * double(position)));
      }
    }
    return std::vector<float>(out.begin(), out.end());
  }

  bool are(const RopeSpec &rope) const {
    const size_t half = size_t(pairs);
    const std::vector<float> frequencies = ropeInverseFrequencies(rope);
    std::vector<float> ours(2 * half);
    for (int64_t position = 0; position < rows; position++) {
      if (position >= maxRopePositions)
        return false;
      ropeTableRows(rope, position, 1, ours.data());
      const std::vector<double> x = row(*cosines, rotation.cosines, position);
      const std::vector<double> y = row(*sines, rotation.sines, position);
      for (size_t i = 0; i < half; i++) {
        const double error = rope.cosSinScale * (roundoff + double(position) * frequencyError * double(frequencies[i]));
        if (!(std::abs(double(ours[i]) - x[i]) <= error) || !(std::abs(double(ours[half + i]) - y[i]) <= error))
          return false;
      }
    }
    return rows > 1;
  }

private:
  const Tensor *constantOf(const View &view) const {
    const auto found = fold.graph.constants.find(view.constant);
    return found == fold.graph.constants.end() ? nullptr : &found->second;
  }

  /// NaN where it cannot be read.
  std::vector<double> row(const Tensor &table, const View &view, int64_t position) const {
    const int64_t begin = view.offset + position * view.strides[0];
    std::vector<double> out;
    if (view.strides[1] == 1)
      out = fold.elementsOf(table, begin, pairs);
    else
      for (int64_t i = 0; i < pairs; i++)
        for (double element : fold.elementsOf(table, begin + i * view.strides[1], 1))
          out.push_back(element);
    out.resize(size_t(pairs), std::nan(""));
    return out;
  }

  const Fold &fold;
  const Rotation &rotation;
  const Tensor *cosines, *sines;
  int64_t pairs;
  int64_t rows = 0;
  double roundoff = 0;
};

} // namespace

/// The numbers themselves, where they can be angles of a table of ours.
static bool takeAsPublished(RopeSpec &rope, std::vector<float> frequencies) {
  rope.theta = RopeSpec().theta;
  rope.scaling = RopePublished{frequencies};
  return std::all_of(frequencies.begin(), frequencies.end(), [](float f) { return f >= 0 && f <= 1; });
}

Expected<RopeSpec> ropeOf(Fold &fold, const Rotation &rotation, const std::vector<RopeSpec> &stated) {
  RopeSpec rope;
  rope.dims = rotation.dims;
  rope.pairs = rotation.pairs;
  if (!rotation.frequencies.empty()) {
    const auto isRight = [](const RopeSpec &) { return true; };
    const std::vector<double> errors(rotation.frequencies.size(), frequencyError);
    if (FormulaFinder(rotation.frequencies, errors, isRight).find(rope, stated) ||
        takeAsPublished(rope, rotation.frequencies))
      return rope;
    return Error{fold.graph.path, "frequencies of the rotary embedding are not all of 0 to 1",
                 "export the model again"};
  }
  const Tables tables(fold, rotation);
  const auto isRight = [&](const RopeSpec &guess) { return tables.are(guess); };
  rope.cosSinScale = tables.scale();
  std::vector<double> errors;
  std::vector<float> frequencies;
  if (rope.cosSinScale > 0)
    frequencies = tables.frequencies(rope.cosSinScale, errors);
  if (!frequencies.empty()) {
    if (FormulaFinder(frequencies, std::move(errors), isRight).find(rope, stated))
      return rope;
    if (takeAsPublished(rope, frequencies) && tables.are(rope)) {
      rope.maxContext = tables.positions();
      return rope;
    }
  }
  return Error{fold.graph.path,
               "tables of the rotary embedding are not cosines and sines of positions times frequencies",
               "frequencies are 0 to 1, and all pairs have one factor"};
}

} // namespace k2c::onnx
