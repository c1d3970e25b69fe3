//===- Sentences.cpp - A bundle's decisions in sentences -------------------===//
//
// remarks.txt has a line for each kernel and function; a reader wants what they come to. Each function below adds up
// the remarks of one decision, with what the manifest says of the same thing, and puts its bytes beside it: those of
// memory that it lays out, or those that the kernels it is about move in a step of one token ([step-cost] lines). So
// all decisions have one measure to be sorted by. A decision without remarks (a pass that was left out, a model without
// experts) has no sentence.
//
//===----------------------------------------------------------------------===//
#include "Sentences.h"
#include "base/Utf8.h"
#include "k2c/Support/Units.h"
#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

using namespace k2c;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

using Remarks = std::vector<RemarkLine>;

/// Files of a bundle may claim any number.
int64_t rounded(double number) { return std::abs(number) < 0x1p62 ? int64_t(number) : 0; }
std::string size(double bytes) { return format(Bytes(rounded(bytes))); }
std::string count(double number) { return formatCount(rounded(number)); }
std::string percent(double part, double whole) {
  const double share = whole > 0 ? 100 * part / whole : 0;
  return (std::isfinite(share) ? formatNumber(share, 3) : "-") + " %";
}

/// The name in 'quotes' of a remark.
std::string quoted(const std::string &text) {
  const size_t from = text.find('\'') + 1;
  return text.substr(from, text.find('\'', from) - from);
}

/// The sentences of one bundle.
struct Story {
  const json &manifest;
  const Remarks &remarks;
  std::vector<Sentence> told;

  void tell(const char *about, double bytes, const std::string &text) {
    told.push_back({about, printable(text), rounded(bytes)});
  }
  /// The remarks of `pass` that have `metric`.
  Remarks of(const std::string &pass, const std::string &metric) const {
    Remarks found;
    std::copy_if(remarks.begin(), remarks.end(), std::back_inserter(found),
                 [&](const RemarkLine &each) { return each.pass == pass && each.metrics.count(metric); });
    return found;
  }
  double number(const char *pointer) const { return manifest.at(json::json_pointer(pointer)).get<double>(); }
  std::string string(const char *pointer) const { return manifest.at(json::json_pointer(pointer)).get<std::string>(); }
  /// What the kernels of these names move in a step of one token.
  double moved(const std::set<std::string> &kernels) const {
    double bytes = 0;
    for (const RemarkLine &each : of("step-cost", "bytes"))
      if (kernels.count(quoted(each.text)))
        bytes += each.metrics.at("bytes");
    return bytes;
  }
};

/// How matrices lie in memory.
const char *layoutText(const json &manifest) {
  const json::json_pointer reference("/device/reference_bytes");
  return manifest.contains(reference) && manifest.at(reference).get<int64_t>() > 0
             ? " in the rows of the checkpoint, whose bytes they are: nothing is packed"
             : " in panels of 32 output columns, which kernels of one row and of a thousand read alike";
}

/// "FP8 and bf16": in blocks with scales, and the rest.
std::string storedText(const Story &story) {
  const json::json_pointer blocks("/spec/quantization/stored");
  const std::string rest = story.string("/spec/storage");
  if (!story.manifest.contains(blocks))
    return rest;
  const std::string stored = story.manifest.at(blocks).get<std::string>();
  return (stored.rfind("f8", 0) == 0 ? "FP8" : stored) + " and " + rest;
}

void tellMemory(Story &story) {
  auto part = [&](const char *name) { return story.number((std::string("/memory/") + name).c_str()); };
  const double peak = story.number("/predicted/peak_bytes");
  const bool isGpu = story.manifest.contains("device");
  story.tell("memory", peak,
             "at most " + size(peak) + (isGpu ? " of the GPU, allocated" : ", allocated") + " once at start: weights " +
                 percent(part("weights"), peak) + ", cache " + percent(part("cache"), peak) +
                 ", arena of activations " + percent(part("arena"), peak) +
                 (isGpu ? ", the rest workspace of kernels, logits and what the driver takes"
                        : ", the rest scratch, logits, code and the runtime's own"));
  story.tell("weights", part("weights"),
             count(story.number("/model/parameters")) + " parameters, stored as " + storedText(story) + ", lie as " +
                 size(part("weights")) + layoutText(story.manifest));
  const double sequences = story.number("/limits/max_sequences"), tokens = story.number("/limits/max_context");
  story.tell("cache", part("cache"),
             size(part("cache")) + ": " + size(part("cache") / (sequences * tokens)) + " a token of " +
                 count(sequences) + " sequences of " + count(tokens) +
                 " tokens; --max-sequences and --max-context scale it");
}

/// "54 launches take 162 us, ".
std::string launchesText(const RemarkLine &step, double seconds) {
  return count(step.metrics.at("launches")) + " launches take " + format(Seconds(seconds)) + ", ";
}

/// What bounds a step, by the two times that its seconds are made of.
void tellSteps(Story &story) {
  for (const RemarkLine &each : story.of("attach-plan", "memory_s")) {
    const std::string step = each.text.substr(0, each.text.find(' '));
    const double arithmetic = each.metrics.at("compute_s"), memory = each.metrics.at("memory_s");
    const double launch = each.metrics.count("launch_s") ? each.metrics.at("launch_s") : 0; // of a GPU
    const std::string both[] = {format(Flops(each.metrics.at("flop"))) + " take " + format(Seconds(arithmetic)),
                                size(each.metrics.at("bytes")) + " take " + format(Seconds(memory))};
    const bool isByMemory = memory > arithmetic;
    story.tell(step.c_str(), each.metrics.at("bytes"),
               each.text.substr(step.size() + 4, each.text.find(':') - step.size() - 4) + " in at least " +
                   format(Seconds(each.metrics.at("seconds"))) + ", bound by " +
                   (launch > std::max(memory, arithmetic) ? "launches"
                    : isByMemory                          ? "memory"
                                                          : "arithmetic") +
                   ": " + (launch > 0 ? launchesText(each, launch) : "") + both[isByMemory] + ", " + both[!isByMemory]);
  }
}

void tellArena(Story &story) {
  const Remarks largest = story.of("assign-memory", "offset");
  if (largest.empty())
    return;
  double buffers = 0;
  for (const RemarkLine &each : story.of("assign-memory", "buffers"))
    buffers += each.metrics.at("buffers");
  const double peak = story.number("/memory/arena");
  const std::string &text = largest.front().text;
  story.tell("arena", peak,
             count(buffers) + " buffers share " + size(peak) + "; at the fullest moment the largest is " +
                 size(largest.front().metrics.at("bytes")) + ", that of " + text.substr(text.find('@')) +
                 "; --step-tokens scales it");
}

void tellAttention(Story &story) {
  const Remarks forms = story.of("absorb-mla", "expanded_from");
  if (forms.empty())
    return;
  const json &sizes = story.manifest.at("spec").at("attention");
  auto width = [&](const char *name) { return sizes.at(name).get<double>(); };
  const double kept = width("latent") + width("rope");
  const double whole = width("heads") * (width("nope") + width("rope") + width("value"));
  const double cache = story.number("/memory/cache"), layers = story.number("/model/layers");
  story.tell("latent attention", cache * (whole / kept - 1),
             "in " + count(layers) + " of " + count(layers) + " layers the cache keeps latents, " + count(kept) +
                 " elements a token instead of " + count(whole) + " of keys and values; " + forms.front().text);
}

void tellExperts(Story &story) {
  const Remarks sharded = story.of("shard-experts", "experts");
  if (sharded.empty())
    return;
  const double layers = double(story.manifest.at("model").at("moe_layers").size());
  const double experts = sharded.front().metrics.at("experts"), top = sharded.front().metrics.at("top_k");
  double bytes = 0;
  for (const json &kernel : story.manifest.at("kernels"))
    bytes += layers * kernel.at("cost").value("expert_bytes", 0.0);
  const double ranks = story.manifest.at("topology").value("ranks", 1.0);
  if (ranks > 1 && story.manifest.contains("placement")) {
    const double slots = story.number("/placement/slots") / ranks;
    story.tell("experts", bytes,
               "the " + count(story.number("/placement/experts")) + " of each of " + count(layers) +
                   " layers are divided among " + count(ranks) + " ranks, " + count(slots) +
                   " slots each: " + size(bytes) + " on a rank; rows travel to the ranks of their experts and back");
    return;
  }
  story.tell("experts", bytes,
             "all " + count(experts) + " of each of " + count(layers) + " layers are on " +
                 (ranks > 1 ? "each" : "one") + " rank, so nothing is exchanged: " + size(bytes) +
                 ", of which a token reads " + count(top) + " a layer, " + size(bytes * top / experts));
}

void tellTiles(Story &story) {
  std::map<std::string, int> byTile;
  std::set<std::string> chosen;
  size_t all = 0;
  for (const RemarkLine &each : story.of("choose-tiles", "cycles_per_thousand_multiply_adds")) {
    ++all;
    const size_t colon = each.text.find(": "), of = each.text.find(" of ", colon);
    if (colon == each.text.npos || of == each.text.npos || each.text.compare(of, 11, " of 1 tiles") == 0)
      continue;
    chosen.insert(quoted(each.text));
    ++byTile[each.text.substr(colon + 2, of - colon - 2) + " at " +
             formatNumber(each.metrics.at("cycles_per_thousand_multiply_adds"), 3)];
  }
  if (chosen.empty())
    return;
  std::string tiles;
  for (const auto &[tile, kernels] : byTile)
    tiles += (tiles.empty() ? "" : ", ") + count(kernels) + " " + tile;
  story.tell(
      "tiles", story.moved(chosen),
      count(double(chosen.size())) + " of " + count(double(all)) +
          " kernels have the cheapest of several tiles (rows x vectors, cycles per thousand multiply-adds): " + tiles);
}

void tellFusion(Story &story) {
  const Remarks fused = story.of("form-kernels", "ops");
  std::set<std::string> kernels;
  double ops = 0;
  for (const RemarkLine &each : fused)
    if (kernels.insert(quoted(each.text)).second)
      ops += each.metrics.at("ops");
  if (!kernels.empty())
    story.tell("fusion", story.moved(kernels),
               count(ops) + " ops are " + count(double(kernels.size())) + " of the " +
                   count(double(story.manifest.at("kernels").size())) +
                   " kernels, so what one hands to the next stays in registers");
}

/// How often a step calls a function: a layer's once for each of its layers.
double timesOf(const json &spec, const std::string &function) {
  double layers = 0;
  for (const json &run : spec.at("layers"))
    if (run.at("kind").get<std::string>() + "_layer" == function)
      layers += run.at("to").get<double>() - run.at("from").get<double>();
  return std::max(1.0, layers);
}

void tellLaunches(Story &story) {
  double launches = 0, barriers = 0, bytes = 0;
  for (const RemarkLine &each : story.of("group-launches", "barriers")) {
    const double times = timesOf(story.manifest.at("spec"), quoted(each.text));
    launches += times * each.metrics.at("calls");
    barriers += times * each.metrics.at("barriers");
  }
  for (const RemarkLine &each : story.of("step-cost", "activation_bytes"))
    bytes += each.metrics.at("activation_bytes");
  if (launches > 0)
    story.tell("barriers", bytes,
               count(launches) + " launches of a step meet at " + count(barriers) +
                   " barriers, since those of which none writes what another touches have one together");
}

void tellWorkers(Story &story) {
  std::set<std::string> kernels;
  double launches = 0;
  for (const RemarkLine &each : story.of("share-launches", "idle"))
    kernels.insert(each.text.substr(1, each.text.find(':') - 1));
  for (const RemarkLine &each : story.of("step-cost", "launches"))
    if (kernels.count(quoted(each.text)))
      launches += each.metrics.at("launches");
  if (!kernels.empty())
    story.tell("idle workers", story.moved(kernels),
               "with fewer items than the " + count(story.number("/topology/cores")) +
                   " workers in a step of one token: " + count(double(kernels.size())) + " of " +
                   count(double(story.manifest.at("kernels").size())) + " kernels, in " + count(launches) +
                   " of its launches");
  for (const RemarkLine &each : story.remarks)
    if (each.pass == "place-workers")
      story.tell("NUMA nodes", story.number("/memory/weights"), each.text);
}

void tellRest(Story &story) {
  for (const RemarkLine &each : story.of("prefetch-weights", "max_bytes"))
    story.tell("prefetch", each.metrics.at("launches") * each.metrics.at("max_bytes"), each.text);
  for (const RemarkLine &each : story.of("set-numerics", "bytes_per_activation"))
    story.tell("arithmetic", story.number("/memory/arena") + story.number("/memory/cache"), each.text);
  for (const RemarkLine &each : story.of("set-numerics", "reductions"))
    story.tell("numerics", story.number("/memory/logits"),
               each.text +
                   ", so logits do not depend on batch, chunk, threads or tiles: " + story.string("/numerics/id"));
}

} // namespace

/// Reads "name = number, ...}". Returns what is none of it, or "".
static std::string readMetrics(const std::string &text, std::map<std::string, double> &metrics) {
  std::stringstream pairs(text.substr(0, text.rfind('}')));
  for (std::string pair; std::getline(pairs, pair, ',');) {
    pair.erase(0, pair.find_first_not_of(' '));
    const size_t equals = pair.find(" = ");
    if (equals == pair.npos)
      continue;
    char *end = nullptr;
    const double number = std::strtod(pair.c_str() + equals + 3, &end);
    if (end == pair.c_str() + equals + 3 || *end != '\0' || !std::isfinite(number))
      return pair;
    metrics[pair.substr(0, equals)] = number;
  }
  return "";
}

Expected<std::vector<RemarkLine>> k2c::readRemarks(const std::string &text, const std::string &file) {
  std::vector<RemarkLine> remarks;
  std::stringstream lines(text);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const size_t pass = line.find("] "), metrics = line.rfind(" {");
    if (line.empty() || line[0] != '[' || pass == line.npos)
      continue;
    RemarkLine remark{line.substr(1, pass - 1), line.substr(pass + 2, metrics - std::min(metrics, pass + 2)), {}};
    const std::string wrong = metrics == line.npos ? "" : readMetrics(line.substr(metrics + 2), remark.metrics);
    if (!wrong.empty())
      return Error{file + ":" + std::to_string(number), "'" + shortened(wrong) + "' is no finite number",
                   "compile the model again"};
    remarks.push_back(std::move(remark));
  }
  return remarks;
}

ordered_json k2c::toJson(const RemarkLine &remark) {
  return {{"pass", remark.pass}, {"text", remark.text}, {"metrics", remark.metrics}};
}

std::vector<Sentence> k2c::sentencesOf(const json &manifest, const std::vector<RemarkLine> &remarks) {
  Story story{manifest, remarks, {}};
  for (auto tell : {tellMemory, tellSteps, tellArena, tellAttention, tellExperts, tellTiles, tellFusion, tellLaunches,
                    tellWorkers, tellRest})
    tell(story);
  std::stable_sort(story.told.begin(), story.told.end(),
                   [](const Sentence &a, const Sentence &b) { return a.bytes > b.bytes; });
  return story.told;
}
