// Steps of a GPU that end late, early, or when nobody wants them any more, over a driver that tests play.
#include "fake/CudaRun.h"

using namespace k2c;
using namespace k2c::runtime;

// An end of text is known when the step behind it is under way; tokens are those up to it.
TEST_F(CudaRun, ThrowsAwayWhatComesBehindAnEndOfText) {
  FakeGpuBundle fake;
  prompts = {fakePrompt(9, 3), fakePrompt(12, 5)};
  const std::vector<int32_t> all = fakeContinuation(prompts[0], 3);
  ASSERT_NE(all[0], all[1]);
  fake.manifest["eos"] = {all[1]};
  fake.write();
  ignoresEos = false;
  EXPECT_EQ(run(fake), "");
  EXPECT_EQ(tokens[0], (std::vector<int32_t>{all[0], all[1]}));
}

// A step that fails leaves its result to nobody: the one behind it, which was under way, does nothing, and what a
// device runs next works.
TEST_F(CudaRun, RunsOnBehindAStepThatFailed) {
  std::string said;
  const auto other = [&](Engine &engine, Scheduler &) {
    Scheduler failing(engine, {});
    Request request;
    request.prompt = {96, 96};
    request.maxNew = 3;
    ASSERT_TRUE(failing.add(std::move(request)));
    const Status done = failing.drain();
    said = done ? "" : done.error().text();
  };
  prompts = {fakePrompt(9, 3)};
  EXPECT_EQ(run(FakeGpuBundle(), other), "");
  EXPECT_EQ(said, "kernel append: failed with 7 in layer 0, row 1");
  expectTokens();
}

TEST_F(CudaRun, WaitsForKernels) {
  cuda.set("hang", 3);
  EXPECT_EQ(run(FakeGpuBundle()), "");
  expectTokens();
  EXPECT_EQ(cuda.calls("cuEventQuery"), 4 * cuda.calls("cuGraphLaunch")) << "of which the last finds it done";
}

// What kernels of earlier steps have written lies there still, in both places.
TEST_F(CudaRun, NamesNoKernelOfAStepBefore) {
  const auto other = [&](Engine &engine, Scheduler &) {
    Scheduler working(engine, {});
    Request request;
    request.prompt = prompts[1];
    request.maxNew = 3;
    ASSERT_TRUE(working.add(std::move(request)));
    ASSERT_TRUE(working.drain());
    cuda.set("hang", 1);
    cuda.set("idle", 1);
  };
  devices.deadline = std::chrono::milliseconds(50);
  EXPECT_EQ(run(FakeGpuBundle(), other), "step 3: has not ended within 0.05 s, and no kernel of it has begun; give it "
                                         "more time with --deadline");
}

// A device may be destroyed while a step that nobody waits for is under way: no later than its deadline.
TEST_F(CudaRun, EndsByItsDeadlineWithAStepUnderWay) {
  FakeGpuBundle fake;
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  ASSERT_TRUE(bundle) << bundle.error().text();
  devices.driver = fakeDriver;
  devices.deadline = std::chrono::milliseconds(50);
  for (const long hang : {0, 1}) {
    cuda.reset();
    Expected<OpenedEngine> opened = openEngine(*bundle, devices, options);
    ASSERT_TRUE(opened) << opened.error().text();
    auto scheduler = std::make_unique<Scheduler>(*opened->engine, StepEvents());
    Request request;
    request.prompt = prompts[1];
    request.maxNew = 3;
    ASSERT_TRUE(scheduler->add(std::move(request)));
    ASSERT_TRUE(scheduler->step());
    scheduler.reset();
    EXPECT_EQ(cuda.calls("cuGraphLaunch"), 1);
    EXPECT_EQ(cuda.calls("cuEventQuery"), 0);
    cuda.set("hang", hang);
    opened->engine.reset();
    EXPECT_GT(cuda.calls("cuEventQuery"), 0);
    EXPECT_EQ(cuda.calls("cuCtxSynchronize"), hang ? 0 : 1) << "it would wait for what does not end";
  }
}
