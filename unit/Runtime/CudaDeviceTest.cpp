// A GPU as a device, over a driver that tests play: what it computes is what the processors compute, what cannot run is
// refused with both sides, and whatever fails leaves nothing behind.
#include "base/Utf8.h"
#include "fake/CudaRun.h"
#include <cstdio>
#include <filesystem>
#include <fstream>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

/// What opening and running `bundle` on the device of a driver that was set up says.
struct Refused {
  std::map<std::string, long> settings;
  std::string said;
};

} // namespace

TEST_F(CudaRun, GivesTheTokensOfTheProcessors) {
  EXPECT_EQ(run(FakeGpuBundle()), "");
  expectTokens();
  EXPECT_EQ(cuda.alive(), 0);
  // Both graphs of both places have each kernel once, and each step launches one of them.
  EXPECT_EQ(cuda.calls("cuLaunchKernelEx"), 16);
  EXPECT_EQ(cuda.calls("cuGraphInstantiateWithFlags"), 4);
  EXPECT_GT(cuda.calls("cuGraphLaunch"), 3);
}

TEST_F(CudaRun, DrawsTheTokensOfTheProcessors) {
  sampling = {1, 0.9f, 0, 0, 7, 0, 0};
  EXPECT_EQ(run(FakeGpuBundle()), "");
  for (size_t prompt = 0; prompt < prompts.size(); ++prompt) {
    const int32_t form = prompts[prompt].size() >= 8 ? K2RT_FORM_EXPANDED : K2RT_FORM_ABSORBED;
    EXPECT_EQ(tokens[static_cast<int64_t>(prompt)], fakeDraws(prompts[prompt], 3, form, sampling)) << prompt;
  }
}

// Of rows that are greedy a few bytes of samples are copied, of others their logits, too: 97 floats.
TEST_F(CudaRun, CopiesLogitsWhereTheHostDraws) {
  EXPECT_EQ(run(FakeGpuBundle()), "");
  const int steps = cuda.calls("cuGraphLaunch"), whenGreedy = cuda.calls("cuMemcpyDtoHAsync_v2");
  EXPECT_EQ(whenGreedy, 4); // in each graph
  cuda.reset();
  sampling.temperature = 1;
  EXPECT_EQ(run(FakeGpuBundle()), "");
  EXPECT_EQ(cuda.calls("cuGraphLaunch"), steps);
  EXPECT_EQ(cuda.calls("cuMemcpyDtoHAsync_v2"), whenGreedy + steps - 1) << "the first has no output row";
}

TEST_F(CudaRun, HasOneGraphWhereStepsAreAsLargeAsSequencesAreMany) {
  FakeGpuBundle fake;
  fake.manifest["limits"]["step_tokens"] = 3;
  fake.write();
  EXPECT_EQ(run(fake), "");
  expectTokens();
  EXPECT_EQ(cuda.calls("cuGraphInstantiateWithFlags"), 2);
}

TEST_F(CudaRun, RunsLaunchesOfAGroupBesideEachOther) {
  EXPECT_EQ(run(FakeGpuBundle()), "");
  EXPECT_EQ(cuda.calls("cuStreamWaitEvent"), 0); // two launches have more CTAs than the device runs at a time
  EXPECT_EQ(cuda.scratch(0), cuda.scratch(1));
  cuda.reset();
  cuda.set("ctas", 6);
  FakeGpuBundle fake;
  fake.manifest["device"]["ctas"] = 6;
  fake.write();
  EXPECT_EQ(run(fake), "");
  expectTokens();
  EXPECT_EQ(cuda.calls("cuStreamWaitEvent"), 4);              // in the graphs of few rows: there and back
  EXPECT_EQ(cuda.scratch(1) - cuda.scratch(0), 2 * 2 * 4096); // of the workers of two CTAs
  EXPECT_EQ(cuda.scratch(2), cuda.scratch(0));
  EXPECT_EQ(cuda.alive(), 0);
}

TEST_F(CudaRun, RefusesWhatTheBundleCannotRunOn) {
  const std::string elsewhere = "; choose another with --device, or compile for a topology of this GPU";
  const std::string smaller =
      "compile with smaller --max-sequences, --max-context or --step-tokens, or for a GPU with more memory";
  const Refused cases[] = {
      {{{"version", 11080}},
       shortened(fakeDriver) + ": the driver is of CUDA 11.8, k2c needs CUDA 12.0 or a later one; "
                               "install a later driver"},
      {{{"devices", 0}}, "device 0: the driver has 0 devices, numbered from 0"},
      {{{"major", 8}},
       "device 0 (Fake GPU): has compute capability 8.0, the bundle is of sm_90a, which needs 9.0" + elsewhere},
      {{{"major", 10}},
       "device 0 (Fake GPU): has compute capability 10.0, the bundle is of sm_90a, which needs 9.0" + elsewhere},
      {{{"total", 1 << 20}},
       "device 0 (Fake GPU): the bundle needs 512.16 MiB (537.04 MB) = 537039568 bytes of device memory, most of it "
       "reserve 512.01 MiB (536.88 MB); the device has 1.00 MiB (1.05 MB) = 1048576 bytes; " +
           smaller},
      {{{"free", 1 << 10}},
       "device 0 (Fake GPU): the bundle needs 512.16 MiB (537.04 MB) = 537039568 bytes of device memory, most of it "
       "reserve 512.01 MiB (536.88 MB); 1.00 KiB (1.02 KB) = 1024 bytes of 80.00 GiB (85.90 GB) = 85899345920 bytes "
       "are free, other processes have the rest; end them, choose another with --device, or " +
           smaller}};
  for (const Refused &each : cases) {
    cuda.reset();
    for (const auto &[key, value] : each.settings)
      cuda.set(key.c_str(), value);
    EXPECT_EQ(run(FakeGpuBundle()), each.said);
    EXPECT_EQ(code, K2RT_DEVICE_FAILED);
    EXPECT_EQ(cuda.alive(), 0);
    EXPECT_EQ(cuda.calls("cuMemAlloc_v2") + cuda.calls("cuMemHostAlloc"), 0);
  }
  cuda.reset();
  cuda.set("devices", 1);
  devices.devices = {2};
  EXPECT_EQ(run(FakeGpuBundle()), "device 2: the driver has 1 device, numbered from 0; choose another with --device");
}

TEST_F(CudaRun, RunsCodeOfAnEarlierCapability) {
  FakeGpuBundle fake;
  fake.manifest["device"]["arch"] = "sm_80";
  fake.write();
  EXPECT_EQ(run(fake), "");
  cuda.reset();
  cuda.set("major", 7);
  EXPECT_EQ(run(fake), "device 0 (Fake GPU): has compute capability 7.0, the bundle is of sm_80, which needs 8.0 or a "
                       "later one; choose another with --device, or compile for a topology of this GPU");
}

TEST_F(CudaRun, RefusesALibraryThatIsNoDriver) {
  devices.driver = "/nonexistent/libcuda.so.1";
  EXPECT_EQ(run(FakeGpuBundle()),
            "/nonexistent/libcuda.so.1: the driver cannot be loaded: /nonexistent/libcuda.so.1: cannot open shared "
            "object file: No such file or directory; install NVIDIA's driver, or name another library with --driver "
            "FILE");
  EXPECT_EQ(code, K2RT_DEVICE_FAILED);
  devices.driver = std::string(K2RT_FAKE_FOLDER) + "/fake_cuda_old.so";
  const std::string said = run(FakeGpuBundle());
  EXPECT_NE(said.find(": the driver has no cuDeviceCanAccessPeer; install a driver for CUDA 12.0 or a later one"),
            std::string::npos)
      << said;
}

TEST_F(CudaRun, RecordsTimesInATracedRunAlone) {
  const FakeGpuBundle fake;
  EXPECT_EQ(run(fake), "");
  EXPECT_EQ(cuda.calls("cuEventRecordWithFlags") + cuda.calls("cuEventElapsedTime"), 0);
  cuda.reset();
  options.traceFile = fake.path("trace.json");
  EXPECT_EQ(run(fake), "");
  expectTokens();
  EXPECT_EQ(cuda.calls("cuEventRecordWithFlags"), 4 * (1 + 2 * 4)); // of each graph: the step, and ends of launches
  EXPECT_EQ(cuda.calls("cuEventElapsedTime"), 2 * 4 * cuda.calls("cuGraphLaunch"));
  EXPECT_EQ(cuda.alive(), 0);
  for (const char *call : {"cuEventRecordWithFlags", "cuEventElapsedTime"}) {
    cuda.reset();
    cuda.fail(call, 3, 999);
    const std::string said = run(fake);
    EXPECT_EQ(said.find(call + std::string(": failed with CUDA_ERROR_UNKNOWN (999), unknown error")), 0u) << said;
    EXPECT_EQ(cuda.alive(), 0);
  }
}

/// Every call that the runtime makes, those that give something back included.
TEST_F(CudaRun, NamesTheCallThatFailsAndLeavesNothingBehind) {
  const FakeGpuBundle fake;
  ASSERT_EQ(run(fake), "");
  for (const auto &[name, count] : cuda.allCalls())
    for (int at = 1; at <= count; ++at) {
      cuda.reset();
      cuda.fail(name.c_str(), at, 999);
      const std::string said = run(fake);
      EXPECT_EQ(said.rfind(name + ": failed with CUDA_ERROR_UNKNOWN (999), unknown error", 0), 0u)
          << name << " " << at << ": " << said;
      EXPECT_EQ(cuda.alive(), 0) << name << " " << at;
    }
}

TEST_F(CudaRun, RefusesCapturesThatWereNotAnnounced) {
  std::vector<int32_t> chosen(48 * 2);
  const std::string said = run(FakeGpuBundle(), [&](Engine &, Scheduler &scheduler) {
    Captures captures;
    captures.rows = 48;
    captures.experts = chosen.data();
    scheduler.capture(captures);
  });
  EXPECT_EQ(said, "step: has capture_experts, for which the device has no memory; say what is captured when the device "
                  "is created");
}

TEST_F(CudaRun, HasNoOtherPlacement) {
  const FakeGpuBundle fake;
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  ASSERT_TRUE(bundle);
  CudaOptions onCuda;
  onCuda.driver = fakeDriver;
  Expected<std::unique_ptr<CudaDevice>> device = CudaDevice::create(*bundle, onCuda);
  ASSERT_TRUE(device) << device.error().text();
  (*device)->use(bundle->weights.slots() + 1);
  EXPECT_EQ((*device)->submit(nullptr).error().text(),
            "--placement: moves experts between ranks, a GPU's program has one");
}

TEST_F(CudaRun, ComparesWeightsUnlessTheyAreTrusted) {
  const FakeGpuBundle fake;
  std::ofstream(fake.path("weights/blob0.bin"), std::ios::in | std::ios::out).seekp(100).put('!');
  const std::string said = run(fake);
  EXPECT_NE(said.find("weights/blob0.bin: bytes 0 to 4096 hash to "), std::string::npos) << said;
  EXPECT_EQ(cuda.alive(), 0);
  devices.onCpu.trust = true;
  EXPECT_EQ(run(fake), "");
}

/// Makes the weights of a bundle two pieces of files of a checkpoint beside it.
struct Referred {
  explicit Referred(FakeBundle &fake) : folder(fake.folder + "-checkpoint") {
    std::filesystem::create_directory(folder);
    std::ifstream blob(fake.path("weights/blob0.bin"), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(blob), {});
    std::ofstream(path("a.safetensors")) << "head" + bytes.substr(1000);
    std::ofstream(path("b.safetensors")) << bytes.substr(0, 1000) + "tail";
    std::filesystem::create_directory_symlink(folder, fake.path("weights/checkpoint"));
    fake.index["files"] = {{{"file", "a.safetensors"}, {"bytes", 3100}}, {{"file", "b.safetensors"}, {"bytes", 1004}}};
    json &slot = fake.index["slots"][0];
    slot.erase("file");
    slot["pieces"] = {{1, 0, 1000, 0}, {0, 4, 3096, 1000}};
    fake.write();
    std::filesystem::remove(fake.path("weights/blob0.bin"));
  }
  ~Referred() { std::filesystem::remove_all(folder); }
  std::string path(const char *name) const { return folder + "/" + name; }

  const std::string folder;
};

TEST_F(CudaRun, ReadsTheWeightsOfACheckpoint) {
  FakeGpuBundle fake;
  const Referred checkpoint(fake);
  EXPECT_EQ(run(fake), "");
  expectTokens();
}

TEST_F(CudaRun, ComparesTheWeightsOfACheckpointUnlessTheyAreTrusted) {
  FakeGpuBundle fake;
  const Referred checkpoint(fake);
  std::ofstream(checkpoint.path("b.safetensors"), std::ios::in | std::ios::out).seekp(999).put('x');
  const std::string message = run(fake);
  EXPECT_NE(message.find("weights/checkpoint/b.safetensors: the weights from byte 0 on hash to "), message.npos)
      << message;
  EXPECT_EQ(code, K2RT_INVALID_BUNDLE);
  EXPECT_EQ(cuda.alive(), 0);
  devices.onCpu.trust = true;
  EXPECT_EQ(run(fake), "");
}

TEST_F(CudaRun, RefusesACheckpointThatIsNotThere) {
  FakeGpuBundle fake;
  const Referred checkpoint(fake);
  std::filesystem::remove(checkpoint.path("b.safetensors"));
  EXPECT_EQ(run(fake), fake.path("weights/checkpoint/b.safetensors") +
                           ": is missing, the index says a file of 1004 bytes; bring the checkpoint back, or name the "
                           "folder where it is: k2c pack DIR --checkpoint FOLDER");
  EXPECT_EQ(code, K2RT_INVALID_BUNDLE);
}

TEST_F(CudaRun, LeavesPiecesOfACheckpointToAGpu) {
  FakeBundle fake;
  const Referred checkpoint(fake);
  EXPECT_EQ(run(fake), fake.path("weights/index.json") +
                           ": names pieces of a checkpoint, which only a program of a GPU reads, and the manifest has "
                           "no device; compile the bundle again");
}

TEST_F(CudaRun, NamesTheExpertThatIsLeftOut) {
  FakeGpuBundle fake("experts");
  std::string blob;
  json ranges = json::array();
  for (int32_t expert = 0; expert < 4; ++expert) {
    const int32_t says = 12345;
    blob += std::string(reinterpret_cast<const char *>(&says), 4) + std::string(4092, 'e');
    ranges.push_back({{"file", "blob0.bin"}, {"offset", expert * 4096}, {"bytes", 4096}});
  }
  ranges[2] = nullptr;
  fake.writeFile("weights/blob0.bin", blob);
  fake.index["slots"] = {{{"slot", 0}, {"name", "experts"}, {"layer", 1}, {"experts", ranges}}};
  fake.manifest["shares"] = {{{"slots", 1}, {"experts", 4}, {"items", 1}, {"item_bytes", 4096}}};
  fake.manifest["memory"]["weights"] = 4 * 4096;
  const k2rt_limits limits = {48, 4, 1000, 1, 97, 0, 4};
  fake.manifest["device"]["reserve_bytes"] = k2rt_gpu_reserve_bytes(&limits);
  fake.write();
  devices.driver = std::string(K2RT_FAKE_FOLDER) + "/fake_cuda_experts.so";
  prompts = {{4, 6}};
  EXPECT_EQ(run(fake), "layer 1: a token wants expert 2, which the bundle leaves out of 'experts'; k2c pack with the "
                       "checkpoint brings all experts in");
}
