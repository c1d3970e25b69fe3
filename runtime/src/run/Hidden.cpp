// `run hidden`: the hidden state of each token after the embedding and after every layer, and the largest attention
// logit of each head (what training clips queries and keys by).
#include "run/BufferedRows.h"
#include "run/CaptureBuffers.h"
#include "run/JsonWriter.h"
#include "run/Run.h"
#include <cmath>

namespace k2c::runtime {

namespace {

struct HiddenFlags {
  PromptFlags prompt;
  std::string routesFile;
};

std::string layerName(int64_t layer) { return layer == 0 ? "embed" : std::to_string(layer - 1); }

/// Prints [layers + 1][tokens][hidden] from the buffered rows and [layers][heads] of `maxLogits`.
void printJson(BufferedRows &buffered, const float *maxLogits, const Manifest &manifest, int64_t tokens) {
  JsonWriter json(stdout);
  std::vector<float> row(manifest.hidden);
  json.beginObject().key("layers").beginObject();
  for (int64_t layer = 0; layer <= manifest.layers; ++layer) {
    json.key(layerName(layer)).beginList();
    for (int64_t token = 0; token < tokens; ++token) {
      buffered.read((layer * tokens + token) * manifest.hidden, row.data(), manifest.hidden);
      json.list(row.data(), manifest.hidden);
    }
    json.endList();
  }
  json.endObject().key("max_logits").beginObject();
  for (int64_t layer = 0; layer < manifest.layers; ++layer)
    json.key(std::to_string(layer)).list(maxLogits + layer * manifest.heads, manifest.heads);
  json.endObject().endObject().endLine();
}

/// For readers: the root mean square of each state.
void printText(BufferedRows &buffered, const Manifest &manifest, int64_t tokens) {
  std::vector<float> row(manifest.hidden);
  for (int64_t layer = 0; layer <= manifest.layers; ++layer) {
    std::printf("%s rms:", layerName(layer).c_str());
    for (int64_t token = 0; token < tokens; ++token) {
      buffered.read((layer * tokens + token) * manifest.hidden, row.data(), manifest.hidden);
      double sum = 0;
      for (float x : row)
        sum += static_cast<double>(x) * x;
      std::printf(" %.5g", std::sqrt(sum / static_cast<double>(manifest.hidden)));
    }
    std::fputc('\n', stdout);
  }
}

Status printHidden(const RunOptions &options, const HiddenFlags &flags) {
  Expected<Prompts> prompts = readPrompts(flags.prompt, nullptr);
  if (!prompts)
    return prompts.takeError();
  const CaptureChoice captures = {false, true, !flags.routesFile.empty()};
  Expected<std::unique_ptr<Run>> run = Run::open(options, captures);
  if (!run)
    return run.takeError();
  const Manifest &manifest = (*run)->bundle.manifest;
  Expected<CaptureBuffers> buffers = CaptureBuffers::allocate(manifest, captures);
  if (!buffers)
    return buffers.takeError();
  Expected<BufferedRows> buffered = BufferedRows::create();
  if (!buffered)
    return buffered.takeError();
  const int64_t tokens = static_cast<int64_t>(prompts->ids[0].size()), width = manifest.hidden;
  buffers->view.captured = [&](const Sequence &, int64_t position, int64_t begin, int64_t end, int64_t rows) {
    for (int64_t layer = 0; layer <= manifest.layers; ++layer)
      buffered->write((layer * tokens + position) * width, buffers->view.hidden + (layer * rows + begin) * width,
                      (end - begin) * width);
  };
  Request request;
  request.prompt = std::move(prompts->ids[0]);
  ForcedRoutes forced;
  if (!flags.routesFile.empty()) {
    Expected<ForcedRoutes> routes = readRoutes(flags.routesFile, manifest, tokens);
    if (!routes)
      return routes.takeError();
    forced = std::move(*routes);
    request.forced = &forced;
  }
  Scheduler scheduler((*run)->engine(), {});
  scheduler.capture(buffers->view);
  if (Expected<int64_t> number = scheduler.add(std::move(request)); !number)
    return number.takeError();
  if (Status done = (*run)->drain(scheduler); !done)
    return done;
  options.json ? printJson(*buffered, buffers->view.maxLogits, manifest, tokens)
               : printText(*buffered, manifest, tokens);
  return buffered->status();
}

} // namespace

void addHidden(CLI::App &app, RunOptions &options, Command &command) {
  CLI::App *hidden = app.add_subcommand("hidden", "print the hidden states of a prompt, layer by layer");
  auto flags = std::make_shared<HiddenFlags>();
  addPromptFlags(*hidden, flags->prompt, /*withText=*/false, /*withBatch=*/false);
  hidden->add_option("--routes", flags->routesFile, "force the routing to what `routes --json` printed")
      ->check(notEmpty());
  addRunFlags(*hidden, options);
  hidden->footer("Example: ./run hidden --prompt-ids 1,2,3 --json");
  hidden->callback(
      [flags, &options, &command] { command = [flags, &options] { return printHidden(options, *flags); }; });
}

} // namespace k2c::runtime
