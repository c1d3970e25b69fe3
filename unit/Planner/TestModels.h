//===- TestModels.h - Specs and devices for the planner's tests -------------===//
#ifndef K2C_UNIT_PLANNER_TESTMODELS_H
#define K2C_UNIT_PLANNER_TESTMODELS_H

#include "k2c/Cluster/Topology.h"
#include "k2c/Model/ModelSpec.h"
#include "k2c/Planner/Plan.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>

namespace k2c::test {

/// Whether `part` is in `text`; says both when not.
inline testing::AssertionResult has(const std::string &text, const std::string &part) {
  if (text.find(part) != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in '" << text << "'";
}

/// A published config of models/configs.
inline ModelSpec published(const std::string &name) {
  Expected<ModelSpec> spec = loadModelSpec(std::string(K2C_SOURCE_DIR) + "/models/configs/" + name + "/config.json");
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
  return spec ? *spec : ModelSpec();
}

/// Two layers of hidden 64, 4 heads of 16, 2 key heads, inter 96, vocabulary 100, 256 positions, bf16.
inline ModelSpec tinyLlama(bool tied = false) {
  std::string pattern = (std::filesystem::temp_directory_path() / "k2c-plan-XXXXXX").string();
  std::string folder = ::mkdtemp(pattern.data());
  std::ofstream(folder + "/config.json")
      << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
          "vocab_size": 100, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
          "head_dim": 16, "rms_norm_eps": 1e-5, "max_position_embeddings": 256, "hidden_act": "silu",
          "rope_theta": 10000.0, "torch_dtype": "bfloat16", "tie_word_embeddings": )"
      << (tied ? "true" : "false") << "}";
  Expected<ModelSpec> spec = loadModelSpec(folder);
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
  return spec ? *spec : ModelSpec();
}

/// One rank of two cores: 100 GFLOP/s a core (bf16 200), 50 GB/s.
inline Topology machine(Bytes memory) {
  Topology topology;
  topology.name = "test";
  Device &device = topology.device;
  device.cores = 2;
  device.memory = {memory, "a test"};
  device.memoryRead = {Bandwidth(50e9), "a test"};
  device.f32 = {FlopRate(100e9), "a test"};
  device.bf16 = {FlopRate(200e9), "a test"};
  return topology;
}

/// Bytes of a rank's weights, by family.
inline std::map<std::string, int64_t> familyBytes(const Plan &plan) {
  std::map<std::string, int64_t> bytes;
  for (const FamilyBytes &family : plan.families)
    bytes[family.family] = family.bytes.value;
  return bytes;
}

} // namespace k2c::test

#endif // K2C_UNIT_PLANNER_TESTMODELS_H
