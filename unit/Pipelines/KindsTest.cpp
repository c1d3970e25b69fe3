//===- KindsTest.cpp - kinds of layers with attentions and tables of their own ----===//
//
// A family whose kinds differ in all that a kind names: the sizes of attention, the rotary table, the norms, the cache
// group. Its config.json goes from the families file to a program; what that computes of a prompt and of a token behind
// it stands beside the same written out in C++, in double.
//
//===----------------------------------------------------------------------===//
#include "ReadConfig.h"
#include "TestProgram.h"
#include "WeightMaps.h"
#include "dialects/Mem/Mem.h"
#include "k2c/Frontend/ImportModel.h"
#include "k2c/Planner/Planner.h"
#include <cmath>

using namespace k2c;
using test::hidden;
using test::vocab;

namespace {

constexpr int64_t layers = 6, inter = 12, heads = 4, tokens = 4; // three of a prompt, one behind it
constexpr double theta = 10000, localTheta = 20, eps = 1e-5;

constexpr const char *familyText = R"(
family: kinds
model_types: [kinds]
architectures: [Kinds]
config:
  hidden_size: {field: hidden, kind: size}
  num_hidden_layers: {field: layers, kind: size}
  vocab_size: {field: vocab, kind: size}
  intermediate_size: {field: inter, kind: size}
  num_attention_heads: {field: heads, kind: size}
  num_key_value_heads: {field: kv_heads, kind: size}
  head_dim: {field: head_dim, kind: size}
  local_head_dim: {field: local_head_dim, kind: size}
  local_rope_theta: {field: local_theta, kind: number}
  rms_norm_eps: {field: norm_eps, kind: number}
  max_position_embeddings: {field: max_position, kind: size}
  hidden_act: {field: activation, kind: word, one_of: [silu]}
  tie_word_embeddings: {field: tied, kind: flag}
rope: {dims: head_dim, pairs: half}
ropes:
  local_rope: {theta: local_theta, dims: local_head_dim / 2}
attention: {kind: gqa, qkv_bias: false, output_bias: false, query_key_norm: none}
attentions:
  local: {kv_heads: 1, head_dim: local_head_dim}
mlp: {bias: false}
kinds:
  local: {feed_forward: dense, attention: local, rope: local_rope, norms: around}
  plain: {feed_forward: dense, rope: none}
layers:
  - {kind: dense, from: 0, to: 4, every: 2, otherwise: local}
  - {kind: plain, from: 4, to: layers}
weights:
  - {id: embed, tensors: embed, shape: [vocab, hidden]}
  - {id: attention_norm, tensors: "{layer}.attention_norm", over: all, shape: [hidden]}
  - {id: q, tensors: "{layer}.q", over: attention, shape: [heads * head_dim, hidden]}
  - {id: k, tensors: "{layer}.k", over: attention, shape: [kv_heads * head_dim, hidden]}
  - {id: v, tensors: "{layer}.v", over: attention, shape: [kv_heads * head_dim, hidden]}
  - {id: o, tensors: "{layer}.o", over: attention, shape: [hidden, heads * head_dim]}
  - {id: local_q, tensors: "{layer}.q", over: local, shape: [heads * local_head_dim, hidden]}
  - {id: local_k, tensors: "{layer}.k", over: local, shape: [local_head_dim, hidden]}
  - {id: local_v, tensors: "{layer}.v", over: local, shape: [local_head_dim, hidden]}
  - {id: local_o, tensors: "{layer}.o", over: local, shape: [hidden, heads * local_head_dim]}
  - {id: attention_out_norm, tensors: "{layer}.attention_out_norm", over: local, shape: [hidden]}
  - {id: mlp_norm, tensors: "{layer}.mlp_norm", over: all, shape: [hidden]}
  - {id: gate_up, tensors: "{layer}.{gate|up}", over: dense, shape: [inter, hidden]}
  - {id: down, tensors: "{layer}.down", over: dense, shape: [hidden, inter]}
  - {id: mlp_out_norm, tensors: "{layer}.mlp_out_norm", over: local, shape: [hidden]}
  - {id: final_norm, tensors: final_norm, shape: [hidden]}
  - {id: head, tensors: head, shape: [vocab, hidden]}
)";

constexpr const char *configText = R"({"model_type": "kinds", "hidden_size": 8, "num_hidden_layers": 6,
  "vocab_size": 16, "intermediate_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4,
  "local_head_dim": 8, "rope_theta": 10000, "local_rope_theta": 20, "rms_norm_eps": 1e-5,
  "max_position_embeddings": 64, "hidden_act": "silu", "tie_word_embeddings": false, "torch_dtype": "float32"})";

ModelSpec specOfKinds() {
  Expected<Family> family = parseFamily(familyText, "kinds.yaml");
  EXPECT_TRUE(family) << family.error().text();
  ConfigFile config(*parseJson(configText, "config.json"), {});
  Expected<ModelSpec> spec = readConfig(config, *family, {}, LoadPurpose::Compile);
  EXPECT_TRUE(spec) << spec.error().text();
  return spec ? *spec : ModelSpec();
}

ImportOptions smallLimits() {
  ImportOptions options;
  options.stepTokens = 4;
  options.maxSequences = 2;
  options.outputRows = 2;
  return options;
}

/// Within 1 of 0, of norms 1; `layer` counts those of the family.
float weight(llvm::StringRef family, int64_t layer, int64_t n, int64_t k) {
  uint64_t bits = 0x9e3779b97f4a7c15u * uint64_t(layer + 1);
  for (char c : family)
    bits = (bits ^ uint64_t(c)) * 0x100000001b3u;
  bits = (bits ^ uint64_t(n * 64 + k)) * 0xff51afd7ed558ccdu;
  const float value = float(int64_t((bits ^ bits >> 33) >> 40 & 0xffff) - 0x8000) / float(0x8000);
  return family.ends_with("_norm") ? 1 + value / 4 : value;
}

//===----------------------------------------------------------------------===//
// The same, written out
//===----------------------------------------------------------------------===//

using Row = std::vector<double>;

Row linear(llvm::StringRef family, int64_t layer, int64_t n, const Row &x) {
  Row y(n);
  for (int64_t i = 0; i < n; ++i)
    for (size_t k = 0; k < x.size(); ++k)
      y[i] += double(weight(family, layer, i, int64_t(k))) * x[k];
  return y;
}

Row norm(llvm::StringRef family, int64_t layer, const Row &x) {
  double squares = 0;
  for (double each : x)
    squares += each * each;
  Row y = x;
  for (size_t k = 0; k < x.size(); ++k)
    y[k] *= double(weight(family, layer, 0, int64_t(k))) / std::sqrt(squares / double(x.size()) + eps);
  return y;
}

/// Turns the pairs (j, j + dims / 2) of the first `dims` elements of every head.
void rotate(Row &x, int64_t headDim, int64_t dims, double base, int64_t position) {
  for (size_t head = 0; head < x.size(); head += headDim)
    for (int64_t j = 0; j < dims / 2; ++j) {
      const double angle = double(position) / std::pow(base, 2.0 * double(j) / double(dims));
      double &a = x[head + j], &b = x[head + j + dims / 2];
      const double first = a * std::cos(angle) - b * std::sin(angle);
      b = b * std::cos(angle) + a * std::sin(angle);
      a = first;
    }
}

/// One of the model's layers: which numbers it has.
struct Layer {
  std::string prefix; ///< of the attention's weights
  int64_t own;        ///< its number among the layers with that attention
  int64_t keyHeads, headDim, rotated;
  double base;
  bool isAround;
};

Layer layerOf(int64_t layer) {
  if (layer == 1 || layer == 3)
    return {"local_", layer / 2, 1, 8, 4, localTheta, true};
  return {"", layer == 5 ? 3 : layer / 2, 2, 4, layer < 4 ? 4 : 0, theta, false};
}

/// What the heads of the last row of `normed` see of all its rows.
Row attention(const Layer &l, const std::vector<Row> &normed) {
  auto projected = [&](const char *role, int64_t count, size_t row, bool turns) {
    Row y = linear(l.prefix + role, l.own, count * l.headDim, normed[row]);
    if (turns)
      rotate(y, l.headDim, l.rotated, l.base, int64_t(row));
    return y;
  };
  const Row query = projected("q", heads, normed.size() - 1, true);
  Row out(heads * l.headDim);
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t keyHead = head * l.keyHeads / heads * l.headDim;
    double sum = 0;
    for (size_t row = 0; row < normed.size(); ++row) {
      const Row key = projected("k", l.keyHeads, row, true), value = projected("v", l.keyHeads, row, false);
      double score = 0;
      for (int64_t i = 0; i < l.headDim; ++i)
        score += query[head * l.headDim + i] * key[keyHead + i];
      const double share = std::exp(score / std::sqrt(double(l.headDim)));
      sum += share;
      for (int64_t i = 0; i < l.headDim; ++i)
        out[head * l.headDim + i] += share * value[keyHead + i];
    }
    for (int64_t i = 0; i < l.headDim; ++i)
      out[head * l.headDim + i] /= sum;
  }
  return out;
}

/// The rows behind a layer of those before it.
std::vector<Row> through(int64_t layer, const std::vector<Row> &x) {
  const Layer l = layerOf(layer);
  std::vector<Row> normed, after;
  for (const Row &row : x) {
    normed.push_back(norm("attention_norm", layer, row));
    Row attended = linear(l.prefix + "o", l.own, hidden, attention(l, normed));
    if (l.isAround)
      attended = norm("attention_out_norm", l.own, attended);
    Row y = row;
    for (int64_t k = 0; k < hidden; ++k)
      y[k] += attended[k];
    const Row both = linear("gate_up", layer, 2 * inter, norm("mlp_norm", layer, y));
    Row product(inter);
    for (int64_t i = 0; i < inter; ++i)
      product[i] = both[i] / (1 + std::exp(-both[i])) * both[inter + i];
    Row part = linear("down", layer, hidden, product);
    if (l.isAround)
      part = norm("mlp_out_norm", l.own, part);
    for (int64_t k = 0; k < hidden; ++k)
      y[k] += part[k];
    after.push_back(y);
  }
  return after;
}

struct Kinds : test::TestProgram {
  Kinds() : spec(specOfKinds()) {}

  mlir::OwningOpRef<mlir::ModuleOp> import() {
    Expected<mlir::OwningOpRef<mlir::ModuleOp>> module = importModel(context, spec, smallLimits());
    EXPECT_TRUE(module) << module.error().text();
    return module ? std::move(*module) : mlir::OwningOpRef<mlir::ModuleOp>();
  }

  /// What the packer writes of the rotary tables.
  void packTables(mlir::ModuleOp runtime) {
    for (const WeightSlot &slot : weightMapOf(runtime, spec).slots)
      if (const auto *table = std::get_if<Table>(&slot.transform)) {
        weights[slot.slot] = std::make_unique<test::Array>(DType::F32, table->bytes / 4);
        table->generate(0, static_cast<char *>(weights[slot.slot]->data()), table->bytes);
      }
  }

  /// Rows [first, first + rows) of the one sequence, whose pages differ from group to group.
  void runRows(int32_t first, int32_t rows) {
    std::vector<int32_t> ids, positions;
    for (int32_t row = first; row < first + rows; ++row) {
      ids.push_back(2 * row + 3);
      positions.push_back(row);
    }
    captured.assign((layers + 1) * rows * hidden, -1);
    auto change = [&](k2rt_ir_step &step) {
      step.token_ids = ids.data();
      step.positions = positions.data();
      step.capture_hidden = captured.data();
    };
    ASSERT_EQ(run("serve", rows, {{first, {1}}, {first, {0}}}, change), 0);
  }

  ModelSpec spec;
};

} // namespace

TEST_F(Kinds, HaveTablesPoolsAndWeightsOfTheirOwn) {
  mlir::OwningOpRef<mlir::ModuleOp> module = import();
  ASSERT_TRUE(module);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream);
  for (const char *line :
       {"nn.weights @q \"{layer}.q\" over (layer = 0 to 3 step 2 and 4 to 6) : tensor<4x4x8xf32>",
        "nn.weights @local_q \"{layer}.q\" over (layer = 1 to 4 step 2) : tensor<4x8x8xf32>",
        "nn.constant_table @local_rope rope<theta = 20.0, dims = 4> : tensor<64x2x2xf32>",
        "nn.constant_table @rope rope<theta = 10000.0, dims = 4> : tensor<64x2x2xf32>",
        "nn.pool @cache over (layer = 0 to 3 step 2 and 4 to 6) planes (k = 2 x 4 x f32, v = 2 x 4 x f32) page 64 "
        "group 0",
        "nn.pool @cache_1 over (layer = 1 to 4 step 2) planes (k = 1 x 8 x f32, v = 1 x 8 x f32) page 64 group 1",
        "[(@dense_layer, @local_layer)[0 to 4], @plain_layer[4 to 6]]"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

TEST_F(Kinds, ComputeWhatTheFamilySays) {
  mlir::OwningOpRef<mlir::ModuleOp> module = import();
  ASSERT_TRUE(module);
  compile(*module, weight, kern::WeightLayout::Panels, [&](mlir::ModuleOp runtime) { packTables(runtime); });
  std::vector<Row> x;
  for (int64_t row = 0; row < tokens; ++row) {
    x.emplace_back();
    for (int64_t k = 0; k < hidden; ++k)
      x.back().push_back(weight("embed", 0, 2 * row + 3, k));
  }
  std::vector<std::vector<Row>> expected = {x};
  for (int64_t layer = 0; layer < layers; ++layer)
    expected.push_back(through(layer, expected.back()));
  for (auto [first, rows] : {std::pair(0, 3), std::pair(3, 1)}) { // the second reads the cache of the first
    runRows(first, rows);
    for (int64_t layer = 0; layer <= layers; ++layer)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t k = 0; k < hidden; ++k)
          EXPECT_NEAR(captured[(layer * rows + row) * hidden + k], expected[layer][first + row][k], 1e-4)
              << layer << ", " << first + row << ", " << k;
  }
}

TEST_F(Kinds, ThePlannerCountsWhatTheProgramHas) {
  mlir::OwningOpRef<mlir::ModuleOp> module = import();
  ASSERT_TRUE(module);
  mlir::PassManager pm(&context);
  for (Form form : {Form::Model, Form::Planned, Form::Distributed, Form::Scheduled, Form::Runtime})
    buildForm(form, pm, {});
  ASSERT_TRUE(mlir::succeeded(pm.run(*module)));
  Expected<Topology> topology = loadTopology("cpu1");
  ASSERT_TRUE(topology);
  Limits limits;
  limits.stepTokens = 4;
  limits.maxSequences = limits.outputRows.emplace(2);
  limits.maxContext = 64;
  Expected<Plan> plan = planHost(spec, *topology, limits, {});
  ASSERT_TRUE(plan) << plan.error().text();
  llvm::SmallVector<rt::PlaneTableOp> planes = llvm::to_vector(module->getOps<rt::PlaneTableOp>());
  ASSERT_EQ(plan->cache.size(), planes.size());
  for (auto [planned, plane] : llvm::zip(plan->cache, planes)) {
    EXPECT_EQ(planned.plane, plane.getPlane());
    EXPECT_EQ(planned.layers, plane.getCount());
    EXPECT_EQ(planned.width, plane.getWidth());
    EXPECT_EQ(planned.pages, plane.getPages());
    EXPECT_EQ(planned.group, plane.getGroup());
  }
  auto certificate = (*module)->getAttrOfType<mem::CertificateAttr>(mem::MemDialect::certificateAttrName);
  EXPECT_EQ(plan->memory.weights.value, certificate.getWeights());
  EXPECT_EQ(plan->memory.cache.value, certificate.getCache());
}
