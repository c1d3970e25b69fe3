//===- ModelSpec.h - what a checkpoint's model is -------------------------===//
//
// The architecture-neutral description of a model: sizes, attention, rotary
// embedding, feed-forward layers, and the weight families with the names of
// their tensors. It is read from config.json through a families file
// (models/families), which is data; nothing below knows a model by name.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_MODEL_MODELSPEC_H
#define K2C_MODEL_MODELSPEC_H

#include "base/Error.h"
#include "k2c/Support/DType.h"
#include "k2c/Support/IndexSet.h"
#include "k2c/Support/Scoring.h"
#include "k2c/Support/Units.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace k2c {

/// Layer indices [begin, end).
struct LayerRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const LayerRange &o) const { return begin == o.begin && end == o.end; }
};

/// What a layer's feed-forward part is: one MLP, or routed experts.
enum class FeedForward { Dense, Moe };

/// Where a layer's RMS norms stand.
enum class LayerNorms {
  Before, ///< before attention and before the feed-forward part
  Around  ///< and behind each of them, before its rows are added to the residual stream
};

/// The names of a model's first attention and rotary table, the sections of the families file.
inline constexpr const char *firstAttention = "attention";
inline constexpr const char *firstRope = "rope";

/// What a layer is made of. Layers of one kind are one function of the program.
struct LayerKind {
  std::string name; ///< in the families file, and of the function
  FeedForward feedForward = FeedForward::Dense;
  std::string attention = firstAttention; ///< of ModelSpec::attentions
  std::string rope = firstRope;           ///< of ModelSpec::ropes; "": queries and keys are not turned
  LayerNorms norms = LayerNorms::Before;
  int64_t cacheGroup = 0; ///< layers whose caches have equal rows and lengths are of one group
  bool operator==(const LayerKind &o) const {
    return std::tie(name, feedForward, attention, rope, norms, cacheGroup) ==
           std::tie(o.name, o.feedForward, o.attention, o.rope, o.norms, o.cacheGroup);
  }
  bool operator!=(const LayerKind &o) const { return !(*this == o); }
};

/// Consecutive layers whose kinds take turns: layer `range.begin` + i is of kind number i modulo their count.
struct LayerRun {
  std::vector<LayerKind> kinds; ///< one where all layers are alike
  LayerRange range;
  const LayerKind &kindOf(int64_t layer) const { return kinds[size_t(layer - range.begin) % kinds.size()]; }
};

/// Consecutive layers of one kind.
struct LayersOfKind {
  LayerKind kind;
  LayerRange range;
};

/// RMS norms of queries and keys before they are rotated.
enum class QueryKeyNorm {
  None,
  Row, ///< all heads of a token together
  Head ///< each head on its own
};

/// Grouped-query attention; kvHeads == heads is multi-head attention. Per token the cache holds a key and a value of
/// kvHeads * headDim elements each.
struct GqaSpec {
  int64_t heads = 0;       ///< of queries; a multiple of kvHeads
  int64_t kvHeads = 0;     ///< of keys and values
  int64_t headDim = 0;     ///< elements of a query, key or value of one head
  bool qkvBias = false;    ///< the projections of queries, keys and values add a bias
  bool outputBias = false; ///< the output projection does
  QueryKeyNorm norm = QueryKeyNorm::None;
  double clip = 0;    ///< bound of queries, keys and values after their norms; 0: none
  int64_t window = 0; ///< keys that a query sees at most, its own included; 0: all
};

/// A small attention that chooses the keys of a token (DeepSeek V3.2). Per token the cache also holds one key of width
/// `dim`.
struct IndexerSpec {
  int64_t heads = 0; ///< of its queries; all read one key
  int64_t dim = 0;   ///< elements of a query of one head, and of the key
  int64_t topK = 0;  ///< keys that a token attends to
};

/// Multi-head latent attention. Per token the cache holds a latent of width
/// `latent` and one rotated key of width `rope` shared by all heads.
struct MlaSpec {
  int64_t heads = 0;
  int64_t queryLatent = 0;     ///< width of the queries' latent; 0: queries are projected directly
  int64_t latent = 0;          ///< width of the latent of keys and values
  int64_t nope = 0;            ///< width of a head's part without position
  int64_t rope = 0;            ///< width of a head's rotated part
  int64_t value = 0;           ///< width of a head's value
  double latentNormEps = 1e-6; ///< of both latent norms
  bool bias = false;           ///< q_a, kv_a and output projections add a bias
  std::optional<IndexerSpec> indexer;
};

using AttentionSpec = std::variant<GqaSpec, MlaSpec>;

/// How a head's vector is cut into rotated pairs.
enum class RopePairs {
  Half,       ///< (j, j + dims/2)
  Interleaved ///< (2j, 2j + 1)
};

/// Angle of a pair at position p: p / theta^(2 j / dims).
struct RopeUnscaled {};
/// Positions are divided by `factor`.
struct RopeLinear {
  double factor = 1;
};
/// Unscaled up to Rope::maxContext; k2c compiles no program beyond it.
struct RopeDynamic {
  double factor = 1;
};
/// YaRN: pairs that turn more than `betaFast` times in the original context keep their angle, those that turn less than
/// `betaSlow` times are divided by `factor`, between them a linear ramp.
struct RopeYarn {
  double factor = 1;
  double betaFast = 32;
  double betaSlow = 1;
  int64_t originalContext = 0; ///< tokens the model was first trained on
  bool truncate = true;        ///< ramp ends rounded to whole dimensions
};
/// Llama 3: as YaRN by wavelength: above originalContext / lowFrequencyFactor divided by `factor`, below
/// originalContext / highFrequencyFactor kept, between them blended.
struct RopeLlama3 {
  double factor = 1;
  double lowFrequencyFactor = 1;
  double highFrequencyFactor = 4;
  int64_t originalContext = 0; ///< tokens the model was first trained on
};
/// Angles that are none of these formulas, of a model whose file has them as numbers. Rope::theta is not read.
struct RopePublished {
  std::vector<float> frequencies; ///< angle of each pair at position 1, 0 to 1
};
using RopeScaling = std::variant<RopeUnscaled, RopeLinear, RopeDynamic, RopeYarn, RopeLlama3, RopePublished>;

/// The rotary embedding of queries and keys.
struct RopeSpec {
  double theta = 10000; ///< base of the angles' powers
  int64_t dims = 0;     ///< rotated width of a head, even
  RopePairs pairs = RopePairs::Half;
  RopeScaling scaling;
  double attentionScale = 1; ///< multiplies the softmax scale (mscale squared)
  double cosSinScale = 1;    ///< multiplies cos and sin
  int64_t maxContext = 0;    ///< positions the table is valid for; 0: any
};

/// Of the gate of an MLP.
enum class Activation { Silu, Gelu, Relu };

/// A gated MLP of width `inter`: down(act(gate x) * up x).
struct MlpSpec {
  int64_t inter = 0;
  Activation activation = Activation::Silu;
  bool bias = false;
};

/// What ranks a group of experts.
enum class GroupScore { Top2Sum, Max };

/// A routed feed-forward layer with an optional shared expert.
struct MoeSpec {
  int64_t experts = 0;                ///< routed ones of a layer
  int64_t topK = 0;                   ///< routed experts of a token
  int64_t groups = 1;                 ///< equal groups of consecutive experts
  int64_t topGroups = 1;              ///< groups that stay in the choice
  int64_t inter = 0;                  ///< width of a routed expert
  int64_t sharedInter = 0;            ///< width of the shared expert; 0: none
  Scoring scoring = Scoring::Softmax; ///< of the router's logits
  GroupScore groupScore = GroupScore::Max;
  bool correctionBias = false; ///< a bias that chooses experts, not weights
  bool normalize = false;      ///< weights of the chosen experts sum to 1
  double normalizeEps = 0;     ///< added to that sum
  double scale = 1;            ///< multiplies the weights
  Activation activation = Activation::Silu;
};

/// Storage of a matrix in blocks with one f32 scale each: w = q * scale. The scale of element (i, j) of tensor "x" is
/// element (i / rows, j / columns) of tensor "x_scale_inv" ("inverse" for who quantised: it is multiplied).
inline constexpr const char *scaleSuffix = "_scale_inv";
struct BlockScales {
  DType stored = DType::F8E4M3; ///< element type of q
  int64_t rows = 128;           ///< of a block
  int64_t columns = 128;        ///< of a block
};

/// Storage of a matrix in 4-bit E2M1 values with one power-of-two scale byte for each `block` along its rows (MXFP4).
struct MicroScales {
  int64_t block = 32; ///< values with one scale
};

/// Tensors of the checkpoint that play one role, over layers and experts.
/// Its logical shape is [alternatives, shape...] when it has alternatives.
struct WeightFamily {
  std::string id;                         ///< the role: "q_a", "experts_gate_up", ...
  std::string pattern;                    ///< with {layer}, {expert} and {gate_proj|up_proj}
  std::vector<LayerRange> layers;         ///< empty: one for the whole model
  int64_t experts = 0;                    ///< 0: not per expert
  std::vector<std::string> alternatives;  ///< the words of {a|b}
  std::vector<int64_t> shape;             ///< of one tensor of the checkpoint
  DType dtype = DType::BF16;              ///< logical element type; f32 when stored quantised (the type of q * scale)
  std::optional<BlockScales> blocks;      ///< stored quantised
  std::optional<MicroScales> microScales; ///< stored quantised, in the last dimension
  bool takesBlocks = false;               ///< what FP8 checkpoints of the family quantise
  bool takesMicroScales = false;          ///< what MXFP4 checkpoints of the family quantise
  bool isLookup = false;                  ///< a table of which a token reads a row and multiplies nothing
  bool isParameter = true;                ///< false: a buffer, not counted as a parameter
  std::string place;                      ///< "families/x.yaml:12:5"

  /// Name of one tensor; indices a pattern does not have are ignored.
  std::string tensorName(int64_t layer = 0, int64_t expert = 0, size_t alternative = 0) const;
  /// Calls `visit` with the name of every tensor: by layer, by expert, by alternative; stops at a failure.
  Status visitTensors(const std::function<Status(const std::string &)> &visit) const;
  /// Whether a layer of that index in the checkpoint has its own; false for families of the whole model.
  bool hasLayer(int64_t layer) const;
  /// Checkpoint indices of its layers, ascending.
  std::vector<int64_t> layerIndices() const;
  /// Layers in the family (1 when it is not per layer).
  int64_t layerCount() const;
  /// Elements of one tensor of the checkpoint.
  int64_t elements() const;
  /// Tensors of the checkpoint in one layer, all experts.
  int64_t tensorsOfLayer() const;
  /// Tensors of the checkpoint.
  int64_t tensorCount() const { return layerCount() * tensorsOfLayer(); }
  /// Bytes as stored, scales included.
  Bytes storedBytes() const;
};

/// Tensors that a checkpoint may hold and a program does not read.
struct IgnoredTensors {
  std::string pattern;  ///< with {layer} and a trailing *
  LayerRange layers;    ///< values of {layer}
  std::string onlyWith; ///< a pattern; this tensor must exist as well, or ""
};

/// Weights that a source stores as few bits and scales, and a program reads as f32.
struct WidenedWeights {
  std::string format;       ///< "4-bit weights in blocks of 32"
  std::string place;        ///< the first of their tensors: "model.onnx: tensor 'q'"
  int64_t tensors = 0;      ///< of the source
  int64_t storedBytes = 0;  ///< of numbers, scales and zero points
  int64_t widenedBytes = 0; ///< of the same as f32
};

/// Where a field of the spec was read.
struct ConfigPlace {
  std::string file;
  std::string key; ///< "rope_scaling.factor"
  int line = 0;    ///< from 1
  int column = 0;  ///< from 1
};

/// What a checkpoint with a tiktoken.model leaves to its program: the file has
/// ranks of byte pairs only.
struct TiktokenSpec {
  std::vector<std::string> patterns; ///< alternatives of the regex that finds words; empty: not known
  int64_t reserved = 0;              ///< ids behind the ranks that are special tokens
};

/// A model as its config.json and its families file say: owned values, independent of any file or checkpoint.
struct ModelSpec {
  std::string name;      ///< of the checkpoint folder
  std::string family;    ///< name of the families file
  std::string modelType; ///< as in config.json

  int64_t hidden = 0;          ///< elements of a token's hidden state
  int64_t vocab = 0;           ///< rows of the embedding, and of the logits of a token
  int64_t maxPosition = 0;     ///< tokens of the longest sequence
  double normEps = 0;          ///< of all RMS norms but the latents'
  bool tiedEmbeddings = false; ///< logits use the embedding matrix

  std::vector<LayerRun> layers; ///< in order, without gaps from 0
  /// By name; those that layers have, of one variant, and of latent attention one.
  std::map<std::string, AttentionSpec> attentions;
  std::map<std::string, RopeSpec> ropes; ///< by name
  std::optional<MlpSpec> mlp;            ///< of dense layers
  std::optional<MoeSpec> moe;            ///< of moe layers
  /// The first layers read the whole prompt once (encoder-decoder models); 0: none.
  int64_t encoderLayers = 0;
  /// Multi-token prediction: modules of one more moe layer and `mtpWeights` each.
  int64_t mtpLayers = 0;

  std::vector<int64_t> eos;   ///< ids that end a text; may be empty
  std::optional<int64_t> bos; ///< id that begins one
  TiktokenSpec tiktoken;

  DType storage = DType::BF16;             ///< the config's; families hold the real ones
  std::optional<BlockScales> quantization; ///< how the checkpoint stores what its families file says is quantised
  std::optional<MicroScales> microScales;  ///< likewise
  /// Modules that `quantization` leaves alone, as published: a tensor belongs to module "a.b" when "a.b" is the first
  /// or the last words of its name without ".weight".
  std::vector<std::string> unquantizedModules;
  std::vector<WeightFamily> weights;
  std::vector<WeightFamily> mtpWeights; ///< of one module, beside those of its layer
  std::vector<WidenedWeights> widened;  ///< by format; their families are of f32
  std::vector<std::string> narrowed;    ///< ids of families in bf16 that the source stores as f32
  std::vector<IgnoredTensors> ignoredTensors;
  std::vector<std::string> ignoredKeys;      ///< that --ignore-key skipped
  std::map<std::string, ConfigPlace> places; ///< by families-file field name

  /// All layers, those of an encoder included, multi-token prediction's not.
  int64_t layerCount() const;
  /// The layers in the longest ranges of one kind, ascending.
  std::vector<LayersOfKind> layersByKind() const;
  /// Checkpoint indices of the layers of such kinds, ascending, in as many ranges whatever the number of turns.
  IndexSet layersOf(const std::function<bool(const LayerKind &)> &isSuch) const;
  IndexSet layersOf(FeedForward feedForward) const;
  /// The attention of a model whose attention is latent, else null.
  const MlaSpec *latentAttention() const;
  /// Checkpoint indices of the moe layers.
  std::vector<int64_t> moeLayers() const { return membersOf(layersOf(FeedForward::Moe)); }
  /// Factor of q.k before the softmax in layers of that kind: width of a key ^ -1/2, times the rotary embedding's own.
  double softmaxScale(const LayerKind &kind) const;
  /// The family of a role, or null.
  const WeightFamily *find(const std::string &id) const;
};

/// Bytes of all families as stored.
Bytes storedBytes(const ModelSpec &spec);

/// What a description is read for. Counting needs less than compiling: every family can be planned, those listed in
/// models/families/compile.yaml can be compiled; planning passes over keys that it does not know.
enum class LoadPurpose { Compile, Plan };

/// How forgiving a load is.
struct LoadOptions {
  /// Unknown keys to skip: "key", or "rope_scaling.key" for a nested one.
  std::vector<std::string> ignoreKeys = {};
  LoadPurpose purpose = LoadPurpose::Compile;
};

/// Reads a checkpoint folder or a config.json. generation_config.json beside it
/// overrides the end-of-sequence ids. Every unknown, missing or contradictory
/// field is an Error at its line. Weights are not looked at.
Expected<ModelSpec> loadModelSpec(const std::string &path, const LoadOptions &options = {});

/// What a model in a folder is called: org/name for a snapshot in the cache of Hugging Face
/// (models--org--name/snapshots/COMMIT), else the folder's name; printable, because plans and manifests carry it.
std::string nameOfFolder(const std::string &folder);

/// As loadModelSpec, from the text of a config.json; `file` names it in errors.
Expected<ModelSpec> parseModelSpec(std::string text, const std::string &file, const LoadOptions &options = {});

/// The model_type values that can be loaded for a purpose, sorted.
std::vector<std::string> knownModelTypes(LoadPurpose purpose = LoadPurpose::Compile);

/// The family of specs that are read from a graph (lib/Onnx) and not from a config.json: all that it has compiles.
inline constexpr const char *onnxFamily = "onnx";

/// Whether the family is one that compiles (models/families/compile.yaml), or onnxFamily.
bool canCompile(const ModelSpec &spec);

/// Folders of models/configs, sorted.
std::vector<std::string> publishedModels();

/// A published configuration by the name of its folder, read for planning. Letters and digits count ("kimi_k2" is
/// kimi-k2), and the beginning or end of a name when only one begins or ends so ("olmoe", "v3"); or by the hub's name
/// of it or of a variant ("deepseek-ai/DeepSeek-V3-0324"). Error: none or several.
Expected<ModelSpec> loadPublishedModel(const std::string &name);
/// Whether `name` is org/name of the Hugging Face hub, and a published configuration or a variant of one.
bool isPublishedOnHub(const std::string &name);

} // namespace k2c

#endif // K2C_MODEL_MODELSPEC_H
