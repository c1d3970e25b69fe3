// One step path: whatever the batch, chunk, threads, pages and queue, a sequence's tokens are its own (numerics N0).
#include "engine/Scheduler.h"
#include "device/cpu/CpuDevice.h"
#include "fake/FakeBundle.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;

namespace {

/// All prompts through one scheduler; new tokens of each.
std::vector<std::vector<int32_t>> generate(const FakeBundle &fake, int32_t threads, int64_t chunk,
                                           const std::vector<std::vector<int32_t>> &prompts, int64_t maxNew) {
  std::vector<std::vector<int32_t>> out(prompts.size());
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  EXPECT_TRUE(bundle);
  CpuOptions options;
  options.threads = threads;
  Expected<CpuEngine> cpu = CpuEngine::create(*bundle, options, {chunk, ""});
  EXPECT_TRUE(cpu) << cpu.error().text();
  StepEvents events;
  events.token = [&](const Sequence &sequence, int32_t id, bool) {
    out[sequence.number].push_back(id);
    return true;
  };
  Scheduler scheduler(*cpu->engine, std::move(events));
  for (const auto &prompt : prompts) {
    Request request;
    request.prompt = prompt;
    request.maxNew = maxNew;
    request.ignoreEos = true;
    EXPECT_TRUE(scheduler.add(std::move(request)));
  }
  Status done = scheduler.drain();
  EXPECT_TRUE(done) << done.error().text();
  EXPECT_EQ(scheduler.unfinished(), 0);
  for (const PagePool &pool : cpu->engine->rank().pages())
    EXPECT_EQ(pool.available(), 64) << "pages were not given back";
  return out;
}

} // namespace

TEST(Scheduler, TokensDependOnTheSequenceAlone) {
  FakeBundle fake;
  // Ten sequences for four slots and 64 pages of 64 tokens: queueing, reuse of slots and pages, several pages each.
  std::vector<std::vector<int32_t>> prompts, expected;
  for (int32_t i = 0; i < 10; ++i) {
    prompts.push_back(fakePrompt(3 + 61 * i % 500, i));
    expected.push_back(fakeContinuation(prompts.back(), 70));
  }
  for (int32_t threads : {1, 2, 5})
    for (int64_t chunk : {0, 1, 17}) {
      SCOPED_TRACE(std::to_string(threads) + " threads, chunk " + std::to_string(chunk));
      EXPECT_EQ(generate(fake, threads, chunk, prompts, 70), expected);
    }
}

TEST(Scheduler, LimitsDoNotReachTheTokens) {
  FakeBundle fake;
  const std::vector<std::vector<int32_t>> prompts = {fakePrompt(130, 1), fakePrompt(5, 2), fakePrompt(300, 3)};
  const auto expected = generate(fake, 0, 0, prompts, 20);
  fake.manifest["limits"]["step_tokens"] = 2; // fewer than the sequences at work
  fake.manifest["limits"]["max_sequences"] = 3;
  fake.manifest["memory"]["logits"] = 97 * 4; // one output row a step
  fake.write();
  EXPECT_EQ(generate(fake, 0, 0, prompts, 20), expected);
}

TEST(Scheduler, FormsOfNumericsAreKept) {
  FakeBundle fake;
  const std::vector<int32_t> prompt = fakePrompt(20, 1);
  fake.manifest["numerics"]["mla"] = "absorbed";
  fake.write();
  EXPECT_EQ(generate(fake, 0, 0, {prompt}, 5)[0], fakeContinuation(prompt, 5, K2RT_FORM_ABSORBED));
  // One form everywhere: generating equals reading again.
  std::vector<int32_t> longer = prompt;
  const std::vector<int32_t> first = generate(fake, 0, 0, {prompt}, 6)[0];
  longer.insert(longer.end(), first.begin(), first.begin() + 3);
  EXPECT_EQ(generate(fake, 0, 0, {longer}, 3)[0], std::vector<int32_t>(first.begin() + 3, first.end()));
}

TEST(Scheduler, RequestsAreChecked) {
  FakeBundle fake;
  Expected<Manifest> manifest = readManifest(*readFileList(fake.folder));
  ASSERT_TRUE(manifest);
  const auto message = [&](const std::vector<int32_t> &prompt, int64_t maxNew) {
    Status checked = checkRequest(*manifest, prompt, maxNew, "prompt");
    return checked ? std::string() : checked.error().text();
  };
  EXPECT_NE(message({}, 1).find("no tokens"), std::string::npos);
  EXPECT_NE(message({1, 97}, 1).find("token 1 is id 97, the vocabulary is 0..96"), std::string::npos);
  EXPECT_NE(message({-1}, 1).find("id -1"), std::string::npos);
  EXPECT_NE(message(fakePrompt(1001, 1), 1).find("has 1001 tokens, max_context is 1000"), std::string::npos);
  EXPECT_NE(message(fakePrompt(990, 1), 12).find("use -n 11 at most"), std::string::npos);
  EXPECT_EQ(message(fakePrompt(990, 1), 11), "");
  EXPECT_EQ(message(fakePrompt(1000, 1), 1), "");
}

TEST(Scheduler, FullContextIsUsable) {
  FakeBundle fake;
  const std::vector<int32_t> prompt = fakePrompt(990, 4);
  EXPECT_EQ(generate(fake, 0, 0, {prompt}, 11)[0], fakeContinuation(prompt, 11, K2RT_FORM_EXPANDED));
}

TEST(Scheduler, FailingKernelIsNamed) {
  FakeBundle fake;
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  CpuOptions options;
  options.threads = 3;
  Expected<CpuEngine> cpu = CpuEngine::create(*bundle, options, {});
  ASSERT_TRUE(cpu);
  Scheduler scheduler(*cpu->engine, {});
  Request request;
  request.prompt = {1, 96, 96}; // the fake refuses 96 twice
  ASSERT_TRUE(scheduler.add(std::move(request)));
  Status done = scheduler.drain();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, K2RT_KERNEL_FAILED);
  EXPECT_NE(done.error().text().find("kernel append: failed with 7 on worker 2"), std::string::npos)
      << done.error().text();
}

TEST(Scheduler, InterruptEndsTheStep) {
  FakeBundle fake;
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  Expected<CpuEngine> cpu = CpuEngine::create(*bundle, {}, {});
  ASSERT_TRUE(cpu);
  Scheduler scheduler(*cpu->engine, {});
  Request request;
  request.prompt = {1, 2, 3};
  ASSERT_TRUE(scheduler.add(std::move(request)));
  cpu->engine->interrupt();
  Status done = scheduler.drain();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, K2RT_INTERRUPTED);
}
