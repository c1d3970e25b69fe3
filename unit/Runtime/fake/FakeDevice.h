// A device without workers, and an engine on it: what is asked of a device, in which order.
#ifndef K2C_UNIT_RUNTIME_FAKE_FAKEDEVICE_H
#define K2C_UNIT_RUNTIME_FAKE_FAKEDEVICE_H

#include "engine/Scheduler.h"
#include "fake/FakeBundle.h"
#include <deque>
#include <functional>
#include <gtest/gtest.h>

namespace k2c::runtime {

/// What a FakeDevice is to do, and what was asked of it.
struct Script {
  std::vector<std::string> calls;
  std::string failing; ///< the call that fails, as `calls` names it
  int32_t sample = 0;  ///< of every row behind those of `samples`
  std::vector<int32_t> samples;
  bool chains = false;
  k2rt_ir_step_fn entry = nullptr;
  std::vector<int32_t> ids;              ///< of the last uploaded step
  int64_t earlierRows = 0;               ///< likewise
  std::function<void()> onUpload, onRun; ///< may be none
};

/// Keeps memory and computes nothing. Results are its own arrays, not those of the step.
class FakeDevice : public Device {
public:
  explicit FakeDevice(Script &script) : script(script) {}

  int32_t workers() const override { return 0; }
  Expected<std::byte *> allocate(int64_t bytes, const char *purpose, MemoryUse use) override {
    if (Status done = call(std::string(use == MemoryUse::program ? "program: " : "engine: ") + purpose); !done)
      return done.takeError();
    memory.push_back(std::make_unique<std::byte[]>(static_cast<size_t>(bytes)));
    return memory.back().get();
  }
  Status load(const RankMemory &rank, Trace *) override {
    EXPECT_EQ(rank.planes, (std::vector<void *>{memory[2].get(), memory[3].get()}));
    EXPECT_EQ(rank.arena, memory[4].get());
    return call("load");
  }
  void use(const void *const *) override { EXPECT_TRUE(call("use")); }
  void upload(const k2rt_ir_step &step, bool) override {
    const auto *ids = static_cast<const int32_t *>(step.token_ids);
    script.ids.assign(ids, ids + step.token_rows);
    if (script.onUpload)
      script.onUpload();
    script.earlierRows = step.earlier_rows;
    EXPECT_TRUE(call("upload"));
    outputs.push_back(step.output_rows);
  }
  bool chains() const override { return script.chains; }
  Status submit(k2rt_ir_step_fn entry) override {
    script.entry = entry;
    if (script.onRun)
      script.onRun();
    return call("run");
  }
  Status collect() override {
    if (outputs.empty())
      return {};
    samples.assign(static_cast<size_t>(outputs.front()), script.sample);
    std::copy_n(script.samples.begin(), std::min(script.samples.size(), samples.size()), samples.begin());
    logits.assign(static_cast<size_t>(outputs.front()) * 97, static_cast<float>(script.sample));
    outputs.pop_front();
    Status done = script.chains ? call("collect") : Status();
    if (!done)
      outputs.clear();
    return done;
  }
  StepResults results() const override {
    script.calls.push_back("results");
    return {logits.data(), samples.data()};
  }
  void interrupt() override { EXPECT_TRUE(call("interrupt")); }

private:
  Status call(const std::string &name) {
    script.calls.push_back(name);
    if (name == script.failing)
      return Error{K2RT_SYSTEM, "fake device", "refuses to " + name, ""};
    return {};
  }

  Script &script;
  std::vector<std::unique_ptr<std::byte[]>> memory;
  std::deque<int64_t> outputs; ///< of steps that are not collected
  std::vector<int32_t> samples;
  std::vector<float> logits;
};

/// An engine on a fake device.
class EngineOnFake : public testing::Test {
protected:
  Expected<std::unique_ptr<Engine>> create(const EngineOptions &options = {}) {
    return Engine::create(*bundle, std::make_unique<FakeDevice>(script), options);
  }
  static Request reading(std::vector<int32_t> prompt, int64_t maxNew) {
    Request request;
    request.prompt = std::move(prompt);
    request.maxNew = maxNew;
    return request;
  }

  FakeBundle fake;
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  Script script;
};

} // namespace k2c::runtime

#endif
