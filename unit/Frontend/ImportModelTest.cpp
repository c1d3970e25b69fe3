//===- ImportModelTest.cpp - ModelSpec to the model form ------------------===//

#include "k2c/Frontend/ImportModel.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace k2c;

namespace {

std::string print(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

ModelSpec specOf(const std::string &folder) {
  Expected<ModelSpec> spec = loadModelSpec(std::string(K2C_SOURCE_DIR "/") + folder);
  EXPECT_TRUE(spec) << spec.error().text();
  return spec ? *spec : ModelSpec();
}

/// The model form as text, after verification.
std::string import(const ModelSpec &spec, ImportOptions options = {}) {
  mlir::MLIRContext context;
  Expected<mlir::OwningOpRef<mlir::ModuleOp>> module = importModel(context, spec, options);
  if (!module)
    return module.error().text();
  EXPECT_TRUE(mlir::succeeded(mlir::verify(**module)));
  return print(**module);
}

/// Every line of `lines` occurs in `text`, in this order.
void expectInOrder(const std::string &text, const std::vector<std::string> &lines) {
  size_t at = 0;
  for (const std::string &line : lines) {
    size_t found = text.find(line, at);
    ASSERT_NE(found, std::string::npos) << "no '" << line << "' after offset " << at << " of\n" << text;
    at = found + line.size();
  }
}

const std::string llama = "test/EndToEnd/oracle/llama";
const std::string kimi = "test/EndToEnd/oracle/kimi_k2";
const std::string alternating = "test/EndToEnd/oracle/deepseek_v3_alternating";

TEST(ImportModel, DenseLayerWithGroupedQueryAttention) {
  expectInOrder(import(specOf(llama)), {"module @llama attributes {nn.limits = #nn.limits<token = 2048, seq = "
                                        "16, context = 1024>}",
                                        "nn.weights @q \"model.layers.{layer}.self_attn.q_proj.weight\" over "
                                        "(layer = 0 to 3) : tensor<4x16x64xbf16>",
                                        "nn.weights @gate_up "
                                        "\"model.layers.{layer}.mlp.{gate_proj|up_proj}.weight\" over (layer = "
                                        "0 to 3) : tensor<2x192x64xbf16>",
                                        "nn.constant_table @rope rope<theta = 5.0e+05, dims = 16, scaling "
                                        "= #nn.llama3<",
                                        ": tensor<1024x2x8xf32>",
                                        "nn.pool @cache over (layer = 0 to 3) planes (k = 2 x 16 x f32, v = 2 x "
                                        "16 x f32) page 64 group 0",
                                        "nn.layer @dense_layer(%layer: index, %x: ",
                                        "nn.rms_norm",
                                        "@attention_norm[",
                                        "nn.linear",
                                        "@q[",
                                        "nn.rotary",
                                        "first 0 count 16 half",
                                        "@k[",
                                        "nn.rotary",
                                        "@v[",
                                        "nn.append @cache[",
                                        "nn.attention",
                                        "scale 0.25",
                                        "nn.reshape",
                                        "@o[",
                                        "nn.add",
                                        "@mlp_norm[",
                                        "@gate_up[",
                                        "nn.gated_act",
                                        "@down[",
                                        "nn.add",
                                        "nn.capture",
                                        "hidden layer %layer",
                                        "nn.yield"});
}

TEST(ImportModel, StepFunction) {
  expectInOrder(import(specOf(kimi)),
                {"func.func @step(%b: !nn.batch) attributes {nn.entry = "
                 "\"serve\"}",
                 "nn.embed @embed", "nn.capture %x, %b embed",
                 "nn.layers %x, %b [@dense_layer[0 to 1], @moe_layer[1 to "
                 "3]]",
                 "nn.output_rows", "nn.rms_norm", "@final_norm eps",
                 "nn.linear %final_norm, @head :", "tensor<?x320xf32, #output>", "nn.sample", "return"});
}

TEST(ImportModel, LatentAttention) {
  expectInOrder(import(specOf(kimi)), {"@kv_b \"model.layers.{layer}.self_attn.kv_b_proj.weight\" over (layer "
                                       "= 0 to 3) : tensor<4x32x16xbf16>",
                                       "planes (latent = 16 x f32, rope = 16 x f32)",
                                       "nn.layer @moe_layer(",
                                       "@q_a[",
                                       "nn.rms_norm",
                                       "@q_a_norm[",
                                       "@q_b[",
                                       "nn.rotary",
                                       "first 16 count 16 interleaved",
                                       "@kv_a[",
                                       "nn.split",
                                       "@kv_a_norm[",
                                       "nn.rotary",
                                       "first 0 count 16 interleaved",
                                       "mla.append @cache[",
                                       "mla.attention",
                                       "@kv_b[",
                                       "nope 16 rope 16 v 16 scale 0.229186918311895",
                                       "nn.reshape",
                                       "@o["});
}

TEST(ImportModel, RoutedLayer) {
  expectInOrder(import(specOf(kimi)),
                {"over (layer = 1 to 3, expert = 0 to 12) : tensor<12x2x24x64xbf16>", "nn.layer @moe_layer(",
                 "@router[%layer] : tensor<?x64xf32, #tok> -> "
                 "tensor<?x12xf32, #tok>",
                 "moe.routing",
                 "bias @selection_bias[%layer] layer %layer among 1 to 3 score sigmoid top 4 "
                 "groups 1 of 1 normalize scale 2.827",
                 "moe.experts",
                 "@experts_gate_up[%layer], @experts_down[%layer] experts "
                 "12 inner 24 act silu",
                 "@shared_gate_up[", "nn.gated_act", "@shared_down[", "nn.add", "nn.add", "nn.capture"});
}

TEST(ImportModel, LayersThatAlternateShareTwoFunctions) {
  std::string text = import(specOf(alternating));
  expectInOrder(
      text,
      {"@attention_norm \"model.layers.{layer}.input_layernorm.weight\" over (layer = 0 to 6)",
       "@gate_up \"model.layers.{layer}.mlp.{gate_proj|up_proj}.weight\" over (layer = 0 to 1 and 1 to 6 step 2)",
       "@router \"model.layers.{layer}.mlp.gate.weight\" over (layer = 2 to 5 step 2)",
       "nn.layer @dense_layer(%layer: index, %x: ", "nn.layer @moe_layer(",
       "layer %layer among 2 to 5 step 2 score sigmoid", "[@dense_layer[0 to 1], (@dense_layer, @moe_layer)[1 to 6]]"});
  EXPECT_EQ(text.find("nn.layer @"), text.find("nn.layer @dense_layer("));
  EXPECT_EQ(text.rfind("nn.layer @"), text.find("nn.layer @moe_layer("));
}

TEST(ImportModel, KindsOfLayersAreFunctions) {
  std::string text = import(specOf("test/EndToEnd/oracle/odd_smollm3"));
  expectInOrder(text, {"@gate_up \"model.layers.{layer}.mlp.{gate_proj|up_proj}.weight\" over (layer = 0 to 5)",
                       "nn.layer @dense_layer(%layer: index, %x: ", "nn.rotary", "nn.rotary", "nn.append",
                       "nn.layer @unrotated_layer(", "nn.append", "[(@dense_layer, @unrotated_layer)[0 to 5]]"});
  EXPECT_EQ(text.find("nn.rotary", text.find("@unrotated_layer(")), std::string::npos);
}

// Sizes that differ from layer to layer compile (unit/Pipelines/KindsTest.cpp); windows and numbers of heads do not.
TEST(ImportModel, AttentionsThatAreNotInThisBuild) {
  ModelSpec spec = specOf(llama);
  auto &gqa = std::get<GqaSpec>(spec.attentions["attention"]);
  gqa.window = 32;
  EXPECT_EQ(import(spec),
            "llama: attention 'attention' has a window of 32 keys: attention with a window is not in this build");
  gqa.window = 0;
  std::get<GqaSpec>(spec.attentions.emplace("local", gqa).first->second).heads = 8;
  EXPECT_EQ(import(spec), "llama: attention 'local' has 8 heads, attention 'attention' 4: different numbers of query "
                          "heads in one model are not in this build");
}

TEST(ImportModel, GroupLimitedRouting) {
  expectInOrder(import(specOf("test/EndToEnd/oracle/deepseek_v3")), {"moe.routing", "top 3 groups 2 of 4 normalize"});
}

TEST(ImportModel, SizeDoesNotDependOnLayers) {
  std::string small = import(specOf(kimi));
  std::string large = import(specOf("models/configs/kimi-k2"));
  EXPECT_EQ(std::count(small.begin(), small.end(), '\n'), std::count(large.begin(), large.end(), '\n'));
}

TEST(ImportModel, BlockScaledStorage) {
  expectInOrder(import(specOf("models/configs/kimi-k2")),
                {"@embed \"model.embed_tokens.weight\" : tensor<163840x7168xbf16>", "@q_a ",
                 "stored blocks<f8E4M3FN, [128, 128], f32> : "
                 "tensor<1536x7168xf32>",
                 "@experts_gate_up ",
                 "stored blocks<f8E4M3FN, [128, 128], f32> : "
                 "tensor<384x2x2048x7168xf32>"});
}

TEST(ImportModel, OutputReadsBack) {
  std::string text = import(specOf(kimi));
  mlir::MLIRContext context;
  ASSERT_TRUE(importModel(context, specOf(kimi), {})); // loads the dialects
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  EXPECT_EQ(print(*module), text);
}

TEST(ImportModel, LocationsAreKeysAndTensorNames) {
  mlir::MLIRContext context;
  Expected<mlir::OwningOpRef<mlir::ModuleOp>> module = importModel(context, specOf(kimi), {});
  ASSERT_TRUE(module);
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*module)->print(stream, mlir::OpPrintingFlags().enableDebugInfo());
  EXPECT_NE(text.find("loc(\"model.layers.{layer}.self_attn.q_a_proj.weight\")"), std::string::npos);
  EXPECT_NE(text.find("config.json\":"), std::string::npos);
}

TEST(ImportModel, DirectQueriesAndNoSharedExpert) {
  ModelSpec spec = specOf(kimi);
  std::get<MlaSpec>(spec.attentions["attention"]).queryLatent = 0;
  spec.moe->sharedInter = 0;
  WeightFamily direct = *spec.find("q_b");
  direct.id = "q";
  direct.shape[1] = spec.hidden;
  spec.weights.push_back(direct);
  std::string text = import(spec);
  expectInOrder(text, {"@q[", "tensor<?x4x32xf32, #tok>"});
  EXPECT_EQ(text.find("@q_a["), std::string::npos);
  EXPECT_EQ(text.find("@shared_down["), std::string::npos);
}

TEST(ImportModel, Biases) {
  ModelSpec spec = specOf(llama);
  WeightFamily bias = *spec.find("q");
  bias.id = "q_bias";
  bias.pattern = "model.layers.{layer}.self_attn.q_proj.bias";
  bias.shape = {64};
  spec.weights.push_back(bias);
  expectInOrder(import(spec), {"nn.weights @q_bias ", ": tensor<4x16xbf16>", "@q[%layer] bias @q_bias[%layer] :"});
}

TEST(ImportModel, TiedEmbeddings) {
  ModelSpec spec = specOf(llama);
  spec.tiedEmbeddings = true;
  expectInOrder(import(spec), {"nn.layers", "@final_norm eps", "nn.linear", "@embed :"});
}

TEST(ImportModel, NarrowActivationsKeepRouterAndLogitsWide) {
  ImportOptions options;
  options.compute = DType::BF16;
  expectInOrder(import(specOf(kimi), options), {"latent = 16 x bf16", "@router[%layer] : tensor<?x64xbf16",
                                                "tensor<?x12xf32, #tok>", "@head :", "tensor<?x320xf32, #output>"});
}

TEST(ImportModel, ContextWithinTheModel) {
  ModelSpec spec = specOf(llama);
  EXPECT_EQ(*chooseContext(spec, {}), 1024);
  spec.maxPosition = 131072;
  EXPECT_EQ(*chooseContext(spec, {}), 8192);
  ImportOptions options;
  options.maxContext = 131073;
  EXPECT_EQ(import(spec, options), "--max-context 131073: the model reaches 131072 positions "
                                   "(max_position_embeddings 131072); choose from 1 to 131072");
  // Dynamic scaling is exact only where it does not scale.
  spec.ropes["rope"].maxContext = 4096;
  EXPECT_EQ(*chooseContext(spec, {}), 4096);
  options.maxContext = 4097;
  EXPECT_EQ(import(spec, options), "--max-context 4097: the model reaches 4096 positions "
                                   "(max_position_embeddings 131072); choose from 1 to 4096");
}

TEST(ImportModel, LimitsArePositive) {
  ImportOptions options;
  options.stepTokens = 0;
  EXPECT_EQ(import(specOf(llama), options), "--step-tokens 0: must be from 1 to 2147483647");
}

TEST(ImportModel, WhatTheModelFormCannotSay) {
  ModelSpec otherEps = specOf(kimi);
  otherEps.moe->normalizeEps = 1e-6;
  EXPECT_NE(
      import(otherEps).find("the sum of expert weights has another epsilon than 1e-20, which is not in this build"),
      std::string::npos);
}

} // namespace
