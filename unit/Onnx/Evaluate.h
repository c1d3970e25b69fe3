//===- Evaluate.h - terms at numbers --------------------------------------------------===//
//
// What a term is worth where its variables and sizes are numbers: constants are read, inputs asked for, and leaves
// evaluated by their definitions, each element once. It says what Fold's lowerings mean, for small graphs.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_ONNX_EVALUATE_H
#define K2C_UNIT_ONNX_EVALUATE_H

#include "Fold.h"

namespace k2c::onnx {

/// Bound of the elements of one leaf, and of the steps of one evaluation.
constexpr int64_t maxEvaluatedElements = int64_t(1) << 24, maxEvaluatedSteps = int64_t(1) << 32;

class Evaluate {
public:
  /// Element `index`, in the order of storage, of an input of the graph.
  using Input = std::function<double(ValueId input, int64_t index)>;

  /// `sizes`: of symbols, by their names; those of inputs that are not named are "?input.axis". `most`: bound of the
  /// steps of all that is evaluated.
  Evaluate(Fold &fold, std::unordered_map<std::string, int64_t> sizes, Input input, int64_t max = maxEvaluatedSteps);

  /// A size as a number. Error: a symbol that is not given, or it is negative.
  Expected<int64_t> size(Term size);
  /// All elements of a value, in the order of storage. Error: it has too many, or takes too long.
  Expected<std::vector<double>> elements(const Folded &value);

private:
  /// Indices by position. Terms' values are remembered under its stamp.
  struct Point {
    std::vector<double> at;
    uint64_t stamp = 0;
  };
  /// What is known of a leaf's elements.
  struct Elements {
    std::vector<int64_t> shape;
    std::vector<Term> running; ///< the variables that it runs over
    std::vector<double> values;
    std::vector<bool> isKnown;
  };
  struct Memory {
    uint64_t stamp = 0;
    double value = 0;
  };

  Point point(const std::vector<int64_t> &indices);
  void move(Point &point) { point.stamp = ++stamps; }
  double value(Term term, const Point &at);
  double computed(Term term, const Point &at);
  double called(Term call, const Point &at);
  double element(Leaf leaf, const std::vector<double> &indices);
  Elements *prepared(Leaf leaf);
  double stored(Leaf leaf, int64_t index);
  double evaluated(Leaf leaf, const Elements &elements, const std::vector<int64_t> &indices);
  double reduced(Leaf leaf, const Elements &elements, Point &at);
  double scattered(Leaf leaf, const Elements &elements, Point &at);
  void evaluateAlong(Leaf leaf, Elements &elements, std::vector<int64_t> indices);
  void forEach(const Elements &elements, Point &at, const std::function<void()> &visit);
  double fail(const std::string &message);

  Fold &fold;
  Terms &terms;
  std::unordered_map<std::string, int64_t> sizes;
  Input input;
  const int64_t max;
  std::vector<std::unique_ptr<Elements>> leaves;
  std::vector<Memory> memory;
  uint64_t stamps = 0;
  int64_t steps = 0;
  int depth = 0;
  std::string failure;
};

} // namespace k2c::onnx

#endif // K2C_UNIT_ONNX_EVALUATE_H
