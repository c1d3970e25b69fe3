// `run bench`: prefill of one cold prompt, and decoding of B sequences side by side; medians over repeats.
//
// Every sequence really reads its own random prompt: an unread cache or equal prompts would flatter the numbers.
#include "host/BandwidthProbe.h"
#include "memory/Container.h"
#include "run/JsonWriter.h"
#include "run/Progress.h"
#include "run/Run.h"
#include "serve/Sampler.h"
#include <algorithm>

namespace k2rt {

namespace {

struct BenchFlags {
  int64_t prefill = 512, decode = 32, batch = 1, context = 128, repeat = 3;
  uint64_t seed = 0;
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

Status benchPrefill(Session &session, const BenchFlags &flags, int64_t repeat, Rates &rates) {
  Scheduler scheduler(session, {});
  Request request;
  request.prompt = randomIds(flags.prefill, session.manifest().vocab, flags.seed, repeat);
  if (Result<int64_t> number = scheduler.add(std::move(request)); !number)
    return number.takeError();
  const int64_t begin = Trace::nowNs();
  if (Status done = scheduler.drain(); !done)
    return done;
  rates.add(flags.prefill, Trace::nowNs() - begin);
  return {};
}

/// `steps`: steps per second, of each step alone.
Status benchDecode(Session &session, const BenchFlags &flags, int64_t repeat, Rates &rates, Rates &steps) {
  int64_t reading = flags.batch, newTokens = 0;
  StepEvents events;
  events.token = [&](const Sequence &sequence, int32_t, bool) {
    reading -= sequence.generated() == 1;
    ++newTokens;
    return true;
  };
  Scheduler scheduler(session, std::move(events));
  for (int64_t i = 0; i < flags.batch; ++i) {
    Request request;
    request.prompt =
        randomIds(std::max<int64_t>(flags.context, 1), session.manifest().vocab, flags.seed, repeat * flags.batch + i);
    // A sequence that has read its prompt early goes on while the others read: it needs room for that, too.
    request.maxNew = session.manifest().limits.max_context - static_cast<int64_t>(request.prompt.size()) + 1;
    request.ignoreEos = true;
    if (Result<int64_t> number = scheduler.add(std::move(request)); !number)
      return number.takeError();
  }
  while (reading > 0)
    if (Result<bool> more = scheduler.step(); !more)
      return more.takeError();
  newTokens = 0;
  const int64_t begin = Trace::nowNs();
  int64_t last = begin;
  for (int64_t i = 0; i < flags.decode; ++i) {
    if (Result<bool> more = scheduler.step(); !more)
      return more.takeError();
    const int64_t now = Trace::nowNs();
    steps.add(1, now - last);
    last = now;
  }
  rates.add(newTokens, last - begin);
  scheduler.abandon();
  return {};
}

Status checkFlags(const BenchFlags &flags, const Manifest &manifest) {
  const int64_t context = manifest.limits.max_context;
  struct Limit {
    const char *flag;
    int64_t value, most;
    const char *what;
  };
  const Limit limits[] = {
      {"--prefill", flags.prefill, context, "max_context"},
      {"--batch", flags.batch, manifest.limits.max_sequences, "max_sequences"},
      {"--context plus --decode", std::max<int64_t>(flags.context, 1) + flags.decode, context, "max_context"}};
  for (const Limit &limit : limits)
    if (limit.value > limit.most)
      return Error{K2RT_INVALID_ARGUMENT, limit.flag,
                   "is " + std::to_string(limit.value) + ", the bundle's " + limit.what + " is " +
                       std::to_string(limit.most),
                   "choose less, or compile with larger limits"};
  return {};
}

void printRates(JsonWriter &json, const char *key, Rates &rates) {
  json.key(key).beginObject().key("median").value(rates.median());
  json.key("min").value(rates.least()).key("max").value(rates.most()).endObject();
}

void printResults(const RunOptions &options, const BenchFlags &flags, Session &session, Rates &prefill, Rates &decode,
                  Rates &steps) {
  const Manifest &manifest = session.manifest();
  const Bandwidth bandwidth = probeBandwidth(session);
  const int64_t peak = peakResidentBytes(), anonymous = anonymousResidentBytes();
  if (!options.json) {
    std::printf("prefill %lld tokens: %.1f tokens/s (%.1f .. %.1f)\ndecode %lld x %lld after %lld: %.1f tokens/s "
                "(%.1f .. %.1f)\n%s read %.2f GB/s, peak %lld bytes, %d threads, %lld bytes of files in huge pages\n",
                static_cast<long long>(flags.prefill), prefill.median(), prefill.least(), prefill.most(),
                static_cast<long long>(flags.batch), static_cast<long long>(flags.decode),
                static_cast<long long>(flags.context), decode.median(), decode.least(), decode.most(),
                bandwidth.isOfCaches() ? "caches" : "memory", bandwidth.bytesPerSecond / 1e9,
                static_cast<long long>(peak), session.threads(), static_cast<long long>(hugeFileBytes()));
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
  json.key("anonymous_certified_bytes").value(manifest.memory.anonymousBytes(session.threads()));
  json.key("huge_file_bytes").value(hugeFileBytes());
  json.key("threads").value(session.threads()).key("repeat").value(flags.repeat);
  json.key("prefill_tokens").value(flags.prefill).key("decode_tokens").value(flags.decode);
  json.key("batch").value(flags.batch).key("context").value(flags.context);
  printRates(json, "prefill", prefill);
  printRates(json, "decode", decode);
  if (!steps.values.empty()) {
    json.key("decode_step_s").beginObject().key("median").value(1 / steps.median());
    json.key("min").value(1 / steps.most()).key("max").value(1 / steps.least()).endObject();
  }
  json.endObject().endLine();
}

Status runBench(const RunOptions &options, BenchFlags flags, bool defaultSizes) {
  Result<std::unique_ptr<Run>> run = Run::open(options);
  if (!run)
    return run.takeError();
  Session &session = *(*run)->session;
  if (defaultSizes) {
    const int64_t context = session.manifest().limits.max_context;
    flags.prefill = std::min(flags.prefill, context);
    flags.context = std::min(flags.context, std::max<int64_t>(1, context / 2));
    flags.decode = std::min(flags.decode, std::max<int64_t>(1, context - flags.context));
  }
  if (Status fits = checkFlags(flags, session.manifest()); !fits)
    return fits;
  Rates prefill, decode, steps;
  {
    const int64_t perRepeat = flags.prefill + flags.batch * flags.decode;
    Progress progress("bench", flags.repeat * perRepeat);
    for (int64_t repeat = 0; repeat < flags.repeat; ++repeat) {
      if (flags.prefill > 0)
        if (Status done = benchPrefill(session, flags, repeat, prefill); !done)
          return done;
      if (flags.decode > 0)
        if (Status done = benchDecode(session, flags, repeat, decode, steps); !done)
          return done;
      progress.advance(perRepeat);
    }
  }
  if (Status traced = session.finishTrace(); !traced)
    return traced;
  printResults(options, flags, session, prefill, decode, steps);
  return {};
}

} // namespace

void addBench(CLI::App &app, RunOptions &options, Command &command) {
  CLI::App *bench = app.add_subcommand("bench", "measure prefill and decoding speed");
  auto flags = std::make_shared<BenchFlags>();
  std::vector<CLI::Option *> sizes;
  sizes.push_back(bench->add_option("--prefill", flags->prefill, "tokens of the prompt that is timed (default 512)"));
  sizes.push_back(bench->add_option("--decode", flags->decode, "decoding steps that are timed (default 32)"));
  sizes.push_back(bench->add_option("--batch", flags->batch, "sequences decoded together (default 1)"));
  sizes.push_back(bench->add_option("--context", flags->context, "tokens each of them has read before (default 128)"));
  sizes.push_back(bench->add_option("--repeat", flags->repeat, "repeats; medians are printed (default 3)"));
  for (CLI::Option *size : sizes)
    size->check(atLeast(0));
  sizes[2]->check(atLeast(1));
  sizes[4]->check(atLeast(1));
  bench->add_option("--seed", flags->seed, "of the random prompts");
  addRunFlags(*bench, options);
  bench->footer("Example: ./run bench --prefill 512 --decode 64 --batch 8 --context 128 --json");
  bench->callback([=, &options, &command] {
    const bool chosen = sizes[0]->count() + sizes[1]->count() + sizes[3]->count() > 0;
    command = [=, &options] { return runBench(options, *flags, !chosen); };
  });
}

} // namespace k2rt
