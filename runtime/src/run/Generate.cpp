// `run generate`: prompts in, new tokens out, streamed as text or collected as JSON.
//
// The tokenizer is opened before the engine: reading it takes more memory than it keeps, and the engine's is not there
// yet. One that this build cannot read is an error only where text is needed, not for ids in and ids out. All prompts
// are checked against the bundle's limits before the first one is computed.
//
// A single prompt is printed as its tokens come. Of a batch, outputs are printed whole and in the order of the
// prompts, each as soon as those before it are complete, whichever finished first. Rates go to stderr, so that stdout
// is the result alone: prefill is timed from admission to the first new token, decoding from there to the last.
#include "k2rt/Sampler.h"
#include "run/GeneratedText.h"
#include "run/JsonWriter.h"
#include "run/Progress.h"
#include "run/Run.h"
#include <algorithm>

namespace k2c::runtime {

namespace {

constexpr int64_t defaultNewTokens = 128;

struct GenerateFlags {
  PromptFlags prompt;
  int64_t maxNew = -1; ///< -1: the default, as far as the context reaches
  bool ignoreEos = false;
  std::vector<std::string> stops;
  k2rt_ir_sampling sampling = {0, 1, 0, 0, 0, 0, 0};
  int64_t logprobs = 0;
};

/// What became of one prompt.
struct Output {
  std::vector<int32_t> promptIds, ids;
  GeneratedText text;
  Finish finish = Finish::running;
  int64_t beginNs = 0, firstNs = 0, lastNs = 0;
  std::vector<std::vector<LogProbability>> logprobs; ///< per new token: itself, then the most likely

  double prefillRate() const { return rate(promptIds.size(), firstNs - beginNs); }
  double decodeRate() const { return ids.size() > 1 ? rate(ids.size() - 1, lastNs - firstNs) : 0; }
  static double rate(size_t tokens, int64_t ns) { return ns > 0 ? tokens * 1e9 / static_cast<double>(ns) : 0; }
};

/// One generate command from prompts to outputs.
class Generation {
public:
  Generation(const RunOptions &options, const GenerateFlags &flags) : options(options), flags(flags) {}
  Status run();

private:
  int64_t maxNewFor(const std::vector<int32_t> &prompt) const;
  Status checkPrompts(const Prompts &prompts) const;
  StepEvents events();
  void printFinished();
  void printJson() const;
  void printJson(JsonWriter &json, const Output &output) const;

  const RunOptions &options;
  const GenerateFlags &flags;
  std::unique_ptr<Run> opened;
  std::optional<Tokenizer> tokenizer;
  std::vector<Output> outputs;
  bool isBatch = false;
  size_t shown = 0; ///< outputs printed so far, without --json
  const float *logits = nullptr;
  std::optional<Progress> progress;
};

int64_t Generation::maxNewFor(const std::vector<int32_t> &prompt) const {
  if (flags.maxNew >= 0)
    return flags.maxNew;
  const int64_t room = opened->bundle.manifest.limits.max_context - static_cast<int64_t>(prompt.size()) + 1;
  return std::max<int64_t>(std::min(defaultNewTokens, room), 1);
}

Status Generation::checkPrompts(const Prompts &prompts) const {
  if (!tokenizer && !flags.stops.empty())
    return Error{"--stop", "the bundle has no tokenizer", "use -n"};
  for (size_t i = 0; i < prompts.ids.size(); ++i) {
    const std::string place = prompts.isBatch ? *flags.prompt.batchFile + ": [" + std::to_string(i) + "]" : "prompt";
    if (Status fits = checkRequest(opened->bundle.manifest, prompts.ids[i], maxNewFor(prompts.ids[i]), place); !fits)
      return fits;
  }
  return {};
}

StepEvents Generation::events() {
  StepEvents events;
  if (flags.logprobs > 0)
    events.logits = [this](const Sequence &, int64_t, const float *row) { logits = row; };
  events.token = [this](const Sequence &sequence, int32_t id, bool isEos) {
    Output &output = outputs[sequence.number];
    output.lastNs = Trace::nowNs();
    if (output.ids.empty()) {
      output.beginNs = sequence.admittedNs;
      output.firstNs = output.lastNs;
    }
    output.ids.push_back(id);
    if (!tokenizer && !isBatch && !options.json) {
      std::printf(output.ids.size() > 1 ? " %d" : "%d", id);
      std::fflush(stdout);
    }
    progress->advance(1);
    if (flags.logprobs > 0)
      output.logprobs.push_back(logProbabilities(logits, opened->bundle.manifest.vocab, id, flags.logprobs));
    return isEos || output.text.push(id);
  };
  events.finished = [this](const Sequence &sequence) {
    outputs[sequence.number].finish = sequence.finish;
    outputs[sequence.number].text.finish();
    if (!options.json)
      printFinished();
  };
  return events;
}

/// Prints outputs in order as far as they are complete. What a single prompt gave is on the screen already.
void Generation::printFinished() {
  for (; shown < outputs.size() && outputs[shown].finish != Finish::running; ++shown) {
    const Output &output = outputs[shown];
    if (isBatch)
      std::printf("[%zu] ", shown);
    if (isBatch && tokenizer)
      std::fputs(output.text.text().c_str(), stdout);
    if (isBatch && !tokenizer)
      for (size_t i = 0; i < output.ids.size(); ++i)
        std::printf(i ? " %d" : "%d", output.ids[i]);
    std::fputc('\n', stdout);
    std::fflush(stdout);
    std::fprintf(stderr, "%zu prompt tokens at %.1f tokens/s, %zu new tokens at %.1f tokens/s\n",
                 output.promptIds.size(), output.prefillRate(), output.ids.size(), output.decodeRate());
  }
}

void Generation::printJson(JsonWriter &json, const Output &output) const {
  json.beginObject();
  json.key("prompt_ids").list(output.promptIds.data(), static_cast<int64_t>(output.promptIds.size()));
  json.key("ids").list(output.ids.data(), static_cast<int64_t>(output.ids.size()));
  json.key("text").value(output.text.text());
  json.key("finish").value(output.finish == Finish::stop ? "stop" : "length");
  if (flags.logprobs > 0) {
    json.key("logprobs").beginList();
    for (const auto &token : output.logprobs) {
      json.beginObject().key("id").value(token[0].id).key("logprob").value(token[0].value).key("top").beginList();
      for (size_t i = 1; i < token.size(); ++i)
        json.beginObject().key("id").value(token[i].id).key("logprob").value(token[i].value).endObject();
      json.endList().endObject();
    }
    json.endList();
  }
  json.key("prefill_tokens_per_s").value(output.prefillRate());
  json.key("decode_tokens_per_s").value(output.decodeRate());
  json.endObject();
}

void Generation::printJson() const {
  JsonWriter json(stdout);
  if (isBatch)
    json.beginList();
  for (const Output &output : outputs)
    printJson(json, output);
  if (isBatch)
    json.endList();
  json.endLine();
}

Status Generation::run() {
  // The tokenizer first: reading it takes more than it keeps, and the engine's memory is not there yet.
  Expected<std::optional<Tokenizer>> loaded = openTokenizer(options.folder);
  // Ids in and ids out need none: one that this build cannot read stands in the way of text only.
  const bool needsText = !(flags.prompt.ids || flags.prompt.batchFile) || !flags.stops.empty();
  if (!loaded && (needsText || loaded.error().code != K2RT_UNSUPPORTED))
    return loaded.takeError();
  if (loaded)
    tokenizer = std::move(*loaded);
  const Tokenizer *words = tokenizer ? &*tokenizer : nullptr;
  Expected<Prompts> prompts = readPrompts(flags.prompt, words);
  if (!prompts)
    return prompts.takeError();
  Expected<std::unique_ptr<Run>> run = Run::open(options);
  if (!run)
    return run.takeError();
  opened = std::move(*run);
  isBatch = prompts->isBatch;
  if (Status fits = checkPrompts(*prompts); !fits)
    return fits;
  Scheduler scheduler(opened->engine(), events());
  int64_t total = 0;
  for (size_t i = 0; i < prompts->ids.size(); ++i) {
    std::vector<int32_t> &prompt = prompts->ids[i];
    Request request;
    request.maxNew = maxNewFor(prompt);
    request.prompt = prompt;
    request.ignoreEos = flags.ignoreEos;
    request.sampling = flags.sampling;
    if (isBatch)
      request.sampling.seed = prompts->seeds[i].value_or(flags.sampling.seed);
    total += request.maxNew;
    FILE *stream = options.json || isBatch ? nullptr : stdout;
    outputs.push_back(Output{std::move(prompt), {}, {words, flags.stops, stream}, Finish::running, 0, 0, 0, {}});
    if (Expected<int64_t> number = scheduler.add(std::move(request)); !number)
      return number.takeError();
  }
  progress.emplace("generate", total);
  if (Status done = opened->drain(scheduler); !done)
    return done;
  progress.reset();
  if (options.json)
    printJson();
  return {};
}

void addSamplingFlags(CLI::App &command, k2rt_ir_sampling &sampling) {
  command.add_option("--temperature", sampling.temperature, "0: greedy (default)")->check(within(0.0, 1e6));
  command.add_option("--top-p", sampling.top_p, "smallest set of tokens with this probability")
      ->check(within(0.0, 1.0));
  command.add_option("--top-k", sampling.top_k, "the k most likely tokens; 0: all")
      ->transform(wholeFrom(0, std::numeric_limits<int32_t>::max()));
  command.add_option("--min-p", sampling.min_p, "tokens at least this likely, relative to the most likely")
      ->check(within(0.0, 1.0));
  command.add_option("--seed", sampling.seed, "of the random numbers, unless a batch entry has its own (default 0)")
      ->transform(wholeFrom(0, std::numeric_limits<uint64_t>::max()));
}

} // namespace

void addGenerate(CLI::App &app, RunOptions &options, Command &command) {
  CLI::App *generate = app.add_subcommand("generate", "continue a prompt");
  auto flags = std::make_shared<GenerateFlags>();
  addPromptFlags(*generate, flags->prompt, /*withText=*/true, /*withBatch=*/true);
  generate->add_option("-n,--max-new", flags->maxNew, "new tokens (default: 128, or what the context holds)")
      ->transform(wholeFrom(1));
  generate->add_flag("--ignore-eos", flags->ignoreEos, "generate exactly -n tokens");
  generate->add_option("--stop", flags->stops, "end before this text; may be repeated")->take_all()->check(notEmpty());
  addSamplingFlags(*generate, flags->sampling);
  addRunFlags(*generate, options);
  generate->add_option("--logprobs", flags->logprobs, "log-probabilities of this many tokens; needs --json")
      ->transform(wholeFrom(1, 1000))
      ->needs("--json");
  generate->footer("Example: ./run generate --prompt \"Once upon a time\" -n 64 --temperature 0.7 --seed 1");
  generate->callback(
      [flags, &options, &command] { command = [flags, &options] { return Generation(options, *flags).run(); }; });
}

} // namespace k2c::runtime
