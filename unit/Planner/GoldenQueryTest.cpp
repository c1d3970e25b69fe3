//===- GoldenQueryTest.cpp - Against test/Planner/golden_public.json ----------===//
//
// Every item whose inputs determine it: its function is asked with its inputs and compared within its tolerance. A
// function that is an expression in the file ("act_mla+act_moe") is put together here from what the library answers.
// What cannot be asked is counted by its reason, and no item may have none.
//
//===----------------------------------------------------------------------===//
#include "k2c/Planner/Query.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

using namespace k2c;
using nlohmann::json;

namespace {

double ask(const std::string &function, const json &inputs, const std::string &quantity = "") {
  Expected<JsonDocument> document = parseJson(inputs.dump(), "item");
  EXPECT_TRUE(document);
  QueryOptions options;
  options.quantity = quantity;
  Expected<nlohmann::ordered_json> answer = answerQuery(function, *document, options);
  EXPECT_TRUE(answer) << function << ": " << (answer ? "" : answer.error().text());
  return answer ? (*answer)["value"].get<double>() : std::nan("");
}

double size(const json &inputs, const std::string &what) { return ask("config", {{"model", inputs["model"]}}, what); }

json with(json inputs, const std::string &key, const json &value) {
  inputs[key] = value;
  return inputs;
}

/// Smallest number of GPUs whose experts take less than the attention weights that each GPU holds.
double expertsBelowAttention(const json &in) {
  double attention = size(in, "layers") * ask("mla_params", {{"model", in["model"]}});
  double experts = ask("moe_layers", {{"model", in["model"]}}) * ask("expert_params", {{"model", in["model"]}});
  double all = size(in, "experts") + size(in, "shared");
  for (double gpus = 1; gpus <= all; ++gpus)
    if (experts * std::ceil(all / gpus) < attention)
      return gpus;
  return std::nan("");
}

using Composed = std::function<double(const json &inputs, const std::string &quantity)>;

/// Expressions of the file, as what the library answers.
const std::map<std::string, Composed> &expressions() {
  auto renamed = [](const std::string &function) {
    return [function](const json &in, const std::string &) { return ask(function, in); };
  };
  auto timesBytes = [](const std::string &function) {
    return [function](const json &in, const std::string &quantity) { return 2 * ask(function, in, quantity); };
  };
  auto ofLayers = [](double factor) {
    return [factor](const json &in, const std::string &) { return factor * size(in, "hidden") * size(in, "layers"); };
  };
  static const std::map<std::string, Composed> table = {
      {"V*h", renamed("embedding_params")},
      {"mla_params(with_norms=True)", renamed("mla_params")},
      {"(N+N_s)*expert_params",
       [](const json &in, auto &) { return (size(in, "experts") + size(in, "shared")) * ask("expert_params", in); }},
      {"s002_layer_params*2/2^20", timesBytes("s002_layer_params")},
      {"s002_layer_params*2/2^30", timesBytes("s002_layer_params")},
      {"s002_stage_params*2/2^30", timesBytes("s002_stage_params")},
      {"sum s002_layer_params",
       [](const json &in, auto &) { return ask("s002_stage_params", with(with(in, "pp", 1), "stage", 0)); }},
      {"mla:moe = 1.87:113.2",
       [](const json &in, auto &) { return ask("mla_params", with(in, "with_latent_norms", true)) / 1e8; }},
      {"act_mla+act_moe", renamed("activations")},
      {"61*mla_params", [](const json &in, auto &) { return size(in, "layers") * ask("mla_params", in); }},
      {"smallest n with expert bytes/GPU < MLA bytes",
       [](const json &in, auto &) { return expertsBelowAttention(in); }},
      {"n_r,u + n_s,u", [](const json &in, auto &) { return size(in, "topk") + size(in, "shared"); }},
      {"2*d*L", ofLayers(2)},
      {"3*d*L", ofLayers(3)},
      {"M/k", renamed("sparsity")},
      {"smallest S where absorbed decode needs fewer FLOPs than naive",
       [](const json &in, auto &) { return ask("mla_cheaper_from", with(in, "phase", "decode")); }},
      {"smallest S where naive prefill needs no more FLOPs than absorbed",
       [](const json &in, auto &) { return ask("mla_cheaper_from", with(in, "phase", "prefill")); }},
      {"6*B*d*d_moe*(n_s+n_ru) + 2*B*d*n_r", renamed("flops_experts")},
      {"80 - serve_weights_per_gpu",
       [](const json &in, auto &) { return in["hbm_GB"].get<double>() * 1e9 - ask("serve_weights_per_gpu", in); }},
      {"floor(kv_max_batch)", [](const json &in, auto &) { return ask("kv_max_batch", in, "whole"); }},
      {"comm_time(comm_amount)", renamed("comm_time")},
      {"active_params(embed=True)",
       [](const json &in, auto &) { return ask("active_params", with(in, "count_input_embedding", true)); }},
      {"total/active",
       [](const json &in, auto &) { return ask("total_params", {{"model", in["model"]}}) / ask("active_params", in); }},
      {"6*device_params",
       [](const json &in, auto &) {
         json layout = in;
         layout.erase("bytes");
         return in["bytes"].get<double>() * ask("device_params", layout);
       }},
      {"bubble: (PP-1)(F+B)", renamed("bubble")},
      {"bubble: (PP-1)(F+B-2W)", renamed("bubble")},
      {"bubble: (PP/2-1)(FB+B-3W)", renamed("bubble")},
      {"(pp-1)(F+B)/v", renamed("bubble")},
      {"(pp-1)/(v*m)", renamed("bubble_fraction")},
      {"pp*(1+(pp-1)/(pp*v))", renamed("activation_factor")},
  };
  return table;
}

/// Base units of one unit of the file.
double unitOf(const json &item) {
  static const std::map<std::string, double> units = {{"KiB", 1024.0},    {"MiB", 1048576.0}, {"GiB", 1073741824.0},
                                                      {"1e3 bytes", 1e3}, {"1e6 bytes", 1e6}, {"1e9 bytes", 1e9},
                                                      {"1e9 params", 1e9}};
  // The one item about elements is in billions, as its page prints them.
  if (item["unit"] == "elements")
    return 1e9;
  auto at = units.find(item["unit"].get<std::string>());
  return at == units.end() ? 1 : at->second;
}

/// Why an item cannot be asked; "": it can.
std::string reasonAgainst(const json &item, const std::set<std::string> &functions) {
  if (item["recomputed"].is_null())
    return "a given, nothing to compute";
  std::string function = item["function"].is_string() ? item["function"].get<std::string>() : "";
  if (function.empty())
    return "no function is named";
  if (functions.count(function) || expressions().count(function))
    return "";
  return function.find_first_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos || function == "gbit/8" ||
                 function == "pp*ep"
             ? "arithmetic on printed numbers"
             : "unknown";
}

/// The inputs of the item with this id, at another global batch and with every GPU loaded alike.
json stepOf(const json &items, const std::string &id, int64_t batch, bool twoBatches) {
  for (const json &item : items)
    if (item["id"] == id) {
      json inputs = item["inputs"];
      inputs["B_global"] = batch;
      inputs["tbo"] = twoBatches;
      inputs["knobs"]["beta"] = 1;
      return inputs;
    }
  ADD_FAILURE() << "no item " << id;
  return {};
}

/// What the text of paper 004 claims, from the steps of its clusters.
double claim(const json &items, const json &item) {
  auto rate = [&](const std::string &model, const std::string &cluster, const std::string &rest, int64_t batch,
                  bool twoBatches = true) {
    return ask("s004_step", stepOf(items, "S004.throughput." + model + "_" + cluster + rest, batch, twoBatches));
  };
  const std::string small = "_b8_S2000_tbo_tok_s_gpu", four = "4x8_h100", v3 = "deepseek_v3";
  std::string quantity = item["quantity"];
  if (quantity == "4x8_beats_9x8_per_gpu_at_512")
    return rate(v3, four, small, 512 * 32) > rate(v3, "9x8_h100", small, 512 * 72);
  if (quantity == "tbo_hurts_small_batch_4x8_b32")
    return rate(v3, four, small, 32 * 32) / rate(v3, four, small, 32 * 32, false);
  if (quantity == "k2_over_v3_4x8_b64")
    return rate("kimi_k2", four, small, 64 * 32) / rate(v3, four, small, 64 * 32);
  double best = 0;
  for (int64_t batch : item["inputs"]["batches_per_gpu"])
    best = std::max(best, rate(v3, four, small, batch * 32) / rate(v3, four, small, batch * 32, false));
  return best;
}

double answerTo(const json &item, const std::set<std::string> &functions) {
  std::string function = item["function"], quantity = item["quantity"];
  return functions.count(function) ? ask(function, item["inputs"], quantity)
                                   : expressions().at(function)(item["inputs"], quantity);
}

double toleranceOf(const json &item, double expected) {
  const json &tolerance = item["tolerance"];
  if (tolerance.contains("abs"))
    return tolerance["abs"].get<double>();
  return tolerance["rel"].get<double>() * std::abs(expected);
}

} // namespace

TEST(GoldenQuery, EveryItemWhoseInputsDetermineIt) {
  Expected<JsonDocument> document = readJsonFile(std::string(K2C_SOURCE_DIR) + "/test/Planner/golden_public.json");
  ASSERT_TRUE(document) << document.error().text();
  std::set<std::string> functions;
  for (const QueryFunction &function : queryFunctions())
    functions.insert(function.name);
  std::map<std::string, int> skipped;
  int compared = 0;
  for (const json &item : document->root()["items"]) {
    std::string reason = reasonAgainst(item, functions);
    if (!reason.empty()) {
      EXPECT_NE(reason, "unknown") << item["id"] << ": " << item["function"];
      ++skipped[reason];
      continue;
    }
    double expected = (item["recomputed"] == true ? 1 : item["recomputed"].get<double>()) * unitOf(item);
    bool isClaim = item["function"] == "s004_step" && !item["inputs"].contains("cluster");
    EXPECT_NEAR(isClaim ? claim(document->root()["items"], item) : answerTo(item, functions), expected,
                toleranceOf(item, expected))
        << item["id"];
    ++compared;
  }
  for (const auto &[reason, count] : skipped)
    RecordProperty(reason.substr(0, reason.find(',')), count);
  RecordProperty("compared", compared);
  EXPECT_GT(compared, int(document->root()["items"].size()) * 4 / 5);
}
