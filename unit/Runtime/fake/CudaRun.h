// Runs on the device of a driver that tests play.
#ifndef K2C_UNIT_RUNTIME_FAKE_CUDARUN_H
#define K2C_UNIT_RUNTIME_FAKE_CUDARUN_H

#include "device/OpenEngine.h"
#include "engine/Scheduler.h"
#include "fake/FakeCuda.h"
#include "fake/FakeGpuBundle.h"
#include <functional>
#include <gtest/gtest.h>

namespace k2c::runtime {

/// One run of a few prompts.
class CudaRun : public testing::Test {
protected:
  /// What it, or else its end, fails with; "": nothing.
  std::string run(const FakeBundle &fake, const std::function<void(Engine &, Scheduler &)> &before = {}) {
    unreturned.reset();
    devices.unreturned = &unreturned;
    const std::string said = runToItsEnd(fake, before);
    return said.empty() && unreturned ? ended(*unreturned) : said;
  }
  std::string runToItsEnd(const FakeBundle &fake, const std::function<void(Engine &, Scheduler &)> &before) {
    tokens.clear();
    Expected<Bundle> bundle = Bundle::open(fake.folder);
    if (!bundle)
      return ended(bundle.takeError());
    devices.driver = devices.driver.empty() ? fakeDriver : devices.driver;
    Expected<OpenedEngine> opened = openEngine(*bundle, devices, options);
    if (!opened)
      return ended(opened.takeError());
    StepEvents events;
    events.token = [&](const Sequence &sequence, int32_t id, bool) {
      tokens[sequence.number].push_back(id);
      return true;
    };
    Scheduler scheduler(*opened->engine, std::move(events));
    if (before)
      before(*opened->engine, scheduler);
    for (const std::vector<int32_t> &prompt : prompts) {
      Request request;
      request.prompt = prompt;
      request.maxNew = 3;
      request.ignoreEos = ignoresEos;
      request.sampling = sampling;
      if (Expected<int64_t> number = scheduler.add(std::move(request)); !number)
        return ended(number.takeError());
    }
    Status done = scheduler.drain();
    if (done)
      done = opened->engine->finish();
    return done ? "" : ended(done.takeError());
  }
  std::string ended(const Error &error) {
    code = error.code;
    return error.text();
  }
  void expectTokens() {
    for (size_t prompt = 0; prompt < prompts.size(); ++prompt)
      EXPECT_EQ(tokens[static_cast<int64_t>(prompt)], fakeContinuation(prompts[prompt], 3)) << prompt;
  }

  FakeCuda cuda;
  std::optional<Error> unreturned; ///< of the last run
  DeviceOptions devices;
  EngineOptions options;
  k2rt_ir_sampling sampling = {0, 1, 0, 0, 0, 0, 0};
  std::vector<std::vector<int32_t>> prompts = {fakePrompt(70, 1), fakePrompt(3, 2), fakePrompt(9, 3)};
  bool ignoresEos = true;
  std::map<int64_t, std::vector<int32_t>> tokens;
  k2rt_code code = K2RT_OK;
};

} // namespace k2c::runtime

#endif
