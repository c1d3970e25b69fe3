//===- KernelDesc.h - What a kernel computes --------------------------------===//
//
// One description, three readings: evaluate (scalar oracle, the orders of numerics N1-N7), count (flops and bytes) and
// emit (MLIR for a target). A description fixes shapes, element types and orders; row counts are run-time values read
// from the step; HOW it is computed (tiles, vectors, prefetch, the layout of weights) is a TileConfig, which
// may change no bit.
//
// A kernel is `int32_t k(k2rt_ir_worker *, void *const *args)`; args holds the operands, then the results, in the order
// of `operands(desc)`. It works on grid items [worker->begin, worker->end); any partition of the grid gives the same
// bits. Activations are row-major with a row stride in elements; a column offset is part of the pointer. Row counts and
// row forms come from worker->step; `step` is an operand where a kernel reads more of it. A layer ordinal is an integer
// cast to a pointer. A plane operand points to the layer's first page. Behind these, an attention whose tile splits it
// (TileConfig.h) takes the buffer of partials and 0, or 1 in its second launch.
// A weight operand that is a matrix lies as the tile's WeightLayout says.
//
// Arithmetic is f32 with one rounding to nearest even an operation, under DAZ and FTZ (N6); exp, sigmoid and silu are
// those of k2rt/polynomials.h (N7). bf16 operands widen exactly; "rounded" to bf16 is to nearest even, subnormal
// results becoming zeros of their sign. max(a, b) is a > b ? a : b.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_KERNELDESC_H
#define K2C_KERNELS_KERNELDESC_H

#include "k2c/Kernels/Effect.h"
#include "k2c/Kernels/ExchangeDesc.h"
#include "k2c/Support/DType.h"
#include "k2c/Support/Elementwise.h"
#include "k2c/Support/Scoring.h"
#include "k2rt/numerics.h"
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace k2c {

/// The matrices W[matrix][n][k] that a kernel multiplies with. How their bytes lie in memory is a WeightLayout
/// (WeightLayout.h), which the target chooses with the tile.
///
/// Block-scaled matrices are f8E4M3FN with f32 scales: a weight is the f32 product of its element and its scale,
/// rounded once, and `blockColumns` output columns x `blockRows` elements of k share a scale. Blocks begin anew with
/// each matrix, and with the up columns.
struct Matrix {
  DType type = DType::BF16;
  int64_t count = 1;                       ///< experts or heads
  int64_t n = 0;                           ///< output columns of one matrix
  int64_t k = 0;                           ///< input columns
  int64_t parts = 1;                       ///< 2: the first half of n is gate, the second up
  int64_t blockColumns = 0, blockRows = 0; ///< 0: not block-scaled
  bool isScaled() const { return blockColumns > 0; }
  /// Elements of k that multiply together: pairs of bf16 (N6).
  int64_t kStep() const { return type == DType::BF16 ? 2 : 1; }
  /// Output columns of a part.
  int64_t partColumns() const { return n / parts; }
};

/// N1: `leaves` FMA chains of `leafLength(k, leaves)` elements, the last ones shorter or empty, each from +0 in
/// ascending k: acc = fma(x[k], w[k], acc); merged in pairs: leaf 0 + leaf 1, leaf 2 + leaf 3, ..., then pairs of
/// these. An empty leaf is +0 and is added like any other. When both factors are bf16, a chain takes pairs, the odd
/// element first: acc = fma(x[2j], w[2j], fma(x[2j+1], w[2j+1], acc)), an element past k being 0 (N6).
struct Contraction {
  int64_t k = 0;
  int64_t leaves = 1;
};

//===----------------------------------------------------------------------===//
// Kernel bodies. The comment of each names its arguments in order: operands -> results.
//===----------------------------------------------------------------------===//

/// Looks up the row of each token id. Arguments: table row-major [vocab][hidden], step -> y. Ids < 0 name sample
/// -1-id of the step before. Out-of-range id: status 1.
struct EmbedDesc {
  int64_t vocab = 0, hidden = 0;
  DType table = DType::BF16;
  Rows y;
};

/// The ids that EmbedDesc looks up, as rows. Arguments: step -> ids i32 [rows][1]. A sample that the step before does
/// not have: status 1.
struct TokenIdsDesc {};

/// Looks up the row of each id. Arguments: ids i32 [rows][1], table row-major [vocab][width of y] -> y. Out-of-range
/// id: status 1.
struct LookupDesc {
  int64_t vocab = 0;
  DType table = DType::BF16;
  Rows y;
};

/// Divides each head of a row by its root mean square (heads = 1: the whole row). Arguments: x [rows][heads][width],
/// weight[width] -> y = weight * (x * (1 / sqrt(sum / width + eps))), all in f32, rounded once to y.type. The sum of
/// squares has 64 interleaved FMA chains (element i in chain i mod 64), merged by halving: chain c += chain c + 32, 16,
/// 8, 4, 2, 1. A reduction without output columns would otherwise be one chain as long as the row. sum / width and
/// 1 / sqrt(..) are f32 divisions; width and eps are rounded to f32.
struct RmsNormDesc {
  Rows x, y;
  double eps = 1e-6;
  DType weight = DType::BF16;
  int64_t heads = 1; ///< x.width = heads * width
  int64_t width() const { return x.width / heads; }
};

/// Multiplies rows by a matrix. Arguments: x, [norm weight], w, [bias], [slot weights], [residual], [permutation] -> y:
/// y[r][n] = sum_k x[r][k] * W[n][k], on which `epilogue` works before it is stored: the steps of the ops that are
/// joined, bit for bit (N2). Without steps the sum is rounded to y.type. With `normEps` > 0 the rows are RMS-normalised
/// (and rounded to x.type) on the way in, exactly as RmsNormDesc does. An element of y is made of the sum of a column
/// in each part of the matrix (gate and up). Grouped: rows are slots sorted by expert, matrix = expert, `permutation`
/// is PermutationDesc's result and the slot weights are RoutingDesc's [token][topK], read at the route of the slot.
/// slotsPerToken = topK. `w` is a table of an address for each expert, where its panels begin; slots of an expert whose
/// address is null: status 2.
struct LinearDesc {
  /// What the epilogue takes, by its number there: the f32 sum (gated: of gate and of up), bias[matrix][n] of the
  /// column (gated: of gate and of up), the slot's weight (N5; grouped linears only), the residual row.
  enum Input : int64_t { Sum, UpSum, Bias, UpBias, SlotWeight, Residual };
  static constexpr int64_t epilogueInputs = Residual + 1;

  Rows x, y;
  Matrix w;
  Contraction order;
  double normEps = 0;
  DType normWeight = DType::BF16;
  Elementwise epilogue;
  DType biasType = DType::BF16;
  Rows residual;
  bool grouped = false;
  int64_t slotsPerToken = 1;
  bool takes(Input input) const { return epilogue.takesInput(input); }
};

/// Multiplies each head of the rows by its own matrix (absorb_query, expand_output). Arguments: x [rows][heads][k],
/// w (matrix = head) -> y [rows][heads][n].
struct HeadLinearDesc {
  Rows x, y;
  int64_t heads = 0;
  int64_t xHeadStride = 0; ///< elements from head to head in x; y is dense
  Matrix w;
  Contraction order;
  FormFilter rows = FormFilter::All;
};

/// Rotates `count` elements of each head from `first`; the others are copied. Arguments: x [rows][heads][headDim],
/// table [positions][2][count / 2] (cos, sin) f32, step -> y. A pair (a, b) becomes
/// (fma(a, cos, -(b * sin)), fma(b, cos, a * sin)). y may be x. A position outside the table: status 1.
struct RotaryDesc {
  Rows x, y;
  int64_t heads = 1, headDim = 0, first = 0, count = 0, positions = 0;
  bool interleaved = false; ///< pairs (2j, 2j + 1); else (j, j + count / 2)
};

/// Writes each row at step.append_slots[group], rounded. Arguments: x_0 .. x_n-1, plane_0 .. plane_n-1, step ->
/// nothing.
struct AppendDesc {
  std::vector<Rows> x;
  std::vector<DType> planes; ///< plane i is [pages * 64][x[i].width]
  int64_t group = 0;
};

/// Shared by the attention kernels. N3 for one query at position p and one head; the keys are 0 .. p of its sequence,
/// as stored, key t in slot block_tables[group][sequence row][t / 64] * 64 + t % 64. No other key takes part. p is the
/// position in the cache group, seq_len[group][sequence row] + row - seq_begin[sequence row]: what the group does not
/// hold of a sequence is not there for attention.
///   score    s_t = contraction(q, k_t) * scale, the contraction over all elements of the key (N1), scale as f32
///   block    of the keys [64 b, 64 b + 64) up to p, ascending, on (m, l, o), which start a partial as (-inf, 0, 0):
///              m' = max(m, max_t s_t)    a = exp(m - m')    p_t = exp(s_t - m')    l = l * a    o = o * a
///   each     in ascending t: l = l + p_t, o = fma(p_t, v_t, o); or, where queries and cache are bf16, in pairs:
///   pairs    p_t is rounded to bf16, and keys 2 i, 2 i + 1 of a block multiply as N6 says, the odd one first:
///              o = fma(p_2i, v_2i, fma(p_2i+1, v_2i+1, o)), l likewise with 1 for v; past the last key p and v are 0
///   partial  the blocks of [j C, (j + 1) C), C = softmaxRestart(p)
///   merge    in ascending j; the first partial is the total (M, L, O), then (m, l, o) joins it as
///              m' = max(M, m)   a = exp(M - m')   b = exp(m - m')   L = fma(l, b, L * a)   O = fma(o, b, O * a)
///   result   O * (1 / L), rounded once. l, o and merges stay f32; without pairs, so does p_t, and v_t widens to f32.
struct AttentionShape {
  int64_t heads = 0;  ///< query heads
  double scale = 1.0; ///< multiplies the dot product, rounded to f32
  int64_t group = 0;  ///< cache group
  /// One more operand after step, the layer ordinal. capture_max_logit[layer][head], when not null, becomes the larger
  /// of itself and every s_t of the rows; workers share it, so the update is atomic. The order does not matter.
  bool maxLogit = false;
  DType cache = DType::F32;
};

/// Attention of grouped queries: query head h reads kv head h / (heads / kvHeads). Arguments: q [rows][heads][keyDim],
/// k plane [slot][kvHeads][keyDim], v plane [slot][kvHeads][valueDim], step, [layer] -> o [rows][heads][valueDim].
struct GqaAttentionDesc {
  AttentionShape shape;
  int64_t kvHeads = 0, keyDim = 0, valueDim = 0;
  Rows q, o;
};

/// Latent attention in the absorbed form: a key is the latent, then the rope elements (one N1 contraction); a value is
/// the latent. Arguments: qLatent [rows][heads][latent], qRope [rows][heads][rope] (strided), latent plane, rope plane,
/// step, [layer] -> o [rows][heads][latent].
struct AbsorbedAttentionDesc {
  AttentionShape shape;
  int64_t latent = 0, rope = 0;
  Rows qLatent, qRope, o;
  int64_t qRopeHeadStride = 0;
  FormFilter rows = FormFilter::Absorbed;
};

/// Latent attention in the expanded form: keys and values are expanded from the stored latents, each element an N1
/// contraction over the latent, rounded to q.type; a key is nope, then rope (one N1 contraction). Arguments:
/// q [rows][heads][nope + rope], latent plane, rope plane, uk (matrix = head, n = nope, k = latent), uv (n = value),
/// step, [layer] -> o [rows][heads][value].
/// The expansion takes pairs (N6) when cache and weights are bf16, the scores when q and cache are.
struct ExpandedAttentionDesc {
  AttentionShape shape;
  int64_t latent = 0, nope = 0, rope = 0, value = 0;
  Rows q, o;
  Matrix uk, uv;
  FormFilter rows = FormFilter::Expanded;
};

/// On which nodes the experts of a row may be, by the experts of each node's slots (k2rt/placement.h): a node has an
/// expert if one of its slots does, and several nodes may have it.
struct NodeBound {
  int64_t nodes = 1; ///< 1: nothing is bound
  int64_t slots = 0; ///< of a node
  int64_t most = 0;  ///< nodes of a row; 0: all
  double penalty = 0;

  bool isBound() const { return nodes > 1; }
};

/// Chooses the experts of each row, by falling weight. Arguments: logits [rows][experts] f32, [bias f32], step, layer
/// ordinal, [held: the expert of each slot, nodes in a row] -> experts i32 [rows][topK], weights f32 [rows][topK].
/// Everywhere, larger comes first, NaN last, ties by the lower index.
///   score    sigmoid(x); or exp(x - max) / sum, the sum in ascending expert from +0
///   choice   score + bias (without bias: the score); it chooses only
///   groups   experts / groups consecutive experts each; a group counts the sum of its groupBest (1 or 2) best choices
///            (best + second); the best topkGroups groups stay
///   bound    a node counts the sum, in falling choice from +0, of its n best choices in the groups that stay, or of
///            all where it has fewer; nodes that have none come last. With a penalty, the best node by n = ceil(topK /
///            nodes) is the row's home, and choices of experts that it has not fall by the penalty. With `most`, the
///            best `most` nodes by n = ceil(topK / most) stay, by the choices as they now are
///   weights  of the topK best choices in the groups and on the nodes that stay: w = score; normalize: w / (sum +
///            normalizerEps), the sum in falling choice, without penalty, from +0; then * scale (rounded to f32)
/// A row of step.forced_experts[layer] whose first entry is not K2RT_ROUTE_FREE is forced: these experts in place of
/// the chosen; a negative entry is no expert (result -1, weight 0, last). A forced weight that is not NaN is used as it
/// is. An entry >= experts: status 1. What results is copied to step.capture_experts and capture_weights [layer][row].
/// The layer ordinal counts MoE layers.
struct RoutingDesc {
  Rows logits;
  static constexpr float normalizerEps = 1e-20f; ///< DeepSeek-V3's router
  int64_t experts = 0, topK = 0, groups = 1, topkGroups = 1;
  int64_t groupBest = 2;
  Scoring scoring = Scoring::Sigmoid;
  bool bias = false, normalize = true;
  double scale = 1.0;
  NodeBound bound;
};

/// Sorts the routes by expert, stably, by counting. Arguments: experts i32 [rows][topK] -> permutation: int32
/// offsets[experts + 1], route of slot [rows * topK], slot of route [rows * topK]; route = token * topK + k. Expert e
/// owns the slots [offsets[e], offsets[e + 1]). A route without expert (-1) has slot -1; slots from offsets[experts] on
/// are undefined.
struct PermutationDesc {
  int64_t experts = 0, topK = 0;
};

/// Copies the rows of tokens into the order of a permutation. Arguments: x, permutation -> slot rows:
/// y[slot] = x[route of slot / topK].
struct PermuteDesc {
  Rows x, y;
  int64_t experts = 0, topK = 0;
};

/// Adds the rows of slots to those of their tokens. Arguments: slot rows (destroyed), permutation,
/// experts [rows][topK] -> y: N5's tree with `leaves` leaves of experts / leaves ids, sums in ascending expert inside a
/// leaf, adjacent subtrees merged (left + right), absent ones skipped; every add is rounded to y.type = x.type. A token
/// without experts is 0.
struct UnpermuteDesc {
  Rows x, y;
  int64_t experts = 0, topK = 0, leaves = 1;
};

/// Computes `list` of the elements in each place of a row. Arguments: input_0 .. input_n-1 -> y. The parts of a gated
/// row are inputs of their own. y may be an input. Slot rows: all of them, those without expert included.
struct RowwiseDesc {
  std::vector<Rows> inputs;
  Elementwise list;
  Rows y;
  int64_t slotsPerToken = 1;
};

/// Copies the rows that step.outputs names. Arguments: x, step -> y.
struct OutputRowsDesc {
  Rows x, y;
};

/// Copies rows into step.capture_hidden[layer] as f32 when that is not null. Arguments: x, step, layer ordinal ->
/// nothing.
struct CaptureDesc {
  Rows x;
};

/// The best of each block of columns: the id of its largest logit, where NaN is none, -0 is 0 and the lowest id is
/// first among equals; -1 where all are NaN. Arguments: logits f32 [rows][width] -> best i32 [rows][blocks()].
struct BlockArgmaxDesc {
  Rows logits;
  int64_t block = 0; ///< columns; the last block of a row may have fewer
  int64_t blocks() const { return (logits.width + block - 1) / block; }
};

/// The same of a row, of what its blocks have left, ascending ids and -1, as its sample. Arguments:
/// best i32 [rows][blocks], logits f32 [rows][width] that they name, step -> nothing; step.samples gets an id or -1 a
/// row.
struct GreedySampleDesc {
  Rows logits;
  int64_t blocks = 0;
};

using KernelBody =
    std::variant<EmbedDesc, RmsNormDesc, LinearDesc, HeadLinearDesc, RotaryDesc, AppendDesc, GqaAttentionDesc,
                 AbsorbedAttentionDesc, ExpandedAttentionDesc, RoutingDesc, PermutationDesc, PermuteDesc, UnpermuteDesc,
                 RowwiseDesc, OutputRowsDesc, CaptureDesc, LocateDesc, RoutePlanDesc, PackDesc, UnpackDesc,
                 ReturnPlanDesc, ReduceSubtreesDesc, MergeSubtreesDesc, CombineDesc, TokenIdsDesc, LookupDesc,
                 SharePlanDesc, CloseGapsDesc, ShareReturnDesc, JoinColumnsDesc, PartPlanDesc, AddPartsDesc,
                 BlockArgmaxDesc, GreedySampleDesc>;

/// A kernel: a readable name (not part of the key) and what it computes.
struct KernelDesc {
  std::string name;
  KernelBody body;
};

/// One argument of a kernel. A permutation, which is PermutationDesc's result and others' operand, is `elements` int32
/// and then rows.width more a row; counts are `elements` and no rows. Places, Held and Subtrees are parts of a layer's
/// table of experts (k2rt/placement.h): for whom, its reader says.
struct Operand {
  enum class Role : uint8_t {
    Activation,
    Weight,
    Table,
    Plane,
    Step,
    Permutation,
    Layer,
    Result,
    Places,
    Held,
    Subtrees
  };
  Operand(std::string name, Role role, DType type, Effect effect)
      : name(std::move(name)), role(role), effect(std::move(effect)), type(type) {}
  std::string name;
  Role role;
  Effect effect;
  Rows rows;            ///< Activation, Result, Permutation; Plane: a row is a slot
  Matrix matrix;        ///< Weight that is multiplied with
  int64_t elements = 0; ///< of all but rows and matrices
  int64_t group = 0;    ///< Plane: cache group
  DType type;
  bool isMatrix() const { return matrix.n > 0; }
};

/// The arguments in order: operands, then results.
std::vector<Operand> operands(const KernelDesc &desc);

/// Items of a launch: ceil(rows / rowsPerItem) * itemsPerBlock, or itemsPerBlock when rowsPerItem is 0.
struct Grid {
  RowSpace space = RowSpace::Token;
  int64_t rowsPerItem = 0;
  int64_t itemsPerBlock = 1;
  int64_t slotsPerToken = 1; ///< Slot has token_rows * slotsPerToken rows
};

/// Canonical text of everything that decides the bits and the arguments; equal text = the same kernel. Hash input.
std::string canonicalKey(const KernelDesc &desc);

/// 32 hexadecimal digits of canonicalKey's XXH3-128: the kernel's name in object caches and manifests.
std::string kernelHash(const KernelDesc &desc);

/// The symbol of a kernel in a program: the same wherever the same kernel is used, so that objects are shared.
std::string kernelSymbol(const KernelDesc &desc);

/// N1: L = the largest power of two <= k / 512, within 1..8.
int64_t leafCount(int64_t k);
/// N1: ceil(k / leaves) rounded up to 128.
int64_t leafLength(int64_t k, int64_t leaves);
/// Whether `parts` parts of k have equally many whole leaves each.
bool leavesComeOutEven(int64_t k, int64_t leaves, int64_t parts);
/// N3: keys of a block of the online softmax, and tokens of a cache page.
constexpr int64_t softmaxBlock = K2RT_PAGE_TOKENS;
/// N3: C(p) = max(1024, the next power of two >= (p + 1) / 16).
int64_t softmaxRestart(int64_t position);
/// N3: partials of a query at `position`; at most maxPartials.
int64_t softmaxPartials(int64_t position);
constexpr int64_t maxPartials = 16;
/// N5: 2^m leaves of experts / 2^m experts, m maximal, at most 7.
int64_t combineLeaves(int64_t experts);

} // namespace k2c

#endif // K2C_KERNELS_KERNELDESC_H
