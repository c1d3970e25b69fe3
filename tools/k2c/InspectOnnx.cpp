//===- InspectOnnx.cpp - k2c inspect model.onnx: the decoder found ------------===//
//
// Layers of one kind that follow each other are told once, with where the weights of the first of them are stored. Of a
// graph that is refused the same facts of the file, what was understood, and the error, with the exit code of one.
//
//===----------------------------------------------------------------------===//
#include "InspectOnnx.h"

#include "../CommandLine.h"
#include "base/JsonText.h"
#include "k2c/Model/Layers.h"
#include "k2c/Model/SpecJson.h"
#include "k2c/Onnx/Describe.h"
#include "k2c/Support/Join.h"
#include "k2c/Support/Units.h"
#include <iostream>

using namespace k2c;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// Bytes that a token takes in a layer of that kind, of elements of `width` bytes: as k2c keeps it, and as the keys and
/// values of all heads.
struct TokenBytes {
  int64_t kept = 0, expanded = 0;
};
TokenBytes tokenBytes(const AttentionSpec &attention, int64_t width) {
  const AttentionSizes sizes = attentionSizes(attention);
  return {sizes.cachedElements() * width, sizes.expandedElements() * width};
}

/// "gqa, head_dim 16, heads 4, kv_heads 2": the members of an object of specJson, without those that are off.
std::string membersText(const json &object) {
  const auto kind = object.find("kind");
  std::string text = kind == object.end() ? "" : kind->get<std::string>();
  for (const auto &[key, value] : object.items()) {
    const bool isOff = value == false || value == 0 || value == "none" || (value.is_object() && value.size() == 1);
    if (key == "kind" || isOff)
      continue;
    text += text.empty() ? key : ", " + key;
    if (value.is_object())
      text += " (" + membersText(value) + ")";
    else if (value != true)
      text += " " + (value.is_string() ? value.get<std::string>() : shortenedJson(value));
  }
  return text;
}

/// The attention, or rotary table, of that name: the first of them has a key of its own.
const json &named(const json &spec, const char *one, const char *others, const std::string &name) {
  return name == one ? spec.at(one) : spec.at(others).at(name);
}

/// What a program of k2c has otherwise than the graph.
std::vector<std::string> remarksOf(const ModelSpec &spec) {
  std::vector<std::string> out;
  for (const WidenedWeights &of : spec.widened)
    out.push_back(of.format + ": " + format(Bytes(of.storedBytes)) + " in " + std::to_string(of.tensors) +
                  " tensors, which k2c compile takes with --widen, as " + format(Bytes(of.widenedBytes)) + " of f32");
  const MlaSpec *const mla = spec.latentAttention();
  if (!mla)
    return out;
  const TokenBytes bytes = tokenBytes(*mla, spec.layerCount() * byteWidth(spec.storage));
  out.push_back("latent attention: a token takes " + format(Bytes(bytes.kept)) + " as latents, which k2c keeps, and " +
                format(Bytes(bytes.expanded)) + " as keys and values");
  return out;
}

std::string shape(const OnnxDescription::Weight &weight) {
  return shapeText(weight.shape) + (weight.isTransposed ? ", transposed" : "");
}

void printWeights(const std::vector<OnnxDescription::Weight> &weights) {
  for (const OnnxDescription::Weight &weight : weights)
    std::cout << "  " << weight.role << std::string(20 - std::min<size_t>(19, weight.role.size()), ' ') << "'"
              << shortened(weight.constant) << "' " << (weight.format.empty() ? weight.type : weight.format) << " "
              << shape(weight) << "\n";
}

void printRun(const ModelSpec &spec, const json &told, const LayersOfKind &run,
              const std::vector<OnnxDescription::Weight> &weights) {
  const LayerKind &kind = run.kind;
  const int64_t last = run.range.end - 1, width = byteWidth(spec.storage);
  const bool isOne = last == run.range.begin;
  std::cout << (isOne ? "layer " : "layers ") << run.range.begin << (isOne ? "" : " to " + std::to_string(last))
            << "\n  attention           " << membersText(named(told, firstAttention, "attentions", kind.attention))
            << "\n  rotary              "
            << (kind.rope.empty() ? "none" : membersText(named(told, firstRope, "ropes", kind.rope)))
            << "\n  feed-forward        "
            << (kind.feedForward == FeedForward::Moe ? "moe, " + membersText(told.at("moe"))
                                                     : "mlp, " + membersText(told.at("mlp")))
            << "\n  cache               " << format(Bytes(tokenBytes(spec.attentions.at(kind.attention), width).kept))
            << " a token and layer\n";
  printWeights(weights);
}

void printModel(const OnnxDescription &found) {
  const ModelSpec &spec = *found.spec;
  const json told = specJson(spec);
  std::cout << "model       " << shortened(spec.name) << ": " << spec.layerCount() << " layers, hidden " << spec.hidden
            << ", vocabulary " << spec.vocab << (spec.tiedEmbeddings ? ", head and embedding are one" : "")
            << ", norm_eps " << shortenedJson(told.at("norm_eps")) << "\n";
  printWeights(found.whole);
  const std::vector<LayersOfKind> runs = spec.layersByKind();
  for (size_t i = 0; i < runs.size(); i++)
    printRun(spec, told, runs[i], found.weights[i]);
  for (const std::string &remark : remarksOf(spec))
    std::cout << "remark      " << remark << "\n";
}

std::string setsText(const OnnxDescription &found) {
  return joined(found.operatorSets, [](const auto &set) {
    return shortened(set.first) + " " + joined(set.second, [](int64_t version) { return std::to_string(version); });
  });
}

/// Inputs of one role in a line, at most three by name.
void printInputs(const OnnxDescription &found) {
  for (const char *role : {"tokens", "mask", "positions", "cache", ""}) {
    std::vector<std::string> names;
    for (const OnnxDescription::Port &port : found.inputs)
      if (port.role == role)
        names.push_back("'" + shortened(port.name) + "' " + port.type + " " + port.shape);
    if (names.empty())
      continue;
    const size_t more = names.size() - std::min<size_t>(3, names.size());
    names.resize(names.size() - more);
    std::cout << "input       " << (*role ? role : "unknown") << ": " << joined(names)
              << (more > 0 ? " and " + std::to_string(more) + " more" : "") << "\n";
  }
}

void printFile(const std::string &path, const OnnxDescription &found) {
  std::cout << shortened(path) << ": " << (found.producer.empty() ? "" : shortened(found.producer) + ", ")
            << "IR version " << found.irVersion << ", operators of " << setsText(found) << "\nnodes       "
            << found.nodes << ", tensors " << found.constants << "\n";
  for (size_t i = 0; i < std::min<size_t>(3, found.unused.size()); i++)
    std::cout << "unused      " << found.unused[i] << ": no output depends on it\n";
  if (found.unused.size() > 3)
    std::cout << "unused      " << found.unused.size() - 3 << " more\n";
  printInputs(found);
}

ordered_json portsJson(const std::vector<OnnxDescription::Port> &ports) {
  ordered_json out = ordered_json::array();
  for (const OnnxDescription::Port &port : ports)
    out.push_back({{"name", printable(port.name)},
                   {"role", port.role.empty() ? ordered_json() : ordered_json(port.role)},
                   {"type", port.type},
                   {"shape", port.shape.empty() ? ordered_json() : ordered_json(port.shape)}});
  return out;
}

ordered_json weightsJson(const std::vector<OnnxDescription::Weight> &weights) {
  ordered_json out = ordered_json::array();
  for (const OnnxDescription::Weight &weight : weights)
    out.push_back({{"role", weight.role},
                   {"tensor", weight.tensor},
                   {"initializer", printable(weight.constant)},
                   {"type", weight.type},
                   {"format", weight.format.empty() ? ordered_json() : ordered_json(weight.format)},
                   {"shape", weight.shape},
                   {"transposed", weight.isTransposed}});
  return out;
}

ordered_json modelJson(const OnnxDescription &found) {
  const ModelSpec &spec = *found.spec;
  ordered_json layers = ordered_json::array();
  const std::vector<LayersOfKind> runs = spec.layersByKind();
  for (size_t i = 0; i < runs.size(); i++) {
    const TokenBytes bytes = tokenBytes(spec.attentions.at(runs[i].kind.attention), byteWidth(spec.storage));
    layers.push_back({{"kind", runs[i].kind.name},
                      {"from", runs[i].range.begin},
                      {"to", runs[i].range.end},
                      {"cache_bytes_per_token", bytes.kept},
                      {"expanded_bytes_per_token", bytes.expanded},
                      {"weights", weightsJson(found.weights[i])}});
  }
  return {{"name", spec.name},
          {"spec", specJson(spec)},
          {"weights", weightsJson(found.whole)},
          {"layers", layers},
          {"remarks", remarksOf(spec)}};
}

void printJson(const OnnxDescription &found) {
  ordered_json out = {{"format", 1},
                      {"ir_version", found.irVersion},
                      {"producer", printable(found.producer)},
                      {"operator_sets", ordered_json::object()},
                      {"nodes", found.nodes},
                      {"tensors", found.constants},
                      {"operators", ordered_json::object()},
                      {"unused", found.unused},
                      {"inputs", portsJson(found.inputs)},
                      {"outputs", portsJson(found.outputs)}};
  for (const auto &[domain, versions] : found.operatorSets)
    out["operator_sets"][printable(domain)] = versions;
  for (const auto &[op, count] : found.operators)
    out["operators"][printable(op)] = count;
  out["model"] = found.spec ? modelJson(found) : ordered_json();
  if (found.error) {
    out["understood"] = found.understood;
    out["error"] = {{"where", found.error->where}, {"message", found.error->message}, {"remedy", found.error->remedy}};
  }
  std::cout << jsonText(out, 2) << "\n";
}

} // namespace

int k2c::printOnnx(const std::string &path, bool asJson) {
  const Expected<OnnxDescription> found = describeOnnx(path);
  if (!found)
    return fail(found.error());
  if (asJson)
    printJson(*found);
  else
    printFile(path, *found);
  if (!asJson && found->spec)
    printModel(*found);
  if (!found->error)
    return 0;
  if (!asJson)
    for (const std::string &part : found->understood)
      std::cout << "understood  " << part << "\n";
  std::cout << std::flush; // the error comes last
  return fail(*found->error);
}
