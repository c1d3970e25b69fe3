//===- ReadWorkload.cpp - Workload files --------------------------------------===//
//
// One function a section. A section remembers the first mistake, so that each is a list of assignments.
//
//===----------------------------------------------------------------------===//

#include "base/Json.h"
#include "base/Utf8.h"
#include "k2c/Cluster/Quantity.h"
#include "k2c/Planner/Workload.h"
#include "k2c/Support/Join.h"
#include "k2c/Support/YamlMapping.h"

#include <cmath>

using namespace k2c;

namespace {

constexpr double maxTokens = 1 << 24;

/// A mapping of the file; most keys may be absent.
class Section : public YamlMapping {
public:
  using YamlMapping::YamlMapping;

  YAML::Node operator[](const char *key) const { return node[key]; }

  /// A number from `least` to `most`, when the key is there.
  template <class T> void number(const char *key, double least, double most, T &to) {
    if (!has(key))
      return;
    double value = numberAt(node[key], key, least, most, std::is_integral_v<T>);
    if (!mistake)
      to = T(value);
  }
  template <class T> void number(const char *key, double least, double most, std::optional<T> &to) {
    if (has(key))
      number(key, least, most, to.emplace());
  }
  void text(const char *key, std::string &to) {
    if (has(key))
      YamlMapping::text(key, to);
  }
  /// Bytes or seconds, with their unit.
  void quantity(const char *key, cluster::Dimension dimension, double &to) {
    std::string written;
    text(key, written);
    if (!written.empty())
      keep(cluster::parseQuantity(written, dimension, document.place(node[key])), to);
  }
  void seconds(const char *key, std::optional<Seconds> &to) {
    double value = 0;
    quantity(key, cluster::Dimension::Seconds, value);
    if (value > 0)
      to = Seconds(value);
  }
  /// Index of the word among `words`.
  template <class E> void word(const char *key, const std::vector<std::string> &words, E &to) {
    std::string written;
    text(key, written);
    if (!has(key))
      return;
    const auto found = std::find(words.begin(), words.end(), written);
    if (found == words.end())
      return fail(node[key], std::string(key) + " is '" + shortened(written) + "'", "use one of " + joined(words));
    to = E(found - words.begin());
  }
  /// 500, {median: m, sigma: s, most: n} or {histogram: [[tokens, share], ...]}; lengths from `least`.
  void lengths(const char *key, double least, Lengths &to);
  void loads(const char *key, ExpertLoad &to);

  double numberAt(const YAML::Node &at, const std::string &name, double least, double most, bool whole = false);
};

std::string plain(double number) { return cluster::printNumber(number); }

double Section::numberAt(const YAML::Node &at, const std::string &name, double least, double most, bool whole) {
  Expected<double> value = document.asDouble(at, name);
  if (!value) {
    keep(Status(value.takeError()));
    return least;
  }
  if (!(*value >= least && *value <= most))
    fail(at, name + " is " + shortened(at.Scalar()) + ", must be " + plain(least) + " to " + plain(most));
  else if (whole && *value != std::floor(*value))
    fail(at, name + " is " + shortened(at.Scalar()) + ", must be a whole number");
  else
    return *value;
  return least; // whatever was written, it may not fit the type that the caller wants
}

void Section::lengths(const char *key, double least, Lengths &to) {
  if (!has(key))
    return;
  const YAML::Node child = node[key];
  if (!child.IsMap()) {
    double tokens = numberAt(child, key, least, maxTokens, true);
    if (!mistake)
      to = Lengths::fixed(int64_t(tokens));
    return;
  }
  Section in(document, child, key, {"median", "sigma", "most", "histogram"});
  if (in.has("histogram")) {
    std::vector<Lengths::Point> points;
    double sum = 0;
    const YAML::Node list = child["histogram"];
    if (!list.IsSequence() || list.size() == 0 || list.size() > 65536)
      in.fail(list, "histogram must be a list of 1 to 65536 pairs [tokens, share]");
    for (const YAML::Node &pair : list) {
      if (in.mistake)
        break;
      if (!pair.IsSequence() || pair.size() != 2) {
        in.fail(pair, "must be a pair [tokens, share]");
        break;
      }
      points.push_back(
          {int64_t(in.numberAt(pair[0], "tokens", least, maxTokens, true)), in.numberAt(pair[1], "share", 0, 1e12)});
      sum += points.back().share;
    }
    if (!in.mistake && sum <= 0)
      in.fail(list, "the shares sum to 0");
    if (!in.mistake)
      to = Lengths::histogram(std::move(points));
  } else {
    double median = 1, sigma = 1;
    int64_t most = 1;
    for (const char *needed : {"median", "sigma", "most"})
      in.at(needed);
    in.number("median", std::max(1.0, least), maxTokens, median);
    in.number("sigma", 0, 4, sigma);
    in.number("most", std::max(1.0, least), maxTokens, most);
    if (!in.mistake)
      to = Lengths::logNormal(median, sigma, most);
  }
  take(in);
}

void Section::loads(const char *key, ExpertLoad &to) {
  if (!has(key))
    return;
  const YAML::Node list = node[key];
  if (!list.IsSequence() || list.size() == 0 || list.size() > 65536)
    return fail(list, std::string(key) + " must be a list of 1 to 65536 loads");
  double sum = 0;
  for (const YAML::Node &each : list) {
    to.push_back(float(numberAt(each, "a load", 0, 1e30)));
    sum += to.back();
  }
  if (!mistake && sum <= 0)
    fail(list, std::string(key) + " sums to 0");
}

void readServing(Section &in, ServeWorkload &serve) {
  in.lengths("prompt_tokens", 1, serve.prompt);
  in.lengths("output_tokens", 1, serve.output);
  if (in.has("multi_turn")) {
    Section turns(in.document, in["multi_turn"], "multi_turn", {"share", "history_tokens"});
    for (const char *key : {"share", "history_tokens"})
      turns.at(key);
    turns.number("share", 0, 1, serve.multiTurnShare);
    turns.lengths("history_tokens", 0, serve.history);
    in.take(turns);
  }
  in.number("cache_hit_rate", 0, 1, serve.cacheHitRate);
  in.number("arrival_rate", 1e-9, 1e9, serve.arrivalRate);
  in.number("batch", 1, 1 << 24, serve.batch);
  if (in.has("batch") && in.has("arrival_rate"))
    in.fail(in["batch"], "batch and arrival_rate both say how many sequences run", "keep one of them");
  if (in.has("targets")) {
    Section targets(in.document, in["targets"], "targets", {"first_token", "per_token"});
    targets.seconds("first_token", serve.timeToFirstToken);
    targets.seconds("per_token", serve.timePerToken);
    in.take(targets);
  }
  if (in.has("draft")) {
    Section draft(in.document, in["draft"], "draft", {"tokens", "acceptance"});
    draft.number("tokens", 0, 16, serve.draftTokens);
    draft.number("acceptance", 0, 1, serve.draftAcceptance);
    in.take(draft);
  }
  in.word("cache_transfer", {"layers", "whole"}, serve.cacheTransfer);
}

void readTraining(Section &in, TrainWorkload &train) {
  if (!in.has("train"))
    return;
  Section t(in.document, in["train"], "train",
            {"sequence_tokens", "batch_tokens", "total_tokens", "state_bytes", "buffers", "fragmentation"});
  t.number("sequence_tokens", 1, maxTokens, train.sequence);
  t.number("batch_tokens", 1, 1e12, train.batchTokens);
  t.number("total_tokens", 1, 1e18, train.totalTokens);
  if (t.has("state_bytes")) {
    Section bytes(in.document, t["state_bytes"], "state_bytes", {"weight", "gradient", "optimizer"});
    bytes.number("weight", 0, 64, train.bytes.weight);
    bytes.number("gradient", 0, 64, train.bytes.gradient);
    bytes.number("optimizer", 0, 64, train.bytes.optimizer);
    t.take(bytes);
  }
  t.quantity("buffers", cluster::Dimension::Bytes, train.buffers);
  t.number("fragmentation", 0, 10, train.fragmentation);
  in.take(t);
}

} // namespace

Expected<Workload> k2c::parseWorkload(const std::string &text, const std::string &file) {
  Expected<YamlDocument> document = parseYaml(text, file);
  if (!document)
    return document.takeError();
  Section in(*document, document->root, "the workload",
             {"k2workload", "name", "prompt_tokens", "output_tokens", "multi_turn", "cache_hit_rate", "arrival_rate",
              "batch", "targets", "draft", "cache_transfer", "routing", "expert_load", "alignment", "inefficiency",
              "dollars_per_device_hour", "reserve", "train"});
  Workload workload;
  int64_t format = 1;
  in.at("k2workload");
  in.number("k2workload", 1, 1, format);
  in.text("name", workload.name);
  readServing(in, workload.serve);
  readTraining(in, workload.train);
  if (in.has("routing"))
    in.word("routing", {"mean", "measured", "worst"}, workload.peakRouting.emplace());
  in.loads("expert_load", workload.expertLoad);
  in.number("alignment", 1, 65536, workload.alignment);
  if (in.has("inefficiency")) {
    Section each(*document, in["inefficiency"], "inefficiency", {"memory", "attention", "linears"});
    Inefficiency &to = workload.inefficiency.emplace();
    each.number("memory", 1, 1000, to.memory);
    each.number("attention", 1, 1000, to.attention);
    each.number("linears", 1, 1000, to.experts);
    in.take(each);
  }
  in.number("dollars_per_device_hour", 0, 1e9, workload.dollarsPerDeviceHour);
  in.number("reserve", 0, 0.95, workload.reserve);
  if (in.mistake)
    return std::move(*in.mistake);
  return workload;
}

Expected<Workload> k2c::loadWorkload(const std::string &path) {
  Expected<std::string> text = readTextFile(path, size_t(4) << 20);
  if (!text)
    return text.takeError();
  return parseWorkload(*text, path);
}
