// `run logits`: the logits after the last token of each prompt, or after every token.
#include "k2rt/Sampler.h"
#include "run/BufferedRows.h"
#include "run/CaptureBuffers.h"
#include "run/JsonWriter.h"
#include "run/Progress.h"
#include "run/Run.h"
#include <optional>

namespace k2c::runtime {

namespace {

struct LogitsFlags {
  PromptFlags prompt;
  bool all = false;
  std::string routesFile;
};

/// Rows of logits of all prompts, one after the other.
struct Rows {
  BufferedRows buffered;
  std::vector<int64_t> begin; ///< first row of each prompt, and the end
  int64_t vocab;
};

void printJson(Rows &rows, bool isBatch) {
  JsonWriter json(stdout);
  std::vector<float> row(rows.vocab);
  if (isBatch)
    json.beginList();
  for (size_t prompt = 0; prompt + 1 < rows.begin.size(); ++prompt) {
    json.beginObject().key("logits").beginList();
    for (int64_t i = rows.begin[prompt]; i < rows.begin[prompt + 1]; ++i) {
      rows.buffered.read(i * rows.vocab, row.data(), rows.vocab);
      json.list(row.data(), rows.vocab);
    }
    json.endList().endObject();
  }
  if (isBatch)
    json.endList();
  json.endLine();
}

/// For readers: the ten most likely tokens of each row.
void printText(Rows &rows) {
  std::vector<float> row(rows.vocab);
  for (size_t prompt = 0; prompt + 1 < rows.begin.size(); ++prompt)
    for (int64_t i = rows.begin[prompt]; i < rows.begin[prompt + 1]; ++i) {
      rows.buffered.read(i * rows.vocab, row.data(), rows.vocab);
      std::printf("prompt %zu row %lld:", prompt, static_cast<long long>(i - rows.begin[prompt]));
      for (const LogProbability &token : logProbabilities(row.data(), rows.vocab, -1, 10))
        std::printf(" %d %.4f", token.id, row[token.id]);
      std::fputc('\n', stdout);
    }
}

Status printLogits(const RunOptions &options, const LogitsFlags &flags) {
  Expected<Prompts> prompts = readPrompts(flags.prompt, nullptr);
  if (!prompts)
    return prompts.takeError();
  const CaptureChoice captures = {false, false, !flags.routesFile.empty()};
  Expected<std::unique_ptr<Run>> run = Run::open(options, captures);
  if (!run)
    return run.takeError();
  const Manifest &manifest = (*run)->bundle.manifest;
  Expected<BufferedRows> buffered = BufferedRows::create();
  if (!buffered)
    return buffered.takeError();
  Rows rows{std::move(*buffered), {0}, manifest.vocab};
  std::vector<int64_t> tokensOfRow; // by prompt: that are computed for one row of logits
  std::optional<Progress> progress;
  StepEvents events;
  events.logits = [&](const Sequence &sequence, int64_t position, const float *logits) {
    const int64_t row = rows.begin[sequence.number] + (flags.all ? position : 0);
    rows.buffered.write(row * rows.vocab, logits, rows.vocab);
    progress->advance(tokensOfRow[sequence.number]);
  };
  Scheduler scheduler((*run)->engine(), std::move(events));
  Expected<CaptureBuffers> buffers = CaptureBuffers::allocate(manifest, captures);
  if (!buffers)
    return buffers.takeError();
  ForcedRoutes forced;
  if (!flags.routesFile.empty()) {
    const int64_t tokens = static_cast<int64_t>(prompts->ids[0].size());
    Expected<ForcedRoutes> routes = readRoutes(flags.routesFile, manifest, tokens);
    if (!routes)
      return routes.takeError();
    forced = std::move(*routes);
    scheduler.capture(buffers->view);
  }
  int64_t total = 0;
  for (std::vector<int32_t> &prompt : prompts->ids) {
    Request request;
    request.logits = flags.all ? PromptLogits::all : PromptLogits::last;
    request.forced = flags.routesFile.empty() ? nullptr : &forced;
    const int64_t size = static_cast<int64_t>(prompt.size());
    total += size;
    tokensOfRow.push_back(flags.all ? 1 : size);
    rows.begin.push_back(rows.begin.back() + (flags.all ? size : 1));
    request.prompt = std::move(prompt);
    if (Expected<int64_t> number = scheduler.add(std::move(request)); !number)
      return number.takeError();
  }
  progress.emplace("logits", total);
  if (Status done = (*run)->drain(scheduler); !done)
    return done;
  progress.reset();
  options.json ? printJson(rows, prompts->isBatch) : printText(rows);
  return rows.buffered.status();
}

} // namespace

void addLogits(CLI::App &app, RunOptions &options, Command &command) {
  CLI::App *logits = app.add_subcommand("logits", "print the logits after a prompt");
  auto flags = std::make_shared<LogitsFlags>();
  addPromptFlags(*logits, flags->prompt, /*withText=*/false, /*withBatch=*/true);
  logits->add_flag("--all", flags->all, "after every token, not only the last");
  logits->add_option("--routes", flags->routesFile, "force the routing to what `routes --json` printed")
      ->check(notEmpty())
      ->excludes("--batch-file");
  addRunFlags(*logits, options);
  logits->footer("Example: ./run logits --prompt-ids 1,2,3 --all --json");
  logits->callback(
      [flags, &options, &command] { command = [flags, &options] { return printLogits(options, *flags); }; });
}

} // namespace k2c::runtime
