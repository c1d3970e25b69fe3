//===- Diff.cpp - k2c diff: what differs between two bundles --------------===//
//
// Two manifests, said in a user's words: each difference is a name with both values, numbers of kernels and a relative
// time where that says more. What has no words here and follows from nothing that has is counted, so that two manifests
// that differ never look equal;
// --json names it by its pointer. Weights and programs differ by the hashes of files.json, which k2c verify checks.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "base/JsonText.h"
#include "base/Utf8.h"
#include "k2c/Pipelines/Compile.h"
#include "k2c/Support/Units.h"
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>

using namespace k2c;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// diff(1)'s exit code of an error, 1 being that of a difference.
int failDiff(const std::string &text) { return fail(text), 2; }

enum class Shown { Value, Size, Change };

/// What users ask of a bundle, and where the manifest has it.
constexpr struct {
  const char *pointer, *name;
  Shown as;
} facts[] = {{"/model/name", "model", Shown::Value},
             {"/model/parameters", "parameters", Shown::Value},
             {"/numerics/compute", "compute", Shown::Value},
             {"/numerics/compute_reason", "reason of the compute type", Shown::Value},
             {"/numerics/mla", "mla", Shown::Value},
             {"/numerics/version", "numerics version", Shown::Value},
             {"/numerics/class", "class of bits", Shown::Value},
             {"/numerics/route_limit", "route limit", Shown::Value},
             {"/numerics/locality_penalty", "locality penalty", Shown::Value},
             {"/numerics/expert_nodes", "nodes of experts", Shown::Value},
             {"/cache/0/bytes_per_element", "bytes of a cache element", Shown::Value},
             {"/device/arch", "GPU", Shown::Value},
             {"/target/cpu", "target", Shown::Value},
             {"/topology/name", "topology", Shown::Value},
             {"/topology/ranks", "ranks", Shown::Value},
             {"/layout", "layout", Shown::Value},
             {"/placement/hash", "placement", Shown::Value},
             {"/topology/cores", "cores", Shown::Value},
             {"/limits/step_tokens", "tokens a step", Shown::Value},
             {"/limits/max_sequences", "sequences", Shown::Value},
             {"/limits/max_context", "context", Shown::Value},
             {"/forms/prompt_expanded_at_least", "prompt tokens that run expanded", Shown::Value},
             {"/memory/weights", "weights", Shown::Size},
             {"/device/reference_bytes", "weights not packed", Shown::Size},
             {"/memory/cache", "cache", Shown::Size},
             {"/memory/arena", "arena", Shown::Size},
             {"/memory/collectives", "collectives", Shown::Size},
             {"/memory/scratch_per_worker", "scratch of a worker", Shown::Size},
             {"/memory/code", "code", Shown::Size},
             {"/bytes_per_token", "read for a token", Shown::Size},
             {"/predicted/peak_bytes", "memory", Shown::Size},
             {"/predicted/decode_s", "predicted decode time", Shown::Change},
             {"/predicted/prefill_s", "predicted prefill time", Shown::Change},
             {"/k2c", "k2c", Shown::Value}};

struct Difference {
  std::string name, text;
  json left, right;
};

std::string shown(const json &value, Shown as) {
  const bool isLarge = value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX);
  if (as == Shown::Size && value.is_number_integer() && !isLarge)
    return format(Bytes(value.get<int64_t>()));
  return value.is_string() ? shortened(value.get<std::string>()) : shortenedJson(value);
}

/// In percent, where that says more than both values.
std::string change(const json &left, const json &right) {
  const double percent = left.is_number() && right.is_number() && left.get<double>() != 0
                             ? 100 * (right.get<double>() / left.get<double>() - 1)
                             : INFINITY;
  if (!(std::abs(percent) < 1e6))
    return shown(left, Shown::Value) + " -> " + shown(right, Shown::Value);
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", percent);
  return text;
}

/// A change of time that its text would round to nothing is none.
bool isSame(const json &left, const json &right, Shown as) {
  return left == right || (as == Shown::Change && left.is_number() && right.is_number() &&
                           std::abs(right.get<double>() - left.get<double>()) < 5e-4 * std::abs(left.get<double>()));
}

/// What is said is taken out of `values`, the pointers that differ.
void compareFacts(const json &left, const json &right, ordered_json &values, std::vector<Difference> &all) {
  for (const auto &[pointer, name, as] : facts) {
    const json::json_pointer at(pointer);
    const json a = left.contains(at) ? left[at] : json(), b = right.contains(at) ? right[at] : json();
    const std::string text = as == Shown::Change ? change(a, b) : shown(a, as) + " -> " + shown(b, as);
    if (isSame(a, b, as))
      continue;
    all.push_back({name, std::string(name) + " " + text, a, b});
    values.erase(pointer);
  }
}

/// Hashes by file.
std::map<std::string, std::string> hashes(const json &document) {
  std::map<std::string, std::string> values;
  for (const json &each : document.value("files", json::array()))
    values[each.at("file").get<std::string>()] = each.at("xxh3").get<std::string>();
  return values;
}

/// Takes the pointers of which `isOne` holds out of `values`.
template <class Test> void eraseIf(ordered_json &values, Test isOne) {
  ordered_json rest = ordered_json::object();
  for (const auto &[pointer, pair] : values.items())
    if (!isOne(pointer))
      rest[pointer] = pair;
  values = std::move(rest);
}

/// One line for all that the manifest says of kernels: code, costs, variants. It is taken out of `values`.
void compareKernels(const json &left, const json &right, ordered_json &values, std::vector<Difference> &all) {
  std::map<std::string, json> a, b;
  for (auto &[manifest, kernels] : {std::pair(&left, &a), std::pair(&right, &b)})
    for (const json &each : manifest->value("kernels", json::array()))
      (*kernels)[each.at("name").get<std::string>()] = each;
  const size_t most = std::max(a.size(), b.size());
  size_t same = 0;
  for (const auto &[name, kernel] : a)
    same += b.count(name) && b.at(name) == kernel;
  if (same == most)
    return;
  all.push_back(
      {"kernels", std::to_string(most - same) + " of " + std::to_string(most) + " kernels differ", a.size(), b.size()});
  eraseIf(values, [](const std::string &pointer) { return pointer.rfind("/kernels/", 0) == 0; });
}

/// What follows from what is said: other planes of the cache change as the first one does, and the numerics id is made
/// of version, compute, form and class.
void eraseConsequences(const ordered_json &all, ordered_json &unsaid) {
  auto isSaid = [&](const std::string &pointer) { return all.contains(pointer) && !unsaid.contains(pointer); };
  const std::string element = "/bytes_per_element", first = "/cache/0" + element;
  eraseIf(unsaid, [&](const std::string &pointer) {
    if (pointer == "/numerics/id")
      return isSaid("/numerics/version") || isSaid("/numerics/compute") || isSaid("/numerics/mla") ||
             isSaid("/numerics/class") || isSaid("/numerics/route_limit") || isSaid("/numerics/locality_penalty") ||
             isSaid("/numerics/expert_nodes");
    return isSaid(first) && pointer.rfind("/cache/", 0) == 0 && pointer.size() > element.size() &&
           pointer.compare(pointer.size() - element.size(), element.size(), element) == 0 &&
           all.at(pointer) == all.at(first);
  });
}

/// Program and weights: the other files follow from the manifest.
void compareFiles(const json &left, const json &right, std::vector<Difference> &all) {
  const std::map<std::string, std::string> a = hashes(left), b = hashes(right);
  for (const auto &[file, name] :
       {std::pair("program.so", "program"), std::pair("weights/index.json", "weights' hashes"),
        std::pair("run", "runtime"), std::pair("tokenizer.json", "tokenizer")}) {
    const std::string x = a.count(file) ? a.at(file) : "none", y = b.count(file) ? b.at(file) : "none";
    if (x != y)
      all.push_back({name, std::string(name) + " " + shortened(x) + " -> " + shortened(y), x, y});
  }
}

/// Every value of the manifests that differs, by pointer.
ordered_json valuesThatDiffer(const json &left, const json &right) {
  ordered_json values = ordered_json::object();
  for (const json &change : json::diff(left, right)) {
    const json::json_pointer at(change.at("path").get<std::string>());
    auto of = [&](const json &manifest) { return manifest.contains(at) ? manifest[at] : json(); };
    values[at.to_string()] = ordered_json::array({of(left), of(right)});
  }
  return values;
}

int print(const std::vector<Difference> &all, const ordered_json &values, bool asJson) {
  if (asJson) {
    ordered_json list = ordered_json::array();
    for (const Difference &each : all)
      list.push_back({{"what", each.name}, {"text", each.text}, {"left", each.left}, {"right", each.right}});
    std::cout << jsonText(ordered_json{{"same", all.empty()}, {"differences", list}, {"manifest", values}}, 2) << "\n";
  } else {
    for (const Difference &each : all)
      std::cout << each.text << "\n";
  }
  return all.empty() ? 0 : 1;
}

int diff(const std::string &left, const std::string &right, bool asJson) {
  Expected<JsonDocument> a = readManifest(left), b = readManifest(right);
  for (const Expected<JsonDocument> *manifest : {&a, &b})
    if (!*manifest)
      return failDiff(manifest->error().text());
  auto files = [](const std::string &bundle) {
    return readJsonFile((std::filesystem::path(bundle) / "files.json").string());
  };
  Expected<JsonDocument> x = files(left), y = files(right);
  for (const Expected<JsonDocument> *list : {&x, &y})
    if (!*list)
      return failDiff(list->error().text());
  std::vector<Difference> all;
  try {
    const ordered_json values = valuesThatDiffer(a->root(), b->root());
    ordered_json unsaid = values;
    compareFacts(a->root(), b->root(), unsaid, all);
    compareKernels(a->root(), b->root(), unsaid, all);
    eraseConsequences(values, unsaid);
    compareFiles(x->root(), y->root(), all);
    if (!unsaid.empty())
      all.push_back({"manifest",
                     "other values of manifest.json that differ, by --json: " + std::to_string(unsaid.size()),
                     {},
                     {}});
    return print(all, values, asJson);
  } catch (const json::exception &error) {
    return failDiff(left + ", " + right + ": " + parserText(error) + "; compile the models again");
  }
}

} // namespace

void k2c::addDiff(CLI::App &app, std::function<int()> &run) {
  auto left = std::make_shared<std::string>(), right = std::make_shared<std::string>();
  auto asJson = std::make_shared<bool>(false);
  CLI::App *c = app.add_subcommand("diff", "What differs between two bundles; exit code 1 if anything does");
  c->footer("example:\n  k2c diff out-1 out-2");
  c->add_option("DIR", *left, "a bundle")->required();
  c->add_option("OTHER", *right, "another bundle")->required();
  c->add_flag("--json", *asJson, "print JSON, with every value that differs");
  c->callback([=, &run] { run = [=] { return diff(*left, *right, *asJson); }; });
}
