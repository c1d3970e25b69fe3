// `run perplexity`: how well the model predicts a text, read in windows of max_context tokens.
//
// Each window starts cold, and so does each list of a .json file; the first token is context only. nll is the mean of
// -log p over the predicted tokens.
#include "base/File.h"
#include "k2rt/Sampler.h"
#include "run/JsonWriter.h"
#include "run/Progress.h"
#include "run/Run.h"
#include <cmath>

namespace k2c::runtime {

static constexpr int64_t maxTextBytes = int64_t(256) << 20;

namespace {

/// The tokens of a text, or of each entry of a batch file when the file ends in .json.
Expected<Prompts> readTexts(const std::string &path, const std::string &folder) {
  if (path.size() > 5 && path.compare(path.size() - 5, 5, ".json") == 0) {
    PromptFlags flags;
    flags.batchFile = path;
    return readPrompts(flags, nullptr);
  }
  Expected<std::string> text = readUserFile(path, maxTextBytes);
  if (!text)
    return text.takeError();
  Expected<std::optional<Tokenizer>> tokenizer = openTokenizer(folder);
  if (!tokenizer)
    return tokenizer.takeError();
  if (!*tokenizer)
    return Error{path, "the bundle has no tokenizer", "give a .json file with a list of id lists"};
  Expected<std::vector<int32_t>> ids = (*tokenizer)->encode(*text, /*special=*/true);
  if (!ids)
    return ids.takeError();
  Prompts texts;
  texts.ids.push_back(std::move(*ids));
  return texts;
}

/// Error: a text whose first token is its last.
Status checkLengths(const Prompts &texts, const std::string &path) {
  for (size_t i = 0; i < texts.ids.size(); ++i)
    if (texts.ids[i].size() < 2)
      return Error{texts.isBatch ? path + ": [" + std::to_string(i) + "]" : path,
                   "has " + std::to_string(texts.ids[i].size()) + " tokens, at least 2 are needed", ""};
  return {};
}

Status readAll(Run &run, const Prompts &texts, double &total, int64_t &count) {
  const Manifest &manifest = run.bundle.manifest;
  const int64_t window = manifest.limits.max_context;
  int64_t tokens = 0;
  for (const std::vector<int32_t> &ids : texts.ids)
    tokens += static_cast<int64_t>(ids.size());
  Progress progress("perplexity", tokens);
  StepEvents events;
  events.logits = [&](const Sequence &sequence, int64_t position, const float *logits) {
    progress.advance(1);
    if (position + 1 == sequence.promptTokens)
      return;
    const int32_t next = sequence.ids[position + 1];
    total -= static_cast<double>(logProbabilities(logits, manifest.vocab, next, 0)[0].value);
    ++count;
  };
  Scheduler scheduler(run.engine(), std::move(events));
  for (const std::vector<int32_t> &ids : texts.ids)
    for (int64_t begin = 0; begin < static_cast<int64_t>(ids.size()); begin += window) {
      const int64_t end = std::min<int64_t>(begin + window, static_cast<int64_t>(ids.size()));
      Request request;
      request.logits = PromptLogits::all;
      request.prompt.assign(ids.begin() + begin, ids.begin() + end);
      if (Expected<int64_t> number = scheduler.add(std::move(request)); !number)
        return number.takeError();
      // One window at a time: the sum keeps one order whatever the limits are.
      if (Status done = scheduler.drain(); !done)
        return done;
    }
  return {};
}

Status printPerplexity(const RunOptions &options, const std::string &path) {
  Expected<Prompts> texts = readTexts(path, options.folder);
  if (!texts)
    return texts.takeError();
  if (Status enough = checkLengths(*texts, path); !enough)
    return enough;
  Expected<std::unique_ptr<Run>> run = Run::open(options);
  if (!run)
    return run.takeError();
  double total = 0;
  int64_t count = 0;
  if (Status done = (*run)->finish(readAll(**run, *texts, total, count)); !done)
    return done;
  const double nll = total / static_cast<double>(std::max<int64_t>(count, 1));
  if (options.json) {
    JsonWriter json(stdout);
    json.beginObject().key("tokens").value(count).key("nll").value(nll).key("ppl").value(std::exp(nll));
    json.endObject().endLine();
  } else {
    std::printf("%lld tokens, nll %.6f, perplexity %.4f\n", static_cast<long long>(count), nll, std::exp(nll));
  }
  return {};
}

} // namespace

void addPerplexity(CLI::App &app, RunOptions &options, Command &command) {
  CLI::App *perplexity = app.add_subcommand("perplexity", "measure how well the model predicts a text");
  auto path = std::make_shared<std::string>();
  perplexity->add_option("FILE", *path, "text; or .json: a list of id lists, each a text of its own")
      ->required()
      ->check(notEmpty());
  addRunFlags(*perplexity, options);
  perplexity->footer("Example: ./run perplexity wiki.txt --json");
  perplexity->callback(
      [path, &options, &command] { command = [path, &options] { return printPerplexity(options, *path); }; });
}

} // namespace k2c::runtime
