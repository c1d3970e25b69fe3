// What a step contains: whom it serves when it is smaller than the work that waits, and the routes forced on its rows.
#include "device/cpu/CpuDevice.h"
#include "engine/Scheduler.h"
#include "fake/FakeBundle.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <optional>
#include <set>

using namespace k2c;
using namespace k2c::runtime;

namespace {

/// Sequences that are read and generated in steps of few rows, or of few rows of logits.
struct Case {
  int64_t rows, outputRows, sequences, chunk;
  bool shrinks = false; ///< steps have 48 rows until all prompts are read
};

/// What the test keeps of a sequence, from what steps deliver.
struct Seen {
  int64_t prompt, maxNew;
  int64_t cached = 0, served = 0; ///< tokens; the last step that had a row of it
  int64_t rows = 0;               ///< in the step just run
  int64_t waits = 0;              ///< steps since it could generate and had no row

  bool isReading() const { return cached < prompt; }
  bool isDone() const { return cached == prompt + maxNew - 1; }
};

Request readingAll(std::vector<int32_t> prompt, const ForcedRoutes *forced) {
  Request request;
  request.prompt = std::move(prompt);
  request.logits = PromptLogits::all;
  request.forced = forced;
  return request;
}

/// Runs the sequences of a case and holds every step to what the scheduler promises.
class Served {
public:
  explicit Served(const Case &c) : c(c), rows(c.shrinks ? 48 : c.rows) {
    fake.manifest["limits"]["step_tokens"] = rows;
    fake.manifest["limits"]["max_sequences"] = c.sequences;
    fake.manifest["memory"]["logits"] = c.outputRows * 97 * 4;
    fake.write();
    bundle.emplace(Bundle::open(fake.folder));
    cpu = std::move(*CpuEngine::create(**bundle, {}, {c.chunk, ""}));
    StepEvents events;
    events.logits = [this](const Sequence &, int64_t, const float *) { ++logits; };
    scheduler = std::make_unique<Scheduler>(*cpu.engine, std::move(events));
    for (int32_t i = 0; i < c.sequences; ++i) {
      seen.push_back({1 + 3 * i % 7, 9 + i % 3});
      Request request;
      request.prompt = fakePrompt(seen.back().prompt, i);
      request.maxNew = seen.back().maxNew;
      request.ignoreEos = true;
      EXPECT_TRUE(scheduler->add(std::move(request)));
    }
    capture(0);
  }

  void run() {
    while (step < 1000) {
      SCOPED_TRACE("step " + std::to_string(++step));
      const std::vector<Seen> before = seen;
      for (Seen &one : seen)
        one.rows = 0;
      logits = 0;
      Expected<bool> more = scheduler->step();
      ASSERT_TRUE(more) << more.error().text();
      if (!*more)
        break;
      for (size_t i = 0; i < seen.size(); ++i)
        seen[i].waits = seen[i].rows > 0 || before[i].isReading() ? 0 : before[i].waits + 1;
      expectFair(before);
      if (c.outputRows >= c.sequences)
        expectPromptsInOrder(before);
      EXPECT_LE(logits, c.outputRows);
      if (c.shrinks && std::none_of(seen.begin(), seen.end(), [](const Seen &one) { return one.isReading(); }))
        capture(rows = c.rows);
    }
    for (const Seen &one : seen)
      EXPECT_TRUE(one.isDone());
  }

private:
  /// From now on, steps of at most `window` rows; 0: of as many as the program allows.
  void capture(int64_t window) {
    Captures captures;
    captures.rows = window;
    captures.captured = [this](const Sequence &sequence, int64_t, int64_t begin, int64_t end, int64_t) {
      Seen &one = seen[sequence.number];
      one.rows = end - begin;
      one.cached += one.rows;
      one.served = step;
    };
    scheduler->capture(captures);
  }

  /// Generating sequences that were served longest ago have the rows; equal ones in order of admission.
  void expectFair(const std::vector<Seen> &before) {
    const int64_t most = std::min(rows, c.outputRows), round = (c.sequences + most - 1) / most;
    std::vector<size_t> generating;
    for (size_t i = 0; i < before.size(); ++i)
      if (!before[i].isReading() && !before[i].isDone())
        generating.push_back(i);
    std::stable_sort(generating.begin(), generating.end(),
                     [&](size_t a, size_t b) { return before[a].served < before[b].served; });
    for (size_t turn = 0; turn < generating.size(); ++turn)
      EXPECT_EQ(seen[generating[turn]].rows, static_cast<int64_t>(turn) < most ? 1 : 0)
          << "sequence " << generating[turn];
    for (size_t i : generating)
      EXPECT_LT(seen[i].waits, round) << "sequence " << i << " starves";
  }

  /// Prompts have what generating sequences leave, in order of admission.
  void expectPromptsInOrder(const std::vector<Seen> &before) {
    int64_t left = rows;
    for (size_t i = 0; i < before.size(); ++i)
      if (!before[i].isReading())
        left -= seen[i].rows;
    for (size_t i = 0; i < before.size(); ++i)
      if (before[i].isReading()) {
        EXPECT_EQ(seen[i].rows, std::min({before[i].prompt - before[i].cached, left, c.chunk})) << "prompt " << i;
        left -= seen[i].rows;
      }
  }

  const Case c;
  int64_t rows; ///< of a step, at most
  FakeBundle fake;
  std::optional<Expected<Bundle>> bundle;
  CpuEngine cpu;
  std::unique_ptr<Scheduler> scheduler;
  std::vector<Seen> seen;
  int64_t step = 0, logits = 0; ///< of the step just run: its number and its rows of logits
};

void serve(const Case &c) {
  SCOPED_TRACE(std::to_string(c.sequences) + " sequences in steps of " + std::to_string(c.rows) + " rows, " +
               std::to_string(c.outputRows) + " output rows, chunk " + std::to_string(c.chunk));
  Served served(c);
  served.run();
}

/// Routes of `tokens` tokens in `layers` layers, two experts each; all different from their neighbours.
ForcedRoutes routesOf(int64_t tokens, int64_t layers) {
  ForcedRoutes routes;
  routes.tokens = tokens;
  for (int64_t layer = 0; layer < layers; ++layer)
    for (int64_t token = 0; token < tokens; ++token)
      for (int64_t j = 0; j < 2; ++j) {
        routes.experts.push_back(static_cast<int32_t>((token * 5 + layer * 3 + j * 7 + 1) % 16));
        routes.weights.push_back(static_cast<float>(1 + layer) + static_cast<float>(2 * token + j) / 64);
      }
  return routes;
}

} // namespace

// Prompts take rows that generating sequences leave, so these are never more than a step's rows, unless steps shrink.
TEST(Step, ServesWhoWasServedLongestAgo) {
  for (int64_t rows : {1, 2, 3, 5})
    for (int64_t sequences : {2, 4, 7})
      serve({rows, 48, sequences, 48, /*shrinks=*/true});
}

TEST(Step, PromptsHaveTheRowsThatAreLeft) {
  for (int64_t rows : {1, 2, 3, 5, 9})
    for (int64_t chunk : {1, 2, 48})
      serve({rows, 48, 5, chunk});
}

TEST(Step, LogitsBoundTheOutputRows) {
  for (int64_t outputs : {1, 2, 3})
    serve({48, outputs, 4, 48});
}

// Where nobody samples, a step wants as many rows as there are rows of logits, else one a sequence at most: as many
// have parameters of sampling.
TEST(Step, MoreRowsOfLogitsThanSequences) {
  FakeBundle fake;
  fake.manifest["limits"]["max_sequences"] = 2;
  fake.manifest["memory"]["logits"] = 8 * 97 * 4;
  fake.write();
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  ASSERT_TRUE(bundle) << bundle.error().text();
  Expected<CpuEngine> cpu = CpuEngine::create(*bundle, {}, {48, ""});
  ASSERT_TRUE(cpu) << cpu.error().text();
  auto rowsOfSteps = [&](int64_t maxNew) {
    std::vector<int64_t> rows;
    StepEvents events;
    events.logits = [&](const Sequence &, int64_t, const float *) { ++rows.back(); };
    Scheduler scheduler(*cpu->engine, std::move(events));
    Request other;
    other.prompt = fakePrompt(3, 2);
    other.maxNew = maxNew;
    other.ignoreEos = true;
    EXPECT_TRUE(scheduler.add(readingAll(fakePrompt(13, 1), nullptr)));
    EXPECT_TRUE(scheduler.add(std::move(other)));
    do
      rows.push_back(0);
    while (*scheduler.step());
    rows.pop_back();
    return rows;
  };
  EXPECT_EQ(rowsOfSteps(0), (std::vector<int64_t>{8, 6}));
  for (int64_t rows : rowsOfSteps(4))
    EXPECT_LE(rows, 2);
}

// Rows of a step are not positions: chunks, a window of captured rows and a second sequence shift one against the
// other.
TEST(Step, RoutesAreForcedByPosition) {
  constexpr int64_t layers = 2, window = 5;
  FakeBundle fake;
  fake.manifest["model"]["moe_layers"] = {0, 1};
  fake.write();
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  ASSERT_TRUE(bundle) << bundle.error().text();
  const ForcedRoutes first = routesOf(12, layers), second = routesOf(3, layers); // of 12, and of 9 tokens
  for (int64_t chunk : {0, 1, 3, 4}) {
    SCOPED_TRACE("chunk " + std::to_string(chunk));
    Expected<CpuEngine> cpu = CpuEngine::create(*bundle, {}, {chunk, ""});
    ASSERT_TRUE(cpu) << cpu.error().text();
    Scheduler scheduler(*cpu->engine, {});
    std::vector<int32_t> experts(layers * window * 2);
    std::vector<float> weights(layers * window * 2);
    int64_t rowsSeen = 0;
    Captures captures;
    captures.rows = window;
    captures.forcedExperts = experts.data();
    captures.forcedWeights = weights.data();
    captures.captured = [&](const Sequence &sequence, int64_t position, int64_t begin, int64_t end, int64_t rows) {
      EXPECT_LE(rows, window);
      rowsSeen += end - begin;
      const ForcedRoutes *routes = sequence.request.forced;
      for (int64_t layer = 0; layer < layers; ++layer)
        for (int64_t row = begin; row < end; ++row)
          for (int64_t j = 0; j < 2; ++j) {
            const int64_t token = position + row - begin, at = (layer * rows + row) * 2 + j;
            SCOPED_TRACE("layer " + std::to_string(layer) + " token " + std::to_string(token));
            if (!routes || token >= routes->tokens) {
              EXPECT_EQ(experts[at], K2RT_ROUTE_FREE);
              EXPECT_TRUE(std::isnan(weights[at]));
            } else {
              EXPECT_EQ(experts[at], routes->experts[(layer * routes->tokens + token) * 2 + j]);
              EXPECT_EQ(weights[at], routes->weights[(layer * routes->tokens + token) * 2 + j]);
            }
          }
    };
    scheduler.capture(captures);
    ASSERT_TRUE(scheduler.add(readingAll(fakePrompt(12, 1), &first)));
    ASSERT_TRUE(scheduler.add(readingAll(fakePrompt(9, 2), &second)));
    ASSERT_TRUE(scheduler.add(readingAll(fakePrompt(4, 3), nullptr)));
    Status done = scheduler.drain();
    EXPECT_TRUE(done) << done.error().text();
    EXPECT_EQ(rowsSeen, 25);
  }
}

namespace {

std::string listed(const std::vector<int32_t> &ids) {
  std::string text;
  for (int32_t id : ids)
    text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}

/// The routes of a prompt of `tokens` tokens, as `routes --json` prints those of one layer.
nlohmann::json fileOf(const ForcedRoutes &routes) {
  nlohmann::json layer;
  for (int64_t token = 0; token < routes.tokens; ++token) {
    const auto at = static_cast<size_t>(token) * 2;
    layer["experts"].push_back({routes.experts[at], routes.experts[at + 1]});
    layer["weights"].push_back({routes.weights[at], routes.weights[at + 1]});
  }
  return {{"layers", {{"1", layer}}}};
}

} // namespace

TEST(Step, ForcedLogitsDoNotDependOnTheChunk) {
  FakeBundle fake;
  const std::vector<int32_t> prompt = fakePrompt(11, 1);
  const ForcedRoutes routes = routesOf(11, 1);
  fake.writeFile("routes.json", fileOf(routes).dump());
  const std::vector<std::string> words = {"logits",   "--prompt-ids",           listed(prompt), "--all",
                                          "--routes", fake.path("routes.json"), "--json"};
  const nlohmann::json whole = runJson(fake, words);
  ASSERT_EQ(whole["logits"].size(), prompt.size()) << whole;
  for (size_t i = 0; i < prompt.size(); ++i) {
    const auto row = whole["logits"][i].get<std::vector<float>>();
    const int32_t unforced = fakeNextToken({prompt.begin(), prompt.begin() + static_cast<int64_t>(i) + 1},
                                           std::vector<int32_t>(i + 1, K2RT_FORM_EXPANDED));
    EXPECT_EQ(std::max_element(row.begin(), row.end()) - row.begin(), (unforced + routes.experts[i * 2]) % 90);
  }
  for (const char *chunk : {"1", "2", "3", "7"}) {
    std::vector<std::string> chunked = words;
    chunked.insert(chunked.end(), {"--chunk", chunk});
    EXPECT_EQ(runJson(fake, chunked), whole) << "chunk " << chunk;
  }
}

// With 2^20 columns in three layers, the 64 MiB of captured rows are five rows: a prompt of seven takes two steps.
TEST(Step, HiddenStatesOfAPromptBeyondTheWindow) {
  FakeBundle fake("fake_wide");
  fake.manifest["model"]["hidden"] = 1 << 20;
  fake.write();
  const std::vector<int32_t> prompt = fakePrompt(7, 1);
  const ForcedRoutes routes = routesOf(7, 1);
  fake.writeFile("routes.json", fileOf(routes).dump());
  const Outcome outcome = runBundle(fake, {"hidden", "--prompt-ids", listed(prompt), "--routes",
                                           fake.path("routes.json"), "--trace", fake.path("trace.json")});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  std::string expected;
  for (int layer = 0; layer <= 2; ++layer) {
    expected += (layer == 0 ? std::string("embed") : std::to_string(layer - 1)) + " rms:";
    for (size_t token = 0; token < prompt.size(); ++token) {
      double sum = 0;
      for (int i = 0; i < 8; ++i)
        sum += std::pow(layer + prompt[token] / 128.0 + i / 1024.0 + routes.experts[token * 2], 2);
      char text[32];
      std::snprintf(text, sizeof text, " %.5g", std::sqrt(sum / 8));
      expected += text;
    }
    expected += "\n";
  }
  EXPECT_EQ(outcome.out, expected);
  std::ifstream file(fake.path("trace.json"));
  const nlohmann::json trace = nlohmann::json::parse(file);
  std::set<int64_t> rows;
  for (const nlohmann::json &event : trace["traceEvents"])
    if (event.contains("args") && event["args"].contains("rows"))
      rows.insert(event["args"]["rows"].get<int64_t>());
  EXPECT_EQ(rows, (std::set<int64_t>{2, 5}));
}
