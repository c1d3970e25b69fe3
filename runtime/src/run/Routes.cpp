// `run routes`: which experts each token of a prompt went to, and with which weights.
#include "run/CaptureBuffers.h"
#include "run/JsonWriter.h"
#include "run/Run.h"
#include <algorithm>
#include <numeric>

namespace k2c::runtime {

namespace {

/// Captured routes of a prompt: [moe_layers][tokens][top_k].
struct RouteTable {
  int64_t tokens, k;
  std::vector<int32_t> experts;
  std::vector<float> weights;

  /// One token's choices by falling weight, equal ones by rising expert; a dropped choice is left out.
  std::vector<int64_t> order(int64_t layer, int64_t token) const {
    std::vector<int64_t> at;
    for (int64_t j = 0; j < k; ++j)
      if (experts[(layer * tokens + token) * k + j] >= 0)
        at.push_back((layer * tokens + token) * k + j);
    std::sort(at.begin(), at.end(), [&](int64_t a, int64_t b) {
      return weights[a] != weights[b] ? weights[a] > weights[b] : experts[a] < experts[b];
    });
    return at;
  }
};

template <class T> void printLists(JsonWriter &json, const RouteTable &table, int64_t layer, const std::vector<T> &of) {
  json.beginList();
  for (int64_t token = 0; token < table.tokens; ++token) {
    json.beginList();
    for (int64_t at : table.order(layer, token))
      json.value(of[at]);
    json.endList();
  }
  json.endList();
}

void printJson(const RouteTable &table, const Manifest &manifest) {
  JsonWriter json(stdout);
  json.beginObject().key("layers").beginObject();
  for (size_t layer = 0; layer < manifest.moeLayers.size(); ++layer) {
    json.key(std::to_string(manifest.moeLayers[layer])).beginObject();
    json.key("experts");
    printLists(json, table, static_cast<int64_t>(layer), table.experts);
    json.key("weights");
    printLists(json, table, static_cast<int64_t>(layer), table.weights);
    json.endObject();
  }
  json.endObject().endObject().endLine();
}

void printText(const RouteTable &table, const Manifest &manifest) {
  for (size_t layer = 0; layer < manifest.moeLayers.size(); ++layer)
    for (int64_t token = 0; token < table.tokens; ++token) {
      std::printf("layer %lld token %lld:", static_cast<long long>(manifest.moeLayers[layer]),
                  static_cast<long long>(token));
      for (int64_t at : table.order(static_cast<int64_t>(layer), token))
        std::printf(" %d (%.4f)", table.experts[at], table.weights[at]);
      std::fputc('\n', stdout);
    }
}

Status printRoutes(const RunOptions &options, const PromptFlags &flags) {
  Expected<Prompts> prompts = readPrompts(flags, nullptr);
  if (!prompts)
    return prompts.takeError();
  const CaptureChoice captures = {true, false, false};
  Expected<std::unique_ptr<Run>> run = Run::open(options, captures);
  if (!run)
    return run.takeError();
  const Manifest &manifest = (*run)->bundle.manifest;
  Expected<CaptureBuffers> buffers = CaptureBuffers::allocate(manifest, captures);
  if (!buffers)
    return buffers.takeError();
  const int64_t layers = static_cast<int64_t>(manifest.moeLayers.size()), k = manifest.topK;
  RouteTable table{static_cast<int64_t>(prompts->ids[0].size()), k, {}, {}};
  table.experts.resize(layers * table.tokens * k);
  table.weights.resize(layers * table.tokens * k);
  const Captures &from = buffers->view;
  buffers->view.captured = [&](const Sequence &, int64_t position, int64_t begin, int64_t end, int64_t rows) {
    for (int64_t layer = 0; layer < layers; ++layer) {
      const int64_t source = (layer * rows + begin) * k, target = (layer * table.tokens + position) * k;
      std::copy_n(from.experts + source, (end - begin) * k, table.experts.data() + target);
      std::copy_n(from.weights + source, (end - begin) * k, table.weights.data() + target);
    }
  };
  Scheduler scheduler((*run)->engine(), {});
  scheduler.capture(buffers->view);
  Request request;
  request.prompt = std::move(prompts->ids[0]);
  if (Expected<int64_t> number = scheduler.add(std::move(request)); !number)
    return number.takeError();
  if (Status done = (*run)->drain(scheduler); !done)
    return done;
  options.json ? printJson(table, manifest) : printText(table, manifest);
  return {};
}

} // namespace

void addRoutes(CLI::App &app, RunOptions &options, Command &command) {
  CLI::App *routes = app.add_subcommand("routes", "print the experts each token of a prompt goes to");
  auto flags = std::make_shared<PromptFlags>();
  addPromptFlags(*routes, *flags, /*withText=*/false, /*withBatch=*/false);
  addRunFlags(*routes, options);
  routes->footer("Example: ./run routes --prompt-ids 1,2,3 --json > routes.json");
  routes->callback(
      [flags, &options, &command] { command = [flags, &options] { return printRoutes(options, *flags); }; });
}

} // namespace k2c::runtime
