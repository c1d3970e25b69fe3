// `run perplexity`: how well the model predicts a text, read in windows of max_context tokens.
//
// Each window starts cold, and so does each list of a .json file; the first token is context only. nll is the mean of
// -log p over the predicted tokens. Of several ranks each that has sequences reads a window of its own at a time, in
// each of its microbatches, and works out the probabilities itself: its logits, which are as many as the vocabulary for
// each token, stay where they are. Values are added up in the order of windows, so that the sum has the bits of one
// rank's.
#include "base/File.h"
#include "run/JsonWriter.h"
#include "run/Progress.h"
#include "run/Run.h"
#include <cmath>
#include <deque>

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

/// -log p of windows that are read side by side, added up one window after another.
class OrderedSum {
public:
  double total = 0;
  int64_t count = 0;

  void add(int64_t window, float logProbability) { at(window).values.push_back(logProbability); }
  void finish(int64_t window) {
    at(window).isOver = true;
    for (; !pending.empty() && pending.front().isOver; pending.pop_front(), ++first)
      for (const float value : pending.front().values) {
        total -= static_cast<double>(value);
        ++count;
      }
  }

private:
  struct Window {
    std::vector<float> values;
    bool isOver = false;
  };
  Window &at(int64_t window) {
    pending.resize(std::max(pending.size(), static_cast<size_t>(window - first) + 1));
    return pending[static_cast<size_t>(window - first)];
  }

  std::deque<Window> pending;
  int64_t first = 0; ///< of these, its number
};

Status readAll(Run &run, const Prompts &texts, OrderedSum &sum) {
  const int64_t window = run.bundle.manifest.limits.max_context;
  int64_t tokens = 0;
  for (const std::vector<int32_t> &ids : texts.ids)
    tokens += static_cast<int64_t>(ids.size());
  Progress progress("perplexity", tokens);
  StepEvents events;
  events.logProbability = [&](const Sequence &sequence, int64_t, float value) {
    progress.advance(1);
    sum.add(sequence.number, value);
  };
  events.finished = [&](const Sequence &sequence) {
    progress.advance(1);
    sum.finish(sequence.number);
  };
  Scheduler scheduler(run.engine(), std::move(events));
  const int64_t sideBySide = int64_t(run.engine().ranks()) * run.engine().microbatches();
  for (const std::vector<int32_t> &ids : texts.ids)
    for (int64_t begin = 0; begin < static_cast<int64_t>(ids.size()); begin += window) {
      const int64_t end = std::min<int64_t>(begin + window, static_cast<int64_t>(ids.size()));
      Request request;
      request.logits = PromptLogits::all;
      request.prompt.assign(ids.begin() + begin, ids.begin() + end);
      if (Expected<int64_t> number = scheduler.add(std::move(request)); !number)
        return number.takeError();
      while (scheduler.unfinished() >= sideBySide)
        if (Expected<bool> more = scheduler.step(); !more)
          return more.takeError();
    }
  return scheduler.drain();
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
  OrderedSum sum;
  if (Status done = (*run)->finish(readAll(**run, *texts, sum)); !done)
    return done;
  const int64_t count = sum.count;
  const double nll = sum.total / static_cast<double>(std::max<int64_t>(count, 1));
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
