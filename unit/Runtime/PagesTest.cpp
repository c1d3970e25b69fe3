// Sequences that just fill a page of 64 tokens, and one token more or less: what admission takes, and what is read.
#include "device/cpu/CpuDevice.h"
#include "engine/Scheduler.h"
#include "fake/FakeBundle.h"
#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <optional>

using namespace k2c;
using namespace k2c::runtime;

namespace {

/// Tokens in the cache, and the pages of 64 that hold them.
struct Edge {
  int64_t cached, pages;
};
constexpr Edge edges[] = {{1, 1},   {63, 1},  {64, 1},    {65, 2},    {127, 2},  {128, 2},
                          {129, 3}, {192, 3}, {1023, 16}, {1024, 16}, {1025, 17}};

/// A request is read, or grows, to `cached` tokens; the last new token is never read back.
struct Shape {
  int64_t prompt, maxNew;
};
std::vector<Shape> shapesOf(int64_t cached) {
  std::vector<Shape> shapes = {{cached, 0}, {cached, 1}};
  if (cached > 5)
    shapes.insert(shapes.end(), {{cached - 1, 2}, {cached - 5, 6}, {3, cached - 2}});
  return shapes;
}

/// A fake program with contexts of 1,100 tokens.
struct LongBundle {
  explicit LongBundle(const std::string &program = "fake") : fake(program) {
    fake.manifest["limits"]["max_context"] = 1100;
    fake.write();
    bundle.emplace(Bundle::open(fake.folder));
    EXPECT_TRUE(*bundle);
  }
  FakeBundle fake;
  std::optional<Expected<Bundle>> bundle;
};

/// An engine that has `free` pages in each cache group, and no page number where none was given: cache and block tables
/// begin as -1, which the fake program refuses as a page.
class Pages {
public:
  Pages(const LongBundle &from, const std::vector<int64_t> &free, const CpuOptions &onCpu = {},
        const EngineOptions &options = {}) {
    cpu = std::move(*CpuEngine::create(**from.bundle, onCpu, options));
    for (auto [base, bytes] : cpu.device->memory())
      if (bytes == planeBytes)
        std::memset(const_cast<std::byte *>(base), 0xff, bytes);
    const StepArrays &a = cpu.engine->rank().arrays();
    const k2rt_limits &limits = cpu.engine->manifest().limits;
    EXPECT_EQ(cpu.engine->rank().pages().size(), free.size());
    for (size_t group = 0; group < free.size(); ++group) {
      std::fill_n(a.blockTables[group], limits.max_sequences * a.blockStride, -1);
      std::fill_n(a.stepTables[group], limits.max_sequences * a.blockStride, -1);
      std::fill_n(a.seqLen[group], limits.max_sequences, -1);
      std::fill_n(a.appendSlots[group], limits.step_tokens, -1);
      std::vector<int32_t> kept(available(group) - free[group]);
      cpu.engine->rank().pages()[group].take(static_cast<int64_t>(kept.size()), kept.data());
    }
    StepEvents events;
    events.token = [this](const Sequence &sequence, int32_t id, bool) {
      tokens[sequence.number].push_back(id);
      return true;
    };
    events.logits = [this](const Sequence &sequence, int64_t, const float *) { served.push_back(sequence.number); };
    scheduler = std::make_unique<Scheduler>(*cpu.engine, std::move(events));
  }

  void add(const std::vector<int32_t> &prompt, int64_t maxNew) {
    Request request;
    request.prompt = prompt;
    request.maxNew = maxNew;
    request.ignoreEos = true;
    ASSERT_TRUE(scheduler->add(std::move(request)));
    tokens.emplace_back();
  }
  bool step() {
    Expected<bool> more = scheduler->step();
    EXPECT_TRUE(more) << more.error().text();
    return more && *more;
  }
  void drain() {
    Status done = scheduler->drain();
    EXPECT_TRUE(done) << done.error().text();
  }
  int64_t available(size_t group = 0) const { return cpu.engine->rank().pages()[group].available(); }

  std::vector<std::vector<int32_t>> tokens; ///< new ones, of each sequence
  std::vector<int64_t> served;              ///< the sequence of each row of logits
  std::unique_ptr<Scheduler> scheduler;

private:
  static constexpr int64_t planeBytes = 2 * 64 * 64 * 4; ///< layers, pages, tokens of a page, an i32 each

  CpuEngine cpu;
};

} // namespace

TEST(Pages, AdmissionTakesWhatAllTokensNeedAndNoMore) {
  const LongBundle bundle;
  for (const Edge &edge : edges)
    for (const Shape &shape : shapesOf(edge.cached)) {
      SCOPED_TRACE(std::to_string(shape.prompt) + " tokens and " + std::to_string(shape.maxNew) + " new");
      const std::vector<int32_t> prompt = fakePrompt(shape.prompt, 1);
      Pages fits(bundle, {edge.pages});
      fits.add(prompt, shape.maxNew);
      EXPECT_TRUE(fits.step());
      EXPECT_EQ(fits.available(), 0);
      fits.drain();
      EXPECT_EQ(fits.tokens[0], fakeContinuation(prompt, shape.maxNew));
      EXPECT_EQ(fits.available(), edge.pages) << "pages were not given back";
      Pages lacks(bundle, {edge.pages - 1});
      lacks.add(prompt, shape.maxNew);
      EXPECT_FALSE(lacks.step()) << "admitted with a page too few";
      EXPECT_EQ(lacks.available(), edge.pages - 1);
      EXPECT_EQ(lacks.scheduler->unfinished(), 1);
    }
}

TEST(Pages, TwoSequencesShareThePoolToItsLastPage) {
  const LongBundle bundle;
  for (const Edge &edge : edges)
    for (const Shape &shape : shapesOf(edge.cached))
      for (int64_t chunk : {0, 63, 65}) {
        SCOPED_TRACE(std::to_string(shape.prompt) + " tokens and " + std::to_string(shape.maxNew) + " new, chunk " +
                     std::to_string(chunk));
        CpuOptions onCpu;
        onCpu.threads = 2;
        Pages both(bundle, {2 * edge.pages}, onCpu, {chunk, ""});
        const std::vector<int32_t> prompts[] = {fakePrompt(shape.prompt, 1), fakePrompt(shape.prompt, 2)};
        for (const std::vector<int32_t> &prompt : prompts)
          both.add(prompt, shape.maxNew);
        EXPECT_TRUE(both.step());
        EXPECT_EQ(both.available(), 0) << "both fit at once";
        both.drain();
        for (int i = 0; i < 2; ++i)
          EXPECT_EQ(both.tokens[i], fakeContinuation(prompts[i], shape.maxNew)) << "sequence " << i;
        EXPECT_EQ(both.available(), 2 * edge.pages) << "pages were not given back";
      }
}

TEST(Pages, ASequenceWaitsForThePagesOfAnother) {
  const LongBundle bundle;
  for (const Edge &edge : edges) {
    SCOPED_TRACE(std::to_string(edge.cached) + " tokens");
    Pages pages(bundle, {2 * edge.pages - 1});
    const std::vector<int32_t> prompts[] = {fakePrompt(edge.cached, 1), fakePrompt(edge.cached, 2)};
    for (const std::vector<int32_t> &prompt : prompts)
      pages.add(prompt, 1);
    pages.drain();
    EXPECT_EQ(pages.served, (std::vector<int64_t>{0, 1}));
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(pages.tokens[i], fakeContinuation(prompts[i], 1)) << "sequence " << i;
  }
}

TEST(Pages, OfEachCacheGroupAreTakenAndGivenBack) {
  const LongBundle bundle("fake_groups");
  for (const Edge &edge : edges)
    for (const Shape &shape : shapesOf(edge.cached)) {
      SCOPED_TRACE(std::to_string(shape.prompt) + " tokens and " + std::to_string(shape.maxNew) + " new");
      const std::vector<int32_t> prompts[] = {fakePrompt(shape.prompt, 1), fakePrompt(shape.prompt, 2)};
      Pages both(bundle, {2 * edge.pages + 3, 2 * edge.pages}); // so that their numbers differ
      for (const std::vector<int32_t> &prompt : prompts)
        both.add(prompt, shape.maxNew);
      EXPECT_TRUE(both.step());
      EXPECT_EQ(both.available(0), 3);
      EXPECT_EQ(both.available(1), 0);
      both.drain();
      for (int i = 0; i < 2; ++i)
        EXPECT_EQ(both.tokens[i], fakeContinuation(prompts[i], shape.maxNew)) << "sequence " << i;
      EXPECT_EQ(both.available(0), 2 * edge.pages + 3);
      EXPECT_EQ(both.available(1), 2 * edge.pages);
    }
}

TEST(Pages, ThatOneCacheGroupLacksKeepASequenceOut) {
  const LongBundle bundle("fake_groups");
  for (const Edge &edge : edges)
    for (size_t lacking : {0, 1}) {
      SCOPED_TRACE(std::to_string(edge.cached) + " tokens, group " + std::to_string(lacking));
      std::vector<int64_t> free = {edge.pages, edge.pages};
      --free[lacking];
      Pages lacks(bundle, free);
      lacks.add(fakePrompt(edge.cached, 1), 1);
      EXPECT_FALSE(lacks.step()) << "admitted with a page too few";
      EXPECT_EQ(lacks.scheduler->unfinished(), 1);
      for (size_t group : {0, 1})
        EXPECT_EQ(lacks.available(group), free[group]) << "nothing is taken from group " << group;
    }
}
