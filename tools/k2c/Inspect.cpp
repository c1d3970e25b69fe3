//===- Inspect.cpp - k2c inspect: what a bundle or an ONNX file is --------===//
//
// Of a bundle it is what the manifest states, in lines of a key and a value: a line that says nothing of a bundle is
// left out. The memory of a program is its certificate's, in the order of the manifest.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "InspectKernels.h"
#include "InspectOnnx.h"
#include "base/JsonText.h"
#include "k2c/Onnx/Import.h"
#include "k2c/Pipelines/Compile.h"
#include "k2c/Support/Units.h"
#include <algorithm>
#include <filesystem>
#include <iostream>

using namespace k2c;
using nlohmann::json;

namespace {

/// A string of the manifest, for a screen.
std::string text(const json &value) { return printable(value.get<std::string>()); }

void printPart(const std::string &name, int64_t bytes) {
  std::cout << "  " << shortened(name) << std::string(24 - std::min<size_t>(23, name.size()), ' ')
            << format(Bytes(bytes)) << "\n";
}

/// Of a GPU's program, what is in the memory of the GPU, as `info` has it: scratch of all workers and logits are the
/// workspace, of which a file may claim any size.
void printGpuMemory(const json &manifest) {
  const json &memory = manifest.at("memory"), &device = manifest.at("device");
  const double scratch = memory.at("scratch_per_worker").get<double>() * device.at("ctas").get<double>() *
                         device.at("workers_per_cta").get<double>();
  std::cout << "memory    " << format(Bytes(manifest.at("predicted").at("peak_bytes").get<int64_t>()))
            << " of the GPU\n";
  for (const char *name : {"weights", "cache", "arena"})
    printPart(name, memory.at(name).get<int64_t>());
  const double workspace = scratch + memory.at("logits").get<double>();
  printPart("workspace", static_cast<int64_t>(std::max(0.0, std::min(0x1p62, workspace))));
  printPart("reserve, estimated", device.at("reserve_bytes").get<int64_t>());
}

void printMemory(const json &manifest) {
  if (manifest.contains("device"))
    return printGpuMemory(manifest);
  std::cout << "memory\n";
  for (const auto &[name, bytes] : manifest.at("memory").items())
    printPart(name, bytes.get<int64_t>());
}

/// "tiers leaf, spine as spine", a line for each tier of a program that several of the topology are.
std::string foldedText(const json &topology) {
  std::string line;
  const json folded = topology.value("folded", json::object());
  for (const auto &[tier, names] : folded.items()) {
    std::string list;
    for (const json &name : names)
      list += (list.empty() ? "" : ", ") + text(name);
    line += "\ntiers     " + list + " as " + shortened(tier);
  }
  return line;
}

/// "2 ranks on 1 node as ep=2,dp=2, 8 expert slots each", without slots where ranks do not divide experts; "" for one
/// rank.
std::string rankLine(const json &manifest) {
  const int64_t ranks = manifest.at("topology").value("ranks", int64_t(1));
  if (ranks <= 1)
    return "";
  const int64_t nodes = manifest.at("topology").at("nodes");
  const json placement = manifest.value("placement", json());
  const std::string slots =
      placement.is_null() ? ""
                          : ", " + std::to_string(placement.at("slots").get<int64_t>() / ranks) + " expert slots each";
  return "\nranks     " + std::to_string(ranks) + " on " + std::to_string(nodes) + (nodes == 1 ? " node" : " nodes") +
         " as " + text(manifest.at("layout")) + slots + "; limits and memory are of one" +
         foldedText(manifest.at("topology"));
}

/// A line for weights that are a checkpoint's own bytes; "" for those that are packed.
std::string referenceLine(const json &manifest) {
  const json::json_pointer pointer("/device/reference_bytes");
  const int64_t bytes = manifest.contains(pointer) ? manifest.at(pointer).get<int64_t>() : 0;
  return bytes > 0 ? "\nweights   the checkpoint's own bytes, " + format(Bytes(bytes)) + ", of which nothing is packed"
                   : "";
}

/// A line for each format of weights that the program reads as f32; "": it reads all as they are stored.
std::string widenedLines(const json &manifest) {
  const json::json_pointer pointer("/spec/widened");
  std::string out;
  for (const json &of : manifest.value(pointer, json::array()))
    out += "\nwidened   " + of.at("tensors").dump() + " tensors of " + text(of.at("format")) + ", " +
           format(Bytes(of.at("stored_bytes").get<int64_t>())) + ", to " +
           format(Bytes(of.at("widened_bytes").get<int64_t>())) + " of f32";
  return out;
}

/// A line for f32 weights that the program stores as bf16; "": there are none.
std::string narrowedLine(const json &manifest) {
  const json narrowed = manifest.value(json::json_pointer("/spec/narrowed"), json::array());
  std::string out;
  for (const json &id : narrowed)
    out += (out.empty() ? "\nnarrowed  from f32 to bf16, which has all of their numbers: " : ", ") + text(id);
  return out;
}

int inspect(const std::string &bundle, bool asJson) {
  Expected<JsonDocument> document = readManifest(bundle);
  if (!document)
    return fail(document.error());
  const json &manifest = document->root();
  try {
    if (asJson) {
      std::cout << jsonText(manifest, 2) << "\n";
      return 0;
    }
    const json &model = manifest.at("model"), &limits = manifest.at("limits");
    std::cout << text(model.at("name")) << " (" << text(model.at("family")) << "), "
              << shortenedJson(model.at("layers")) << " layers, hidden " << shortenedJson(model.at("hidden"))
              << ", vocabulary " << shortenedJson(model.at("vocab")) << "\nnumerics  "
              << text(manifest.at("numerics").at("id")) << "\ntarget    "
              << (manifest.contains("device") ? text(manifest.at("device").at("arch")) + ", started by " : "")
              << text(manifest.at("target").at("cpu")) << "\nlimits    " << shortenedJson(limits.at("step_tokens"))
              << " tokens a step, " << shortenedJson(limits.at("max_sequences")) << " sequences of "
              << shortenedJson(limits.at("max_context")) << " tokens" << rankLine(manifest) << referenceLine(manifest)
              << widenedLines(manifest) << narrowedLine(manifest) << "\nkernels   " << manifest.at("kernels").size()
              << "\n";
    printMemory(manifest);
  } catch (const json::exception &error) {
    return fail((std::filesystem::path(bundle) / "manifest.json").string() + ": " + parserText(error) +
                "; compile the model again");
  }
  return 0;
}

/// A bundle has no .onnx files: what has one is a model to be read.
int inspectSource(const std::string &source, bool asJson) {
  const Expected<std::string> onnx = onnxFile(source);
  if (!onnx)
    return fail(onnx.error());
  return onnx->empty() ? inspect(source, asJson) : printOnnx(*onnx, asJson);
}

} // namespace

void k2c::addInspect(CLI::App &app, std::function<int()> &run) {
  auto bundle = std::make_shared<std::string>();
  auto asJson = std::make_shared<bool>(false), ofKernels = std::make_shared<bool>(false);
  CLI::App *c = app.add_subcommand(
      "inspect", "What a bundle contains, and its memory certificate; the decoder that an ONNX file is");
  c->footer("example:\n  k2c inspect out --json\n  k2c inspect out --kernels\n  k2c inspect model.onnx");
  c->add_option("DIR", *bundle, "the bundle, or a .onnx file or its folder")->required();
  c->add_flag("--json", *asJson, "the whole manifest, all of --kernels, or all that is known of an ONNX file");
  c->add_flag("--kernels", *ofKernels,
              "of each kernel of a GPU: registers, spills, shared memory, bytes, which instructions; DIR may be a "
              "folder of --emit ptx");
  c->callback([=, &run] {
    run = [=] { return *ofKernels ? printKernels(*bundle, *asJson) : inspectSource(*bundle, *asJson); };
  });
}
