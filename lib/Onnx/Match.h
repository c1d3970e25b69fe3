//===- Match.h - parts of a decoder in the terms of a graph ---------------------===//
//
// A matcher takes the element of a value at indices it names and says what the value is: a linear layer of what, a norm
// of what. Contractions are opened with the indices put in, so that reshapes before and behind them are gone.
//
//   Match.cpp         what all share, linear layers, norms
//   MatchRotary.cpp   pairs that are turned by angles of their position
//   MatchAttention.cpp, MatchLatent.cpp, MatchMask.cpp   attentions
//   MatchFeedForward.cpp, MatchRouter.cpp   gated MLPs and experts
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_ONNX_MATCH_H
#define K2C_LIB_ONNX_MATCH_H

#include "Fold.h"
#include "k2c/Model/ModelSpec.h"
#include <array>

namespace k2c::onnx {

/// A tensor as a part of a constant: element (i, j, ..) lies at offset + i * strides[0] + j * strides[1] + .. of it, in
/// elements. Of a quantised one these are the weights that it stands for.
struct View {
  ValueId constant = noValue; ///< of quantised weights their numbers
  int64_t offset = 0;
  std::vector<int64_t> shape, strides;
  std::shared_ptr<const Quantised> quantised = nullptr; ///< null: the constant's elements are the tensor's
  bool operator==(const View &o) const {
    return constant == o.constant && offset == o.offset && shape == o.shape && strides == o.strides &&
           quantised == o.quantised;
  }
};

/// Rows that are a linear layer of others.
struct LinearLayer {
  View weight;              ///< [columns, depth], of experts [experts, columns, depth]
  std::optional<View> bias; ///< [columns]
  Term input{};             ///< at column variable(inputColumn, depth)
  int64_t depth = 0;
  std::optional<Term> expert; ///< which expert's weights they are
};

/// An RMS norm.
struct NormLayer {
  View weight; ///< [size]
  Term input{};
  int64_t size = 0;
  double eps = 0;
};

/// How pairs of a row's elements are turned.
struct Rotation {
  int64_t dims = 0; ///< elements that are turned
  RopePairs pairs = RopePairs::Half;
  std::vector<float> frequencies; ///< angle of a pair at position 1; empty: of tables
  View cosines, sines;            ///< [positions, dims / 2]
  /// Where the turned elements stand, of pairs' first and second ones: where they begin, and their distance. Rows that
  /// are multiplied with each other have the same.
  std::array<int64_t, 2> begins{}, steps{};
  bool operator==(const Rotation &o) const;
};

/// Rows whose elements are turned, or some of them, or none.
struct TurnedRows {
  Term rows{};       ///< before, at the element's variable; of those with a part that is not turned, the turned part
  double factor = 1; ///< of the turned part
  std::optional<Rotation> rotation;
  std::optional<Term> before; ///< what stands before the turned part, at the element's variable
  int64_t beforeSize = 0;
  double beforeFactor = 1;
  std::optional<double> behindFactor; ///< of what goes on behind the turned part; none: nothing does
};

/// What an attention's rows are projected by.
struct ProjectedRows {
  LinearLayer layer;             ///< columns are those of all heads
  std::optional<NormLayer> norm; ///< before the turning
  bool isNormOfHead = false;
  double scale = 1; ///< of the norm's rows
  double clip = 0;  ///< bound; 0: none
};

struct GqaLayer {
  GqaSpec spec;
  double scale = 1, turnedScale = 1; ///< of scores' parts that are not turned, of which there may be none, and others
  std::optional<Rotation> rotation;
  ProjectedRows query, key, value;
  LinearLayer output;
  Term input{}; ///< of query, key and value, at column columnAt
};

/// Latent attention. Its projections are whole matrices, [columns, depth].
struct MlaLayer {
  MlaSpec spec;
  double scale = 1, turnedScale = 1; ///< of scores' parts without a position, and of those that are turned
  Rotation rotation;
  std::optional<LinearLayer> queryLatent;
  std::optional<NormLayer> queryNorm;
  LinearLayer query, keyValueLatent, keyValue, output;
  NormLayer keyValueNorm;
  Term input{};
};

/// An attention, and the rows that it keeps.
struct AttentionLayer {
  std::variant<GqaLayer, MlaLayer> layer;
  Term input{};          ///< what is projected, at column columnAt
  Term keys{}, values{}; ///< of heads of queries, at (batchAt, headAt, keyAt, elementAt), past ones included
  Term key{};            ///< the variable that counts rows
};

/// down(act(gate x) * up x)
struct MlpLayer {
  LinearLayer gate, up, down; ///< of experts, with their index
  Activation activation = Activation::Silu;
  Term input{};
};

/// What chooses experts, and with what weights.
struct RouterLayer {
  LinearLayer logits;
  std::optional<View> bias; ///< [experts]; of the choice
  MoeSpec spec;             ///< all but widths
};

struct ExpertsLayer {
  MlpLayer experts; ///< whose weights are parts of one constant, by the expert's index
  RouterLayer router;
};

/// One expert of a graph that runs all of them, each with a weight that is 0 where it was not chosen.
struct OneExpert {
  int64_t expert = 0;
  MlpLayer mlp;
  Term weight{}; ///< were it chosen, at slot variable(expertAt, experts of a token)
  Term chosen{}; ///< the index that is compared with the expert's
  Term slot{};
};

/// Positions of the variables that matchers name.
constexpr int32_t batchAt = 0, rowAt = 1, columnAt = 2, headAt = 3, elementAt = 4, keyAt = 5, expertAt = 6;
/// Where a linear layer's input has its column, and first of those that are free for contractions that are opened.
constexpr int32_t freshAt = 24;

/// What an attention's rows are made of, before it is known what projects them.
struct Attended {
  int64_t heads = 0, valueWidth = 0, keyWidth = 0, window = 0;
  double scale = 1;
  Term query{}, key{}, value{}; ///< in variables row, head, key, element
  Term row{}, head{}, keyIndex{}, element{}, valueElement{};
};

class Matcher {
public:
  explicit Matcher(Fold &fold) : fold(fold), terms(fold.terms) {}

  // What all share.
  /// "expected a linear layer", with the place of the node nearest to `at`.
  Error mismatch(Term at, const std::string &expected) const;
  /// A body of an element of a leaf, the element's indices put in; `running` takes the place of what it runs over.
  Term opened(Term element, Term running, size_t body = 0);
  /// The same of a leaf that runs over nothing that its body names.
  Term opened(Term element) { return opened(element, Term(0)); }
  /// The element of the same leaf with another index on an axis.
  Term withIndex(Term element, size_t axis, Term index);
  /// Whether the term is an element of a constant, or of weights that constants are the numbers and scales of.
  bool isStored(Term term) const { return isElement(term, "constant") || isElement(term, "quantised"); }
  /// Whether the term is an element of a leaf of this op.
  bool isElement(Term term, const char *op) const;
  /// The term without leaves that stand for sums that several nodes read.
  Term unshared(Term term);
  /// Size of what an element's leaf runs over, of the contraction's first axis.
  std::optional<Term> runningSize(Term element);
  /// A variable that no term has yet.
  Term fresh(Term size) { return terms.variable(freshAt + freshCount++, size); }
  /// What a variable counts to; of a number, which stands for the only index, 1. None: that is not known.
  std::optional<int64_t> countOf(Term variable) const;
  bool mentions(Term term, Term variable);
  Term replaced(Term term, Term from, Term to);
  /// Factors of a product with their exponents, or the one that the term is.
  std::vector<Part> factors(Term term) const;
  /// Summands of a sum with their factors, or the one that the term is; `constant` takes the number.
  std::vector<Part> summands(Term term, double &constant) const;
  /// A constant's part: the term is an element of it whose indices are affine in `variables`, numbers otherwise.
  std::optional<View> view(Term term, const std::vector<Term> &variables);
  Term product(const std::vector<Part> &factors, double factor = 1);
  /// What is wrong with weights that are integers and scales in another form than quantised ones; none: they are not.
  std::optional<Error> quantised(const std::vector<Part> &weights);

  // Layers.
  /// A linear layer whose columns are counted by several variables, or by one; the strides of its weight are theirs and
  /// that of its depth.
  Expected<LinearLayer> linear(Term value, const std::vector<Term> &columns);
  /// `scale`: takes what multiplies the norm; without, nothing may.
  Expected<NormLayer> norm(Term value, Term index, double *scale = nullptr);

  // Attention.
  Expected<TurnedRows> turned(Term value, Term element, Term position);
  /// How far back a row sees, of what is added to its scores; 0: all rows before it, and itself.
  Expected<int64_t> window(Term mask, Term row, Term key);
  Expected<AttentionLayer> attention(Term output, Term column);

  // Feed-forward parts.
  Expected<MlpLayer> gatedMlp(Term value, Term column);
  Expected<ExpertsLayer> experts(Term value, Term column);
  Expected<OneExpert> oneExpert(Term value, Term column);
  /// What chooses the experts of a token, of the weights that they have.
  Expected<RouterLayer> router(Term weights, Term expert, Term slot);

  Fold &fold;
  Terms &terms;

private:
  struct Piece;
  struct TurnedSummand;
  /// Elements, and a number in place of those outside of a condition, or inside of it.
  struct Masked {
    std::optional<Term> condition; ///< none: the elements are all
    double outside = 0;
    Term inside{};
    bool isOutside = false; ///< the condition is that of the number
  };
  struct Choice {
    Masked masked;
    Term biased{}, scores{}; ///< with and without the bias
    std::optional<View> bias;
  };
  /// The groups chosen, as a "topk-indices" element at a slot, and the experts of one.
  struct Groups {
    Term best{}, slot{};
    int64_t width = 0;
  };
  std::vector<Piece> pieces(Term value, Term element);
  std::optional<TurnedSummand> turnedSummand(const Part &summand, Term position, Term pair);
  Expected<TurnedRows> turnedPair(const std::vector<Piece> &found, Term value, Term element, Term position);
  Expected<ProjectedRows> projected(Term rows, Term head, Term element);
  Expected<ExpertsLayer> expertsAt(Term value, Term slot, Term column);
  Status readScores(Term scores, Term expert, RouterLayer &out, Term at);
  bool isNeverBelowZero(const RouterLayer &router) const;
  Status readRouterLogits(Term logits, Term expert, RouterLayer &out);
  Status readChoice(Term choice, Term scores, Term expert, RouterLayer &out);
  Term chosenFrom(Term chosen, Term at);
  Masked withoutMask(Term term);
  Choice choiceOf(Term chosen, Term expert);
  std::optional<Groups> groupsOf(const Masked &masked, Term expert, int64_t experts);
  Status readGroups(const Masked &masked, Term choice, Term expert, RouterLayer &out);
  Term withoutBlindRows(Term rows, Term row);
  Term withoutNaN(Term term) const;
  Status readLogits(Term weights, Attended &out);
  Status readQueryLatent(const LinearLayer &queries, MlaLayer &out);
  bool readAngles(const TurnedSummand &cosine, const TurnedSummand &sine, Term pair, Term position, Rotation &out);
  Expected<Attended> attended(Term rows, int64_t depth);
  int64_t headsThatShare(Term rows, Term head);
  Expected<GqaLayer> grouped(const Attended &found, const TurnedRows &query, const TurnedRows &key);
  Expected<MlaLayer> latent(const Attended &found, const TurnedRows &query, const TurnedRows &key);

  int32_t freshCount = 0;
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_MATCH_H
