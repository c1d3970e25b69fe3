//===- Export.cpp - a model as an ONNX file ---------------------------------------===//
//
//   spec -> nodes and a plan of the data file (DecoderWriter.cpp) -> model.onnx, model.onnx.data (DataFile.cpp) and
//   genai_config.json
//
// Everything that compiles can be said in ONNX but for stored blocks of FP8: they would be float32 of four times their
// bytes. What else a ModelSpec may have, no family that compiles has.
//
//===----------------------------------------------------------------------===//
#include "k2c/Onnx/Export.h"

#include "DecoderWriter.h"
#include "base/JsonText.h"
#include "base/Utf8.h"
#include "k2c/Support/WriteFile.h"
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace k2c {

using namespace onnx;

namespace {

constexpr const char *modelFileName = "model.onnx";

/// What is wrong at a field of config.json.
Error refuse(const ModelSpec &spec, const std::string &field, const std::string &what, const std::string &remedy) {
  const auto found = spec.places.find(field);
  if (found == spec.places.end())
    return {spec.name, what, remedy};
  const ConfigPlace &place = found->second;
  return {place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column), place.key + ": " + what,
          remedy};
}

Status checkExportable(const ModelSpec &spec) {
  constexpr const char *compiled = "export a model that k2c compiles: k2c models";
  if (!canCompile(spec))
    return refuse(spec, "", "family " + spec.family + " is planned only: its graph is not in this build", compiled);
  for (const WeightFamily &family : spec.weights) {
    const int64_t layer = family.layers.empty() ? 0 : family.layers[0].begin;
    if (family.blocks || family.microScales)
      return refuse(spec, "quantization",
                    "tensors such as " + shortened(family.tensorName(layer)) +
                        " are stored in blocks with scales, which no graph of this build has",
                    "export a checkpoint of the model in bf16, f16 or f32");
  }
  for (const auto &[name, attention] : spec.attentions)
    if (const GqaSpec *const gqa = std::get_if<GqaSpec>(&attention); gqa && gqa->window > 0)
      return refuse(spec, "window",
                    "attention to the last " + std::to_string(gqa->window) +
                        " tokens alone: its graph is not in this build",
                    compiled);
  const bool isSilu = (!spec.mlp || spec.mlp->activation == Activation::Silu) &&
                      (!spec.moe || spec.moe->activation == Activation::Silu);
  return isSilu ? Status()
                : refuse(spec, "activation", "a gate without silu: its graph is not in this build", compiled);
}

/// What onnxruntime-genai reads. It knows "decoder" as any model of these inputs and outputs.
std::string genaiConfig(const ModelSpec &spec) {
  const AttentionSizes sizes = attentionSizes(spec.attentions.begin()->second);
  ordered_json inputs = {{"input_ids", "input_ids"}, {"attention_mask", "attention_mask"}};
  if (!areGroupQueryNodes(spec))
    inputs["position_ids"] = "position_ids";
  inputs["past_key_names"] = "past_key_values.%d.key";
  inputs["past_value_names"] = "past_key_values.%d.value";
  ordered_json model;
  if (spec.bos)
    model["bos_token_id"] = *spec.bos;
  model["context_length"] = longestSequence(spec);
  model["decoder"] = {
      {"session_options", {{"log_id", "onnxruntime-genai"}, {"provider_options", ordered_json::array()}}},
      {"filename", modelFileName},
      {"head_size", sizes.key},
      {"hidden_size", spec.hidden},
      {"inputs", std::move(inputs)},
      {"outputs",
       {{"logits", "logits"}, {"present_key_names", "present.%d.key"}, {"present_value_names", "present.%d.value"}}},
      {"num_attention_heads", sizes.heads},
      {"num_hidden_layers", spec.layerCount()},
      {"num_key_value_heads", sizes.keyHeads}};
  if (!spec.eos.empty()) {
    model["eos_token_id"] = spec.eos;
    model["pad_token_id"] = spec.eos[0];
  }
  model["type"] = "decoder";
  model["vocab_size"] = spec.vocab;
  const ordered_json search = {{"do_sample", false},
                               {"max_length", longestSequence(spec)},
                               {"past_present_share_buffer", areGroupQueryNodes(spec)}};
  return jsonText(ordered_json{{"model", std::move(model)}, {"search", search}}, 2) + "\n";
}

} // namespace

Status exportOnnx(const OnnxExport &model, const std::string &folder) {
  const ModelSpec &spec = model.spec;
  if (Status status = checkExportable(spec); !status)
    return status;
  GraphWriter graph;
  DataFile data;
  DecoderWriter(spec, graph, data).write();
  const std::string bytes = graph.model(model.version);
  if (Status status = checkSpace(folder, "the model as float32", data.bytes() + int64_t(bytes.size())); !status)
    return status;
  if (Status status = data.write((fs::path(folder) / dataFileName).string(), model.tensors, model.progress); !status)
    return status;
  if (Status status = writeFile((fs::path(folder) / modelFileName).string(), bytes); !status)
    return status;
  return writeFile((fs::path(folder) / "genai_config.json").string(), genaiConfig(spec));
}

} // namespace k2c
