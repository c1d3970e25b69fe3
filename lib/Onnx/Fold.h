//===- Fold.h - the values of a graph as terms ---------------------------------===//
//
// Walks the nodes once and writes every value's element as a term of its indices (Term.h). Batch, sequence and past are
// symbols. What a program of ours never has is settled at once: no token is padding, so that an attention mask is 1
// everywhere, and token s of a step is at position past + s.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_ONNX_FOLD_H
#define K2C_LIB_ONNX_FOLD_H

#include "Elements.h"
#include "Quantised.h"
#include "Term.h"
#include <tuple>

namespace k2c::onnx {

/// Element type, shape and element of a value. `element` is in variables at positions 0 to rank - 1, whose sizes are
/// those of `shape`.
struct Folded {
  ElementType type = ElementType::None;
  std::vector<Term> shape;
  Term element{};
};

/// What the inputs of a graph are for.
struct InputRoles {
  ValueId tokens = noValue;       ///< ids, [batch, sequence]
  std::vector<ValueId> masks;     ///< 1 where a token is; [batch, past + sequence]
  std::vector<ValueId> positions; ///< [batch, sequence]
  std::vector<ValueId> caches;    ///< keys and values of past tokens
};

/// Bound of the constants whose elements become numbers where their indices are numbers.
constexpr int64_t maxFoldedElements = int64_t(1) << 20;

class Fold {
public:
  Fold(const Graph &graph, InputRoles roles);

  /// Folds all nodes. Error: an op that is not understood, with its node.
  Status run();

  const Folded *find(ValueId value) const;
  const Graph &graph;
  const InputRoles roles;
  Terms terms;
  Term batch, sequence, past;

  /// The value of a constant's element, at its index in the order of storage; none: it is not read.
  std::optional<double> constantAt(ValueId value, int64_t index);
  /// Elements [first, first + count) of a tensor, read from its file; none where they are not inside of it, cannot be
  /// read, or are of a type that is not read so.
  std::vector<double> elementsOf(const Tensor &tensor, int64_t first, int64_t count) const;
  /// The number of an element in the order of storage of its leaf, whose sizes are numbers.
  Term flatIndex(Term element);
  /// How the elements of a leaf "quantised" are stored; null: it is another leaf.
  std::shared_ptr<const Quantised> quantisedOf(Leaf leaf) const;
  /// "node 'layers.0/q' (MatMul of ai.onnx 20)".
  std::string place(const Node &node) const;

private:
  using Result = Expected<std::vector<Folded>>;
  /// What lowers an op; so many of its first inputs are always there.
  struct Lowering {
    Result (Fold::*function)(const Node &);
    size_t inputs = 1;
  };
  static constexpr size_t allInputs = SIZE_MAX;
  using Table = std::unordered_map<std::string, Lowering>;
  static const Table &movingOps();
  static const Table &elementWiseOps();
  static const Table &otherOps();
  static const Lowering *lowering(const std::string &op);

  void countConsumers();
  Status addInputs();
  void addConstants();
  std::optional<double> uniformValue(ValueId value, const Tensor &tensor);
  bool isSmall(const std::vector<Term> &shape) const;
  Folded bounded(const Node &node, Folded value);
  Result lower(const Node &node);
  std::string unread(ValueId value) const;

  // Reading a node.
  bool has(const Node &node, size_t input) const;
  const Folded &in(const Node &node, size_t input) const { return *values[size_t(node.inputs[input])]; }
  int64_t integer(const Node &node, const char *name, int64_t otherwise) const;
  bool flag(const Node &node, const char *name, bool otherwise) const;
  double real(const Node &node, const char *name, double otherwise) const;
  std::string word(const Node &node, const char *name, const char *otherwise) const;
  std::optional<std::vector<int64_t>> integers(const Node &node, const char *name) const;
  const Attribute *attribute(const Node &node, const char *name, Attribute::Kind kind) const;
  /// The elements of a tensor of rank 0 or 1 with a length that is known.
  std::optional<std::vector<Term>> list(const Folded &value);
  std::optional<std::vector<int64_t>> numbers(const Folded &value);
  /// Attribute "axis", from 0.
  Expected<int64_t> axisOf(const Node &node, int64_t otherwise, size_t rank) const;
  /// Axes of an attribute or of an input, from 0; none: neither is there.
  Expected<std::optional<std::vector<int64_t>>> axes(const Node &node, size_t input, int64_t rank);
  Error refuse(const Node &node, const std::string &message) const;
  /// "[batch, sequence, 64]".
  std::string text(const std::vector<Term> &shape) const;

  // Making values.
  std::vector<Term> variables(const std::vector<Term> &shape);
  Term at(const Folded &value, const std::vector<Term> &indices);
  Expected<std::vector<Term>> commonShape(const Node &node, size_t inputs);
  std::optional<std::vector<Term>> broadcast(const std::vector<std::vector<Term>> &shapes);
  /// The element of a value at the indices of a larger shape that it is repeated to.
  Term spread(const Folded &value, const std::vector<Term> &shape);
  std::optional<std::vector<Term>> reindex(const std::vector<Term> &from, const std::vector<Term> &to);
  Term total(const std::vector<Term> &shape, size_t begin, size_t end);
  /// Of sizes: a number that keeps their order, with symbols large and apart.
  double sample(Term size);
  Folded reshaped(const Folded &value, const std::vector<Term> &shape, const std::vector<Term> &indices);
  Folded leafValue(const Node &node, ElementType type, std::vector<Term> shape, LeafDefinition definition);
  /// The sum of `body` over variables at firstReduced and behind, of these sizes.
  Folded contraction(const Node &node, ElementType type, std::vector<Term> shape, Term body,
                     const std::vector<Term> &running);
  Folded reduced(const Node &node, const char *op, const Folded &value, const std::vector<int64_t> &axes, bool keep);
  Term reduceVariable(int count, Term size) { return terms.variable(firstReduced + count, size); }
  bool isFloat(const Folded &value) const;
  /// A value that several nodes read, as a leaf of its own; others as they are.
  Folded shared(const Node &node, size_t output, const Folded &value);
  std::optional<Term> combined(const Node &node, Term a, Term b, bool areWhole);
  bool wraps(const Node &node) const;
  Term isEqual(Term a, Term b);
  Term extreme(bool isMost, Term a, Term b);
  Expected<Term> fromEnd(const Node &node, Term index, Term size);
  Expected<Folded> gathered(const Node &node, const Folded &value, const Folded &which, int64_t axis);
  std::optional<Term> clamped(Term at, Term size, Term min, Term max);
  Expected<std::pair<Term, Term>> sliced(const Node &node, Term size, Term start, Term end, int64_t step);
  Expected<std::vector<int64_t>> partSizes(const Node &node, Term whole);
  std::vector<Folded> partsOf(const Folded &value, size_t axis, const std::vector<int64_t> &sizes);
  std::optional<Term> unified(Term a, Term b) const;
  int64_t readersOf(const Node &node, size_t output) const;

  // Ops that move elements.
  Result identity(const Node &node);
  Result dropout(const Node &node);
  Result shapeOf(const Node &node);
  Result sizeOf(const Node &node);
  Result squeeze(const Node &node);
  Result unsqueeze(const Node &node);
  Result reshape(const Node &node);
  Result flatten(const Node &node);
  Result transpose(const Node &node);
  Result expand(const Node &node);
  Result tile(const Node &node);
  Result slice(const Node &node);
  Result split(const Node &node);
  Result splitToSequence(const Node &node);
  Result sequenceAt(const Node &node);
  Result concat(const Node &node);
  Result gather(const Node &node);
  Result gatherNd(const Node &node);
  Result gatherElements(const Node &node);
  Result range(const Node &node);
  Result constantOfShape(const Node &node);
  Result trilu(const Node &node);
  // Element-wise ops.
  Result cast(const Node &node);
  Result where(const Node &node);
  Result arithmetic(const Node &node);
  Result compare(const Node &node);
  Result logical(const Node &node);
  Result unary(const Node &node);
  Result isInfinite(const Node &node);
  Result clip(const Node &node);
  // Ops over an axis.
  Result reduce(const Node &node);
  Result softmax(const Node &node);
  Result topK(const Node &node);
  Result cumulativeSum(const Node &node);
  Result product(const Node &node, Folded a, Folded b);
  Result matMul(const Node &node);
  Result fusedMatMul(const Node &node);
  Result fusedGemm(const Node &node);
  Result gemm(const Node &node);
  // Ops that write elements into others.
  Result scatterElements(const Node &node);
  Result scatterNd(const Node &node);
  // Ops with a meaning of their own.
  Result rmsNorm(const Node &node);
  Result skipRmsNorm(const Node &node);
  Result gelu(const Node &node);
  Result nonZero(const Node &node);
  Result oneHot(const Node &node);

  struct Scatter;
  /// A leaf by the coordinates of places in place of its axis that counts them.
  struct ByCoordinates {
    Leaf leaf{};
    std::vector<size_t> kept; ///< coordinates that it depends on
  };
  std::optional<std::pair<Term, Term>> inverse(Term index, Term row, Term at);
  void solve(Scatter &scatter);
  Term summed(const Node &node, const Scatter &scatter);
  bool writesOnce(const Scatter &scatter) const;
  Expected<Term> scattered(const Node &node, Scatter scatter);
  bool overCoordinates(Scatter &scatter);
  std::optional<Term> byCoordinates(Term term, Term row, Leaf place, const std::vector<Term> &at);
  std::optional<ByCoordinates> leafByCoordinates(Leaf leaf, size_t axis, Leaf place);
  ByCoordinates placed(LeafDefinition definition, size_t axis, const std::vector<Term> &shape,
                       const std::vector<Term> &coordinates);

  // Attention.
  Result rotaryEmbedding(const Node &node);
  Result standardAttention(const Node &node);
  Result groupQueryAttention(const Node &node);
  Result multiHeadAttention(const Node &node);

  // Quantised weights and experts.
  Result matMulNBits(const Node &node);
  Result dequantizeLinear(const Node &node);
  Result gatherBlockQuantized(const Node &node);
  Result mixtureOfExperts(const Node &node);
  Result quantisedExperts(const Node &node);

  /// Inputs that are rows of weights in blocks along their columns.
  struct Blocked {
    size_t weights, scales, zeros; ///< numbers of inputs
    int64_t bits;
    std::vector<Term> rows;
    int64_t depth, block; ///< columns of a row, of a block
    bool zerosAlongRows;  ///< zero points of rows that are one block lie in bytes together
  };
  std::optional<ValueId> constantOf(const Node &node, size_t input);
  Expected<Folded> nibbles(const Node &node, size_t input);
  Expected<Folded> quantised(const Node &node, size_t input, int64_t bits);
  std::optional<Folded> inShape(const Folded &value, const std::vector<Term> &shape);
  Expected<Folded> asRows(const Node &node, const Folded &value, std::vector<Term> rows, int64_t columns,
                          const char *what);
  Expected<Folded> zerosOf(const Node &node, const Blocked &of, int64_t blocks);
  Expected<Folded> blockedRows(const Node &node, const Blocked &of);
  std::optional<Term> perBlock(const Folded &value, const std::vector<Term> &shape, int64_t axis, int64_t block);
  Status checkBlock(const Node &node, int64_t block) const;
  Status checkScales(const Node &node, size_t input) const;
  /// (number - zero point) * scale, at the variables of `shape`; in blocks of so many, 0: in none.
  Folded weight(ElementType type, const std::vector<Term> &shape, Term number, Term zero, Term scale, int64_t block);
  std::optional<QuantisedPart> partOf(Term element, const std::vector<Term> &shape);
  std::optional<Quantised> partsOf(const std::vector<Term> &shape, Term number, Term zero, Term scale);

  struct ExpertLayer;
  struct Experts;
  Status checkExperts(const Node &node) const;
  Status addTokens(const Node &node, Experts &experts);
  Term layerBody(const ExpertLayer &layer, Term e, Term row, Term column, Term input);
  Expected<Folded> activated(const Node &node, const Experts &experts, const Folded &chosen, Term columns);
  std::pair<Folded, Folded> routed(const Node &node, const Experts &experts);
  Result mixed(const Node &node, const Experts &experts);

  struct Heads;
  struct AttentionParts;
  struct AttentionResult;
  Expected<Heads> headsOf(const Node &node, const Folded &value, int64_t heads);
  Folded ofHeads(ElementType type, Term batch, const Heads &heads, size_t rank);
  Heads behind(const Folded &cache, const Heads &fresh);
  AttentionResult attention(const Node &node, ElementType type, const AttentionParts &parts);
  Folded joinHeads(const Folded &value);
  Status addCaches(const Node &node, size_t keys, size_t values, AttentionParts &parts);
  Status checkBatch(const Node &node, const std::vector<size_t> &inputs) const;
  Status checkHeads(const Node &node, const AttentionParts &parts) const;
  Status addMask(const Node &node, const Folded &mask, AttentionParts &parts);
  Status addBias(const Node &node, size_t input, AttentionParts &parts);
  void addPositions(const Node &node, Term queries, std::optional<Term> cached, AttentionParts &parts);
  Status checkAttributes(const Node &node, const std::vector<const char *> &known) const;
  Status checkGrouped(const Node &node);
  Expected<AttentionParts> groupedHeads(const Node &node);
  Status prepareGrouped(const Node &node, AttentionParts &parts);
  Expected<Heads> normedHeads(const Node &node, const Heads &heads, size_t input, double epsilon);
  Expected<Heads> turnedHeads(const Node &node, const Heads &heads);
  Folded withBias(const Folded &value, const Folded &bias, Term first);
  Term rotated(const std::function<Term(Term)> &x, Term d, int64_t width, bool isInterleaved,
               const std::function<Term(Term column)> &cosine, const std::function<Term(Term column)> &sine);

  std::vector<std::optional<Folded>> values;
  std::vector<int32_t> consumers;
  mutable std::string wrongAttribute; ///< what is wrong with an attribute of the node that is lowered
  std::unordered_map<ValueId, std::vector<double>> decoded;
  std::unordered_map<Leaf, std::shared_ptr<const Quantised>> quantisedWeights;
  std::unordered_map<ValueId, std::vector<Folded>> sequences; ///< values that are several tensors
  std::map<std::tuple<Leaf, size_t, Leaf>, std::optional<ByCoordinates>> leavesByCoordinates;
  int leafDepth = 0;
  std::unordered_map<int32_t, Leaf> places; ///< by the size that counts them: where a condition holds

public:
  /// The position of the first variable that a contraction runs over.
  static constexpr int32_t firstReduced = 12;
  /// More than the positions of all variables of lowerings.
  static constexpr int32_t maxPositions = 64;

private:
  /// The position of the row of places while its coordinates are put in.
  static constexpr int32_t rowOfPlaces = 60;
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_FOLD_H
