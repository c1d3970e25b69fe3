//===- Summary.cpp - What a finished compile says --------------------------===//
#include "Commands.h"
#include "Launchers.h"
#include "base/Container.h"
#include "base/JsonText.h"
#include "k2c/Pipelines/Cache.h"
#include "k2c/Support/Units.h"
#include "k2c/Target/Launch.h"
#include "k2rt/reserve.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

using namespace k2c;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// Of a rank's weights and code, what is in memory once however many ranks run here: all but experts; of stages the
/// code.
int64_t sharedBytes(const json &manifest) {
  const json &memory = manifest.at("memory");
  if (manifest.contains("stages"))
    return memory.at("code").get<int64_t>();
  int64_t bytes = memory.at("weights").get<int64_t>() + memory.at("code").get<int64_t>();
  for (const json &run : manifest.at("shares"))
    bytes -= run.at("slots").get<int64_t>() * run.value("experts", int64_t(0)) * run.value("items", int64_t(0)) *
             run.value("item_bytes", int64_t(0));
  return bytes;
}

/// Of a bundle of several ranks, all of which run here; of one for a GPU, that of its topology.
std::string memoryLine(const json &manifest, int64_t ranks) {
  if (manifest.contains("device"))
    return "at most " + format(Bytes(manifest.at("predicted").at("peak_bytes").get<int64_t>())) + " of the " +
           format(Bytes(manifest.at("device").at("memory_bytes").get<int64_t>())) + " of the GPU";
  const int64_t allowed = readContainer().memoryBytes, peak = manifest.at("predicted").at("peak_bytes");
  const std::string each = ranks > 1 ? " on each of " + std::to_string(ranks) + " ranks" : "";
  const bool isTooMuch = k2rt_host_bytes(ranks, peak, sharedBytes(manifest)) > allowed;
  return "at most " + format(Bytes(peak)) + each +
         (isTooMuch ? ", and this machine allows " + format(Bytes(allowed)) + ": it does not run here"
                    : " of the " + format(Bytes(allowed)) + " that this machine allows");
}

/// The GPU's architecture, or the processor.
std::string targetOf(const json &manifest) {
  return manifest.contains("device") ? manifest.at("device").at("arch") : manifest.at("target").at("cpu");
}

/// Three digits at least; "at most", where the seconds are what peak rates allow.
std::string rate(double tokens, double seconds, const std::string &from) {
  const double value = seconds > 0 ? tokens / seconds : 0;
  const std::string digits = value < 100 ? formatNumber(value, 3) : formatCount(std::llround(std::min(value, 1e18)));
  return (from == "rates" ? "about " : "at most ") + digits + " tokens/s";
}

/// Whether launch.sh of the bundle would start its ranks on this machine.
bool canLaunch(const std::string &bundle) {
  std::error_code error;
  for (const LibraryTransport &transport : mpiTransports())
    if (fs::exists(fs::path(bundle) / "lib" / transport.file, error) && !mpirunOf(transport.name).empty())
      return true;
  return false;
}

/// What comes next: weights for a bundle without, else a first text, of ids where it has no tokenizer.
std::string nextLine(const std::string &bundle, int64_t ranks) {
  std::error_code error;
  if (!fs::exists(fs::path(bundle) / "weights" / "index.json", error))
    return "k2c pack " + bundle + " --checkpoint FOLDER, as it was compiled from shapes and has no weights";
  const bool hasTokenizer =
      fs::exists(fs::path(bundle) / "tokenizer.json", error) || fs::exists(fs::path(bundle) / "tiktoken.model", error);
  const bool launches = ranks > 1 && canLaunch(bundle);
  return bundle + (launches ? "/launch.sh" : "/run") + " generate " +
         (hasTokenizer ? "--prompt \"The capital of France is\"" : "--prompt-ids 1,2,3") + " -n 32" +
         (ranks > 1 && !launches ? " --transport local" : "");
}

} // namespace

Status k2c::printSummary(const std::string &bundle) {
  Expected<JsonDocument> document = readManifest(bundle);
  if (!document)
    return document.takeError();
  const json &manifest = document->root();
  const json &limits = manifest.at("limits"), &predicted = manifest.at("predicted");
  auto count = [&](const char *limit) { return formatCount(limits.at(limit).get<int64_t>()); };
  const int64_t ranks = manifest.at("topology").at("ranks");
  const int64_t prompt = predicted.at("prefill_tokens");
  auto line = [](const char *label, const std::string &text) { std::printf("%-10s %s\n", label, text.c_str()); };
  line("bundle", printable(bundle) + ", " + format(Bytes(bytesOfFiles(bundle))) + ": " +
                     printable(manifest.at("model").at("name").get<std::string>()) + " for " +
                     printable(targetOf(manifest)) + ", computing in " +
                     printable(manifest.at("numerics").at("compute").get<std::string>()) + ": " +
                     printable(manifest.at("numerics").at("compute_reason").get<std::string>()));
  line("memory", memoryLine(manifest, ranks));
  line("limits", count("max_sequences") + " sequences of " + count("max_context") + " tokens, " + count("step_tokens") +
                     " tokens a step" + (ranks > 1 ? ", on each rank" : ""));
  line("predicted", rate(1, predicted.at("decode_s"), predicted.at("decode_from")) + " of one sequence; a prompt of " +
                        formatCount(prompt) +
                        " tokens: " + rate(double(prompt), predicted.at("prefill_s"), predicted.at("prefill_from")));
  line("next", printable(nextLine(bundle, ranks)));
  return Status::success();
}
