// `run bench`: prefill of cold prompts, and decoding of B sequences side by side; medians over repeats.
//
// Every sequence really reads its own random prompt: an unread cache or equal prompts would flatter the numbers.
// Decoding is timed from the moment when the last sequence has read its prompt; the others go on generating up to
// there, so each needs room for more tokens than are timed. End-of-sequence tokens are ignored, or the batch would
// shrink by chance.
//
// Steps are timed one by one as well, since a median of steps is not disturbed by one that another process held up.
// Sizes default to what the bundle's limits hold; a size that was asked for and does not fit is refused rather than
// cut. Beside the speeds stand the bandwidth that the machine has now and the bytes of memory used, which explain
// them.
#include "base/Container.h"
#include "base/FormatBytes.h"
#include "device/cpu/BandwidthProbe.h"
#include "device/cpu/FirstTouch.h"
#include "k2rt/Sampler.h"
#include "run/JsonWriter.h"
#include "run/Progress.h"
#include "run/Run.h"
#include <algorithm>
#include <optional>

namespace k2c::runtime {

namespace {

struct BenchFlags {
  std::optional<int64_t> prefill, decode, context;
  int64_t prompts = 1, batch = 1, repeat = 3;
  uint64_t seed = 0;
};

/// Sizes of a run that the bundle's limits hold.
struct BenchSizes {
  int64_t prefill, prompts, decode, batch, context, repeat;
  uint64_t seed;
};

/// Tokens per second of the repeats.
struct Rates {
  std::vector<double> values;

  void add(int64_t tokens, int64_t ns) {
    values.push_back(static_cast<double>(tokens) * 1e9 / std::max<double>(1, static_cast<double>(ns)));
  }
  double median() {
    if (values.empty())
      return 0;
    std::sort(values.begin(), values.end());
    const size_t n = values.size();
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
  }
  double least() const { return values.empty() ? 0 : *std::min_element(values.begin(), values.end()); }
  double most() const { return values.empty() ? 0 : *std::max_element(values.begin(), values.end()); }
};

std::vector<int32_t> randomIds(int64_t count, int64_t vocab, uint64_t seed, int64_t sequence) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>(uniform(seed, sequence, i) * static_cast<double>(vocab)));
  return ids;
}

Status benchPrefill(Engine &engine, const BenchSizes &sizes, int64_t repeat, Rates &rates) {
  Scheduler scheduler(engine, {});
  for (int64_t i = 0; i < sizes.prompts; ++i) {
    Request request;
    request.prompt = randomIds(sizes.prefill, engine.manifest().vocab, sizes.seed, repeat * sizes.prompts + i);
    if (Expected<int64_t> number = scheduler.add(std::move(request)); !number)
      return number.takeError();
  }
  const int64_t begin = Trace::nowNs();
  if (Status done = scheduler.drain(); !done)
    return done;
  rates.add(sizes.prompts * sizes.prefill, Trace::nowNs() - begin);
  return {};
}

/// `steps`: steps per second, of each step alone.
Status benchDecode(Engine &engine, const BenchSizes &sizes, int64_t repeat, Rates &rates, Rates &steps) {
  int64_t reading = sizes.batch, newTokens = 0;
  StepEvents events;
  events.token = [&](const Sequence &sequence, int32_t, bool) {
    reading -= sequence.generated() == 1;
    ++newTokens;
    return true;
  };
  Scheduler scheduler(engine, std::move(events));
  for (int64_t i = 0; i < sizes.batch; ++i) {
    Request request;
    request.prompt =
        randomIds(std::max<int64_t>(sizes.context, 1), engine.manifest().vocab, sizes.seed, repeat * sizes.batch + i);
    // A sequence that has read its prompt early goes on while the others read: it needs room for that, too.
    request.maxNew = engine.manifest().limits.max_context - static_cast<int64_t>(request.prompt.size()) + 1;
    request.ignoreEos = true;
    if (Expected<int64_t> number = scheduler.add(std::move(request)); !number)
      return number.takeError();
  }
  while (reading > 0)
    if (Expected<bool> more = scheduler.step(); !more)
      return more.takeError();
  newTokens = 0;
  const int64_t begin = Trace::nowNs();
  int64_t last = begin, counted = 0;
  while (newTokens < sizes.batch * sizes.decode) {
    Expected<bool> more = scheduler.step();
    if (!more)
      return more.takeError();
    if (!*more)
      break; // those that began early have no room left
    if (newTokens - counted < sizes.batch)
      continue; // of ranks in stages, some microbatches have not come round
    counted = newTokens;
    const int64_t now = Trace::nowNs();
    steps.add(1, now - last);
    last = now;
  }
  rates.add(newTokens, Trace::nowNs() - begin);
  return scheduler.abandon();
}

/// What was chosen, and the rest as far as the context reaches. Error: more than the bundle's limits hold.
Expected<BenchSizes> sizesOf(const BenchFlags &flags, const Manifest &manifest) {
  const k2rt_limits &limits = manifest.limits;
  const int64_t most = limits.max_context;
  const auto refuse = [](const std::string &flag, const std::string &value, const char *what, int64_t limit) {
    return Error{flag, "is " + value + ", the bundle's " + what + " is " + std::to_string(limit),
                 "choose less, or compile with larger limits"};
  };
  const std::pair<const char *, std::optional<int64_t>> chosen[] = {
      {"--prefill", flags.prefill}, {"--decode", flags.decode}, {"--context", flags.context}};
  for (const auto &[flag, value] : chosen)
    if (value && *value > most)
      return refuse(flag, std::to_string(*value), "max_context", most);
  const std::pair<const char *, int64_t> sideBySide[] = {{"--prompts", flags.prompts}, {"--batch", flags.batch}};
  for (const auto &[flag, value] : sideBySide)
    if (value > limits.max_sequences * manifest.ranks.dataRanks())
      return refuse(flag, std::to_string(value),
                    manifest.ranks.areSeveral() ? "max_sequences of all ranks" : "max_sequences",
                    limits.max_sequences * manifest.ranks.dataRanks());
  BenchSizes sizes{};
  sizes.prefill = flags.prefill.value_or(std::min<int64_t>(512, most));
  sizes.prompts = flags.prompts;
  sizes.batch = flags.batch;
  sizes.repeat = flags.repeat;
  sizes.seed = flags.seed;
  const int64_t half = std::max<int64_t>(1, most / 2);
  const int64_t room = most - flags.decode.value_or(0); // for the context, when the steps are given
  sizes.context = flags.context.value_or(std::clamp<int64_t>(flags.decode ? room : half, 1, 128));
  const int64_t read = std::max<int64_t>(sizes.context, 1);
  sizes.decode = flags.decode.value_or(std::clamp<int64_t>(most - read, 1, 32));
  if (read + sizes.decode > most)
    return refuse("--context plus --decode", std::to_string(read + sizes.decode), "max_context", most);
  return sizes;
}

void printRates(JsonWriter &json, const char *key, Rates &rates) {
  json.key(key).beginObject().key("median").value(rates.median());
  json.key("min").value(rates.least()).key("max").value(rates.most()).endObject();
}

/// Memory of the process while all ranks run.
struct Residence {
  int64_t peak = peakResidentBytes(), anonymous = anonymousResidentBytes();
};

/// Of all collectives of the program's layers, all ranks together; and what each rank has counted.
struct Communication {
  double seconds = 0, waitedSeconds = 0;
  int64_t payloadBytes = 0;
  std::vector<RankCounters> ranks;
};

/// While other ranks are there. Leaves none where the program has one rank.
Status addUp(Engine &engine, std::optional<Communication> &communication) {
  if (!engine.manifest().ranks.areSeveral())
    return {};
  Expected<std::vector<RankCounters>> all = engine.counters();
  if (!all)
    return all.takeError();
  Communication &sum = communication.emplace();
  sum.ranks = std::move(*all);
  for (const RankCounters &ofRank : sum.ranks)
    for (const auto &[key, site] : ofRank.exchanged.sites()) {
      if (key.second < 0)
        continue;
      sum.seconds += site.seconds;
      sum.waitedSeconds += site.waitedSeconds;
      sum.payloadBytes += site.total().payloadBytes;
    }
  return {};
}

void printCommunication(JsonWriter &json, const Communication &of) {
  json.key("communication").beginObject().key("seconds").value(of.seconds).key("waited_s").value(of.waitedSeconds);
  json.key("hidden_s").value(of.seconds - of.waitedSeconds).key("payload_bytes").value(of.payloadBytes).endObject();
  json.key("ranks").beginList();
  for (size_t rank = 0; rank < of.ranks.size(); ++rank) {
    json.beginObject().key("rank").value(static_cast<int64_t>(rank)).key("busy_s").value(of.ranks[rank].busySeconds);
    json.key("peak_rss_bytes").value(of.ranks[rank].peakResidentBytes).endObject();
  }
  json.endList();
}

void printResults(const RunOptions &options, const BenchSizes &sizes, Run &run, const Residence &memory,
                  const std::optional<Communication> &communication, Rates &prefill, Rates &decode, Rates &steps) {
  const Manifest &manifest = run.bundle.manifest;
  const Bandwidth bandwidth = run.opened.cpu ? probeBandwidth(*run.opened.cpu) : Bandwidth();
  const int32_t threads = run.opened.cpu ? run.opened.cpu->workers() : 0;
  const auto &[peak, anonymous] = memory;
  const int64_t huge = hugeWeightBytes(run.bundle.weights, std::numeric_limits<int64_t>::max()).value_or(0);
  if (!options.json) {
    std::printf(
        "prefill %lld x %lld tokens: %.1f tokens/s (%.1f .. %.1f)\ndecode %lld x %lld after %lld: %.1f tokens/s "
        "(%.1f .. %.1f)\n%s read %.2f GB/s, peak %s, %d threads, %s of weights in huge pages\n",
        static_cast<long long>(sizes.prompts), static_cast<long long>(sizes.prefill), prefill.median(), prefill.least(),
        prefill.most(), static_cast<long long>(sizes.batch), static_cast<long long>(sizes.decode),
        static_cast<long long>(sizes.context), decode.median(), decode.least(), decode.most(),
        bandwidth.isOfCaches() ? "caches" : "memory", bandwidth.bytesPerSecond / 1e9, formatBytes(peak).c_str(),
        threads, formatBytes(huge).c_str());
    return;
  }
  JsonWriter json(stdout);
  json.beginObject().key("prefill_tokens_per_s").value(prefill.median());
  json.key("decode_tokens_per_s").value(decode.median());
  json.key("bytes_per_token").value(manifest.bytesPerToken);
  json.key("bandwidth_probe_bytes_per_s").value(bandwidth.bytesPerSecond);
  json.key("bandwidth_probe_bytes").value(bandwidth.bytes).key("cache_bytes").value(bandwidth.cacheBytes);
  json.key("bandwidth_probe_of").value(bandwidth.isOfCaches() ? "caches" : "memory");
  json.key("peak_rss_bytes").value(peak).key("predicted").raw(manifest.predictedJson);
  json.key("anonymous_rss_bytes").value(anonymous);
  json.key("anonymous_certified_bytes").value(manifest.ranks.count * manifest.memory.anonymousBytes(threads));
  json.key("huge_file_bytes").value(huge);
  json.key("threads").value(threads).key("repeat").value(sizes.repeat);
  json.key("prompts").value(sizes.prompts);
  json.key("prefill_tokens").value(sizes.prefill).key("decode_tokens").value(sizes.decode);
  json.key("batch").value(sizes.batch).key("context").value(sizes.context);
  printRates(json, "prefill", prefill);
  printRates(json, "decode", decode);
  if (!steps.values.empty()) {
    json.key("decode_step_s").beginObject().key("median").value(1 / steps.median());
    json.key("min").value(1 / steps.most()).key("max").value(1 / steps.least()).endObject();
  }
  if (communication)
    printCommunication(json, *communication);
  json.endObject().endLine();
}

Status benchAll(Engine &engine, const BenchSizes &sizes, Rates &prefill, Rates &decode, Rates &steps) {
  const int64_t perRepeat = sizes.prompts * sizes.prefill + sizes.batch * sizes.decode;
  Progress progress("bench", sizes.repeat * perRepeat);
  for (int64_t repeat = 0; repeat < sizes.repeat; ++repeat) {
    if (sizes.prefill > 0)
      if (Status done = benchPrefill(engine, sizes, repeat, prefill); !done)
        return done;
    if (sizes.decode > 0)
      if (Status done = benchDecode(engine, sizes, repeat, decode, steps); !done)
        return done;
    progress.advance(perRepeat);
  }
  return {};
}

Status runBench(const RunOptions &options, const BenchFlags &flags) {
  Expected<std::unique_ptr<Run>> run = Run::open(options);
  if (!run)
    return run.takeError();
  Engine &engine = (*run)->engine();
  Expected<BenchSizes> fitting = sizesOf(flags, engine.manifest());
  if (!fitting)
    return fitting.takeError();
  Rates prefill, decode, steps;
  Status measured = benchAll(engine, *fitting, prefill, decode, steps);
  const Residence memory; // other ranks give theirs back at the end
  std::optional<Communication> communication;
  if (measured)
    measured = addUp(engine, communication);
  if (Status done = (*run)->finish(std::move(measured)); !done)
    return done;
  printResults(options, *fitting, **run, memory, communication, prefill, decode, steps);
  return {};
}

} // namespace

void addBench(CLI::App &app, RunOptions &options, Command &command) {
  CLI::App *bench = app.add_subcommand("bench", "measure prefill and decoding speed");
  auto flags = std::make_shared<BenchFlags>();
  bench->add_option("--prefill", flags->prefill, "tokens of each prompt that is timed (default: 512 if they fit)")
      ->transform(wholeFrom(0));
  bench->add_option("--prompts", flags->prompts, "prompts that are read together (default 1)")->transform(wholeFrom(1));
  bench->add_option("--decode", flags->decode, "decoding steps that are timed (default: 32 if they fit)")
      ->transform(wholeFrom(0));
  bench->add_option("--batch", flags->batch, "sequences decoded together (default 1)")->transform(wholeFrom(1));
  bench->add_option("--context", flags->context, "tokens each of them has read before (default: 128 if they fit)")
      ->transform(wholeFrom(0));
  bench->add_option("--repeat", flags->repeat, "repeats; medians are printed (default 3)")
      ->transform(wholeFrom(1, 1000000));
  bench->add_option("--seed", flags->seed, "of the random prompts")
      ->transform(wholeFrom(0, std::numeric_limits<uint64_t>::max()));
  addRunFlags(*bench, options);
  bench->footer("Example: ./run bench --prefill 512 --decode 64 --batch 8 --context 128 --json");
  bench->callback([flags, &options, &command] { command = [flags, &options] { return runBench(options, *flags); }; });
}

} // namespace k2c::runtime
