//===- Term.h - what an element of a tensor is, as a function of its indices ------===//
//
// Every tensor of a graph is a function of its indices, and a term is its value at them. Ops that move elements
// (Reshape, Transpose, Slice, Concat, Expand, Gather by computed indices) vanish: they only change indices.
//
//   q = Reshape(MatMul(x, w), [b, s, 8, 64]); y = Transpose(q, [0, 2, 1, 3])
//   y(b, h, s, d) = matmul(b, s, 64 h + d)
//
// Terms are canonical under the laws of real numbers: equal ones have the same number, whatever the order of operands
// and the spelling. A sum is a constant and distinct summands with factors, a product distinct factors with exponents;
// integers are polynomials, and remainders are written with floors. What cannot be written as a formula of its indices
// (a contraction, a softmax, the experts chosen) is a leaf, whose own definition is a list of terms; leaves of equal
// definitions are one. So a pattern is recognised by building what it must be and comparing numbers.
//
// Casts between floating-point types are no terms: a term says which model a graph is, not in which precision it runs.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_ONNX_TERM_H
#define K2C_LIB_ONNX_TERM_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace k2c::onnx {

/// Bounds of the work and of the terms of a pool: some 10 seconds, 1 GiB. 370,000 nodes take a third of them.
constexpr uint64_t maxSteps = uint64_t(1) << 27, maxTerms = uint64_t(1) << 23;

/// A term of a pool, by number.
enum class Term : int32_t {};
/// A leaf of a pool, by number.
enum class Leaf : int32_t {};

enum class TermKind : uint8_t {
  Number,
  Variable,    ///< an index: its position, and its size as a term
  Size,        ///< a size that is not known before a run: a symbol
  Element,     ///< of a leaf, at indices
  Sum,         ///< number + factors times parts
  Product,     ///< parts to the power of their factors
  Floor,       ///< of the first part divided by the second, integers
  Select,      ///< the second part where the first is not 0, else the third
  AtLeastZero, ///< 1 or 0; of an integer
  EqualsZero,  ///< 1 or 0
  Negative,    ///< 1 or 0; of a real number
  And,
  Or,
  Call ///< of a function of real numbers
};

enum class Function : int32_t {
  Exp,
  Log,
  Sin,
  Cos,
  Tanh,
  Sigmoid,
  Erf,
  Abs,
  Sign,
  Round,
  Ceil,
  FloorReal,
  IsNaN,
  Max,
  Min,
  Power,
  Truncate,
  Relu
};

/// A part of a term: a summand with its factor, a factor with its exponent; elsewhere 1.
struct Part {
  Term term;
  double factor = 1;
  bool operator==(const Part &o) const { return term == o.term && factor == o.factor; }
};

/// What a leaf is. Bodies are terms in variables at positions 0 to rank - 1, the indices of its elements, and behind
/// them those that it runs over itself.
struct LeafDefinition {
  std::string op;               ///< "constant", "input", "sum" (a contraction), "softmax", an op's name
  std::vector<Term> bodies;     ///< its operands
  std::vector<int64_t> numbers; ///< a ValueId, an axis, a count
  std::vector<Term> shape;      ///< of its elements
  bool isInteger = false;       ///< its elements are integers
  std::optional<int64_t> min;   ///< no element is below; none: unknown
  int32_t node = -1;            ///< of the graph, for messages; not part of what it is
};

/// Makes terms, each once.
class Terms {
public:
  Terms();

  // What terms are.
  TermKind kind(Term term) const { return node(term).kind; }
  /// Of a number its value, of a sum its constant.
  double number(Term term) const { return node(term).number; }
  /// Of a variable its position, of a size its symbol.
  int32_t tag(Term term) const { return node(term).tag; }
  Leaf leaf(Term element) const { return Leaf(node(element).tag); }
  Function function(Term call) const { return Function(node(call).tag); }
  std::vector<Part> parts(Term term) const;
  Term part(Term term, size_t index) const { return storage[node(term).begin + index].term; }
  size_t partCount(Term term) const { return node(term).count; }
  bool isNumber(Term term) const { return kind(term) == TermKind::Number; }
  std::optional<int64_t> asInteger(Term term) const;
  bool isInteger(Term term) const { return node(term).isInteger; }
  /// One more than the highest position of its variables.
  int32_t variables(Term term) const { return node(term).variables; }
  /// How deep terms lie in each other in it; leaves' bodies do not count.
  int32_t depth(Term term) const { return node(term).depth; }
  /// Whether making terms took more than formulas of a graph ever do. What is made from then on means nothing.
  bool isExhausted() const { return steps > maxSteps || nodes.size() > maxTerms; }
  const LeafDefinition &definition(Leaf leaf) const { return leaves[size_t(leaf)]; }
  /// The terms that a term is made of, without their factors; of an element its indices.
  std::vector<Term> operands(Term term) const;
  /// The variables in terms, by position.
  std::vector<Term> variablesOf(const std::vector<Term> &in) const;
  /// As a formula, for messages and tests; a long one is cut behind `most` characters.
  std::string text(Term term, size_t max = 400) const;

  // Making them.
  Term number(double value);
  /// An index at a position of a tensor whose dimension has this size.
  Term variable(int32_t position, Term size);
  /// The size that a symbol names, at least `least`.
  Term size(const std::string &symbol, int64_t min = 1);
  const std::string &symbol(Term size) const { return symbols[size_t(tag(size))]; }
  Leaf leafOf(LeafDefinition definition);
  Term element(Leaf leaf, const std::vector<Term> &indices);
  Term sum(double constant, std::vector<Part> summands);
  Term add(Term a, Term b) { return sum(0, {{a, 1}, {b, 1}}); }
  Term subtract(Term a, Term b) { return sum(0, {{a, 1}, {b, -1}}); }
  Term scale(Term term, double factor) { return sum(0, {{term, factor}}); }
  Term plus(Term term, double constant) { return sum(constant, {{term, 1}}); }
  Term multiply(Term a, Term b);
  Term power(Term base, double exponent);
  /// Of integers; the divisor is positive.
  Term floorDivide(Term term, Term divisor);
  Term modulo(Term term, Term divisor);
  Term select(Term condition, Term yes, Term no);
  Term atLeastZero(Term integer);
  Term equalsZero(Term term);
  Term negative(Term real);
  Term negate(Term condition);
  Term both(Term a, Term b) { return logical(TermKind::And, a, b); }
  Term either(Term a, Term b) { return logical(TermKind::Or, a, b); }
  Term call(Function function, const std::vector<Term> &arguments);

  /// The term with the variables at positions 0, 1, .. replaced; those behind stay.
  Term substitute(Term term, const std::vector<Term> &byPosition);
  /// The term rebuilt, what `replace` gives in place of a term it knows; leaves' bodies are not entered.
  Term rewrite(Term term, const std::function<std::optional<Term>(Term)> &replace);
  /// Calls `see` for the term and all that it is made of, each once; leaves' bodies are not entered.
  void visit(Term term, const std::function<void(Term)> &see);

  /// The element of a constant at these indices, if it is known; it becomes a number.
  std::function<std::optional<double>(Leaf constant, const std::vector<int64_t> &indices)> constants;

  /// A number, a factor and a term without one: term = factor * rest. The rest of a number is 1.
  std::pair<double, Term> splitFactor(Term term);
  /// Whether an integer term is never negative, whatever its variables and sizes are. False: that cannot be shown.
  bool isNeverNegative(Term term) { return minOf(term, 0).value_or(-1) >= 0; }

private:
  struct Node {
    TermKind kind = TermKind::Number;
    bool isInteger = false;
    int32_t tag = 0;
    int32_t variables = 0;
    int32_t depth = 0;
    double number = 0;
    uint32_t begin = 0, count = 0;
  };
  const Node &node(Term term) const { return nodes[size_t(term)]; }
  Term make(TermKind kind, int32_t tag, double number, const std::vector<Part> &parts, bool isInteger);
  Term product(std::vector<Part> factors);
  Term logical(TermKind kind, Term a, Term b);
  Term distribute(Term sum, Term other);
  void collect(Term term, double factor, double &constant, std::vector<Part> &out) const;
  std::optional<Term> indexThatIsZero(Term condition) const;
  Term branchWhere(Term assumed, Term branch);
  bool isTurned(Term condition) const;
  bool isCondition(Term term) const;
  Term rebuild(Term term, std::vector<Part> &parts);
  Term rewritten(Term term, const std::function<std::optional<Term>(Term)> &replace, uint64_t rewrite);
  Term elementOf(Leaf leaf, const std::vector<Part> &indices);
  std::optional<double> minOf(Term term, int depth);
  Part leadingSummand(Term sum) const;
  Term takeMultiples(Term &term, Term divisor);
  std::optional<double> floorByBounds(Term term, Term divisor);
  Term bareFloor(Term term, Term divisor);
  std::optional<Term> maxOf(Term term, int depth);
  std::optional<Term> maxOfElement(Term element);
  Term withHighestSubtracted(Term sum, int depth, bool &changed);
  void grow();
  static size_t hashOf(const Node &key, const Part *parts);

  std::vector<Node> nodes;
  std::vector<Part> storage;
  /// A term by its hash, at the hash or the next free slot behind it.
  struct Slot {
    uint32_t hash = 0, term = 0; ///< of the hash its upper half; one more than the term, 0: none
  };
  std::vector<Slot> slots;
  std::vector<LeafDefinition> leaves;
  std::unordered_map<std::string, Leaf> leafByKey;
  void write(Term term, size_t max, std::string &out) const;
  struct Around {
    const char *before, *between, *behind;
  };
  void writeParts(Term term, const Around &around, size_t max, std::string &out) const;

  std::unordered_map<std::string, int32_t> symbolNumbers;
  std::vector<std::string> symbols;
  /// What a term was rewritten to, by the number of the rewrite.
  struct Remembered {
    uint64_t rewrite = 0;
    Term result{};
  };
  std::vector<Remembered> remembered;
  uint64_t rewrites = 0;
  uint64_t steps = 0;
  std::vector<int64_t> minSizes;
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_TERM_H
