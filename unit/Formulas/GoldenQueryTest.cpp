//===- GoldenQueryTest.cpp - Against test/Planner/golden_public.json ------===//
//
// Every item whose inputs determine it: its function is asked with its inputs and compared within its tolerance. A
// function that is an expression in the file ("act_mla+act_moe") is put together here from what the library answers.
// What cannot be asked is counted by its reason, and no item may have none.
//
//===----------------------------------------------------------------------===//
#include "k2c/Formulas/Query.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

using namespace k2c;
using nlohmann::json;

namespace {

/// The value of an answer, or the part of this exact name.
double ask(const std::string &function, const json &inputs, const std::string &part = "") {
  Expected<JsonDocument> document = parseJson(inputs.dump(), "item");
  EXPECT_TRUE(document);
  QueryOptions options;
  options.quantity = part;
  Expected<nlohmann::ordered_json> answer = answerQuery(function, *document, options);
  EXPECT_TRUE(answer) << function << ": " << (answer ? "" : answer.error().text());
  return answer ? (*answer)["value"].get<double>() : std::nan("");
}

double size(const json &inputs, const std::string &what) { return ask("config", {{"model", inputs["model"]}}, what); }

json with(json inputs, const std::string &key, const json &value) {
  inputs[key] = value;
  return inputs;
}

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// The part of an answer that an item means. The file names quantities after tables, units and inputs ("t6_moe_MiB",
/// "os+g_grads_GiB", "kimi_k2_L8_tp4_params_seed"); what is not listed here means the answer's own value.
std::string partOf(const std::string &function, const std::string &quantity) {
  struct Ending {
    const char *function, *ending, *part;
  };
  static const Ending endings[] = {{"s002_layer_params", "iB", "bytes"},
                                   {"s002_stage_params", "GiB", "bytes"},
                                   {"device_params", "norm_KiB", "norm_bytes"},
                                   {"device_params", "mla_MiB", "mla_bytes"},
                                   {"device_params", "mla_total", "mla_params"},
                                   {"device_params", "non_moe_MiB", "non_moe_bytes"},
                                   {"device_params", "t6_moe_MiB", "moe_bytes"},
                                   {"device_params", "_params_seed", "total_params"},
                                   {"device_params", "_params_megatron", "total_params"},
                                   {"zero_memory", "_params_GiB", "params_bytes"},
                                   {"zero_memory", "_grads_GiB", "grads_bytes"},
                                   {"zero_memory", "_optimizer_GiB", "optimizer_bytes"},
                                   {"zero_memory", "_total_GiB", "total_bytes"},
                                   {"zero_memory", "text_gradients_no_zero_GiB", "gradients_bytes"},
                                   {"fp8_checkpoint", "_elements_with_scales", "elements"}};
  for (const Ending &each : endings)
    if (function == each.function && endsWith(quantity, each.ending))
      return each.part;
  if (function == "mla_matrices") // "W_DQ_MB"
    return quantity.substr(0, quantity.find("_MB"));
  if (function == "config") // "v3_hidden"
    return quantity.substr(quantity.find('_') + 1);
  if (function == "device_params") // "t6_total_bytes"
    return quantity.substr(quantity.rfind("t6_", 0) == 0 ? 3 : 0);
  return "";
}

/// The inputs of an item, with what only its quantity says: the stage of "stage1_14_params_B".
json inputsOf(json inputs, const std::string &quantity) {
  if (quantity.rfind("stage", 0) == 0 && !inputs.contains("stage"))
    inputs["stage"] = std::stoll(quantity.substr(5));
  // A simulation of the file has noise of its own, which the tolerance allows for: ours is to be half of it.
  if (inputs.contains("trials"))
    inputs["trials"] = 4 * inputs["trials"].get<int64_t>();
  return inputs;
}

/// A function's answer to an item.
double answerOf(const std::string &function, const json &inputs, const std::string &quantity) {
  return ask(function, inputsOf(inputs, quantity), partOf(function, quantity));
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
  auto asNamed = [](const std::string &function) {
    return [function](const json &in, const std::string &quantity) { return answerOf(function, in, quantity); };
  };
  auto ofLayers = [](double factor) {
    return [factor](const json &in, const std::string &) { return factor * size(in, "hidden") * size(in, "layers"); };
  };
  static const std::map<std::string, Composed> table = {
      {"V*h", renamed("embedding_params")},
      {"mla_params(with_norms=True)", renamed("mla_params")},
      {"(N+N_s)*expert_params",
       [](const json &in, auto &) { return (size(in, "experts") + size(in, "shared")) * ask("expert_params", in); }},
      {"s002_layer_params*2/2^20", asNamed("s002_layer_params")},
      {"s002_layer_params*2/2^30", asNamed("s002_layer_params")},
      {"s002_stage_params*2/2^30", asNamed("s002_stage_params")},
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
       [](const json &in, auto &) {
         return in["hbm_GB"].get<double>() * 1e9 -
                ask("serve_weights_per_gpu", {{"model", in["model"]}, {"gpus", in["gpus"]}});
       }},
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

/// Items that name no function of ours, or none at all: by their id, from the model or from the numbers in the item.
const std::map<std::string, Composed> &itemsById() {
  auto count = [](const char *function) {
    return [function](const json &in) { return ask(function, {{"model", in["model"]}}); };
  };
  auto shared = [](const json &in) { return size(in, "experts") + size(in, "shared"); };
  auto quotient = [](const char *above, const char *below) {
    return [above, below](const json &in, auto &) { return in[above].get<double>() / in[below].get<double>(); };
  };
  auto bytesOfGigabits = [](const json &in, auto &) { return in["gbit"].get<double>() / 8; };
  auto allLayers = [](const json &in) {
    return ask("s002_stage_params", {{"model", in["model"]}, {"pp", 1}, {"stage", 0}});
  };
  auto expertsOf = [count, shared](const json &in) {
    return count("moe_layers")(in) * shared(in) * count("expert_params")(in);
  };
  static const std::map<std::string, Composed> table = {
      {"S002.layer.total_MiB",
       [=](const json &in, auto &) { return in["bytes_per_param"].get<double>() * allLayers(in); }},
      {"S002.stage.sum_params_B",
       [](const json &in, auto &) {
         double sum = 0;
         for (int64_t stage = 0; stage < in["pp"]; ++stage)
           sum += ask("s002_stage_params", with(in, "stage", stage));
         return sum;
       }},
      {"S004.model.experts_per_layer", [=](const json &in, auto &) { return shared(in); }},
      {"S004.model.experts_per_token", [](const json &in, auto &) { return size(in, "topk") + size(in, "shared"); }},
      {"S004.model.fig4_second_num_experts_per_tok", [](const json &in, auto &) { return size(in, "topk"); }},
      {"S004.model.expert_share_over_percent",
       [=](const json &in, auto &) {
         const double dense = size(in, "dense") * count("dense_mlp_params")(in);
         return 100 * (expertsOf(in) + dense) / count("total_params")(in);
       }},
      {"S004.model.llama70b_ffn_ratio",
       [=](const json &in, auto &) { return count("dense_mlp_params")(in) / 3 / std::pow(size(in, "hidden"), 2); }},
      {"S004.ep_mem.dense_W1_MB", [=](const json &in, auto &) { return count("dense_mlp_params")(in) / 3; }},
      {"S004.ep_mem.dense_3_layers_GB",
       [=](const json &in, auto &) { return size(in, "dense") * count("dense_mlp_params")(in); }},
      {"S004.comm.gpus_one_expert_each", [=](const json &in, auto &) { return shared(in); }},
      {"S004.links.cx7_400_GBps", bytesOfGigabits},
      {"S004.links.cx7_single_port_GBps", bytesOfGigabits},
      {"S000.links.xdr800_port_GBps", bytesOfGigabits},
      {"S004.eplb.experts_per_gpu_ep72",
       [](const json &in, auto &) {
         return (in["routed"].get<double>() + in["additional"].get<double>()) / in["gpus"].get<double>();
       }},
      {"S000.replication.v3_prefill_experts_per_gpu",
       [](const json &in, auto &) {
         return (in["experts"].get<double>() + in["redundant"].get<double>()) / in["gpus"].get<double>();
       }},
      {"S000.parallel.k2_experts_per_device", quotient("experts", "ep")},
      {"S004.ineff.comm", quotient("peak", "achieved")},
      {"X.k2_train.model_parallel_gpus",
       [](const json &in, auto &) { return in["pp"].get<double>() * in["ep"].get<double>(); }},
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
  if (itemsById().count(item["id"]))
    return "";
  std::string function = item["function"].is_string() ? item["function"].get<std::string>() : "";
  if (function.empty())
    return "no function is named";
  if (functions.count(function) || expressions().count(function))
    return "";
  // "163/70", "1.5*1.1": its numbers are in the name of the function, not in the inputs.
  return function.find_first_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos ? "arithmetic on printed numbers"
                                                                                   : "unknown";
}

const json &itemOf(const json &items, const std::string &id) {
  for (const json &item : items)
    if (item["id"] == id)
      return item;
  ADD_FAILURE() << "no item " << id;
  return items[0];
}

/// The inputs of the item with this id, with so many sequences on a GPU and every GPU loaded alike.
json stepOf(const json &items, const std::string &id, int64_t batchOfGpu, bool twoBatches) {
  json inputs = itemOf(items, id)["inputs"];
  inputs["B_global"] = batchOfGpu * inputs["cluster"]["gpus"].get<int64_t>();
  inputs["tbo"] = twoBatches;
  inputs["knobs"]["beta"] = 1;
  return inputs;
}

/// The number behind the last "_at_" or "_b" of a quantity ("tbo_hurts_small_batch_4x8_b32").
int64_t batchOf(const std::string &quantity) { return std::stoll(quantity.substr(quantity.find_last_of("_b") + 1)); }

/// What the text of paper 004 claims, from the steps of its clusters.
double claim(const json &items, const json &item) {
  auto rate = [&](const std::string &model, const std::string &cluster, int64_t batch, bool twoBatches = true) {
    const std::string id = "S004.throughput." + model + "_" + cluster + "_b8_S2000_tbo_tok_s_gpu";
    return ask("s004_step", stepOf(items, id, batch, twoBatches));
  };
  const std::string four = "4x8_h100", v3 = "deepseek_v3", quantity = item["quantity"];
  auto speedup = [&](int64_t batch) { return rate(v3, four, batch) / rate(v3, four, batch, false); };
  if (quantity.find("beats") != std::string::npos)
    return rate(v3, four, batchOf(quantity)) > rate(v3, "9x8_h100", batchOf(quantity));
  if (quantity.find("hurts") != std::string::npos)
    return speedup(batchOf(quantity));
  if (quantity.find("over") != std::string::npos)
    return rate("kimi_k2", four, batchOf(quantity)) / rate(v3, four, batchOf(quantity));
  double best = 0;
  for (int64_t batch : item["inputs"]["batches_per_gpu"])
    best = std::max(best, speedup(batch));
  return best;
}

double answerTo(const json &item, const std::set<std::string> &functions) {
  const std::string quantity = item["quantity"];
  if (auto byId = itemsById().find(item["id"]); byId != itemsById().end())
    return byId->second(item["inputs"], quantity);
  const std::string function = item["function"];
  return functions.count(function) ? answerOf(function, item["inputs"], quantity)
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
