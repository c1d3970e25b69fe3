// A program for a GPU by the commands, over a driver that tests play: flags, captures, what ends a run, `info`, and
// what the manifest must say of the device.
#include "fake/FakeCuda.h"
#include "fake/FakeGpuBundle.h"
#include "fake/OpenBundle.h"
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

/// What the driver of a started program does.
class DriverSays {
public:
  explicit DriverSays(const std::string &what) { ::setenv("K2C_FAKE_CUDA", what.c_str(), 1); }
  ~DriverSays() { ::unsetenv("K2C_FAKE_CUDA"); }
};

/// Runs a command on the driver that tests play.
Outcome runOnFake(const FakeBundle &bundle, std::vector<std::string> arguments, int interruptAfterMs = -1) {
  arguments.insert(arguments.end(), {"--driver", fakeDriver});
  return runBundle(bundle, arguments, interruptAfterMs);
}

json jsonOnFake(const FakeBundle &bundle, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--json", "--driver", fakeDriver});
  return runJson(bundle, arguments);
}

/// What a command says on stderr when it fails with `code`.
std::string failing(int code, const Outcome &outcome) {
  EXPECT_EQ(outcome.exitCode, code) << outcome.err;
  return outcome.err;
}

const std::vector<std::string> prompt = {"--prompt-ids", "5,6,7,8,9,10,11,12,13"};

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string> &more = prompt) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

} // namespace

TEST(CudaCommands, GiveWhatTheProcessorsGive) {
  const FakeBundle processors;
  const FakeGpuBundle gpu;
  const std::vector<std::vector<std::string>> commands = {with({"logits"}), with({"logits", "--all"}), with({"routes"}),
                                                          with({"hidden"})};
  for (std::vector<std::string> command : commands) {
    const json onGpu = jsonOnFake(gpu, command);
    command.push_back("--json");
    EXPECT_EQ(onGpu, runJson(processors, command)) << command[0];
  }
  EXPECT_EQ(jsonOnFake(gpu, with({"generate", "-n", "6"}))["ids"],
            runJson(processors, with({"generate", "-n", "6", "--json"}))["ids"]);
  EXPECT_FALSE(jsonOnFake(gpu, {"bench", "--prefill", "8", "--decode", "2", "--repeat", "1"}).contains("failed"));
}

TEST(CudaCommands, ForceRoutesAndCountExperts) {
  const FakeGpuBundle gpu;
  const FakeBundle processors;
  json routes = jsonOnFake(gpu, with({"routes"}));
  gpu.writeFile("routes.json", routes.dump());
  const std::string file = gpu.path("routes.json");
  for (const char *command : {"logits", "hidden"})
    EXPECT_EQ(jsonOnFake(gpu, with({command, "--routes", file})),
              runJson(processors, with({command, "--routes", file, "--json"})));
  const std::string ours = processors.path("gpu.stats"), theirs = processors.path("cpu.stats");
  const Outcome counted = runOnFake(gpu, with({"generate", "-n", "4", "--expert-stats", ours}));
  EXPECT_EQ(counted.exitCode, 0) << counted.err;
  EXPECT_EQ(runBundle(processors, with({"generate", "-n", "4", "--expert-stats", theirs})).exitCode, 0);
  std::ifstream a(ours), b(theirs);
  EXPECT_EQ(json::parse(a), json::parse(b));
}

TEST(CudaCommands, TraceStepsAndTheirKernels) {
  const FakeGpuBundle gpu;
  const FakeBundle other;
  const Outcome traced = runOnFake(gpu, with({"generate", "-n", "2", "--trace", other.path("t.json")}));
  EXPECT_EQ(traced.exitCode, 0) << traced.err;
  std::ifstream file(other.path("t.json"));
  std::map<std::string, int> events;
  std::map<std::string, json> last;
  const json trace = json::parse(file);
  for (const json &event : trace["traceEvents"]) {
    ++events[event["name"]];
    last[event["name"]] = event;
  }
  for (const char *name : {"step", "append", "capture", "check_mode", "logits"})
    EXPECT_EQ(events[name], 2) << name;
  EXPECT_EQ(last["check_mode"]["args"],
            json::parse(R"({"variant":"only","worker":0,"begin":0,"end":5,"rows":1,"step":1})"));
  EXPECT_EQ(last["append"]["args"]["end"], 1);
  EXPECT_EQ(events["thread_name"], 5); // a branch each, and steps
  EXPECT_EQ(last["thread_name"]["args"]["name"], "steps");
}

TEST(CudaCommands, RefuseFlagsOfAnotherDevice) {
  const FakeBundle processors;
  const FakeGpuBundle gpu;
  const std::string leave = "; leave it out\n";
  EXPECT_EQ(failing(1, runOnFake(processors, with({"logits"}))),
            "run: error: --driver: is of GPUs, and the bundle is for processors" + leave);
  EXPECT_EQ(failing(1, runBundle(processors, with({"logits", "--device", "0"}))),
            "run: error: --device: is of GPUs, and the bundle is for processors" + leave);
  EXPECT_EQ(failing(1, runBundle(processors, with({"info", "--emulate-seed", "1"}, {}))),
            "run: error: --emulate-seed: is of GPUs, and the bundle is for processors" + leave);
  EXPECT_EQ(failing(1, runOnFake(gpu, with({"logits", "--threads", "2"}))),
            "run: error: --threads: is of processors, and the bundle is for a GPU, sm_90a" + leave);
  EXPECT_EQ(failing(1, runOnFake(gpu, with({"logits", "--device", "0,1"}))),
            "run: error: --device: names 2 devices, the program has 1 rank; name one\n");
  EXPECT_EQ(failing(1, runOnFake(gpu, with({"logits", "--emulate-seed", "3"}))),
            "run: error: --emulate-seed: is of the emulated driver; add --driver emulated\n");
  EXPECT_EQ(failing(1, runBundle(gpu, with({"logits", "--driver", "emulated"}))),
            "run: error: --driver emulated: the bundle has no lib/libk2c-cuda.so; compile it with a k2c that was built "
            "with the emulated driver\n");
}

TEST(CudaCommands, SayThatADriverIsEmulated) {
  const FakeGpuBundle gpu;
  std::ifstream library(fakeDriver, std::ios::binary);
  gpu.writeFile("lib/libk2c-cuda.so",
                std::string(std::istreambuf_iterator<char>(library), std::istreambuf_iterator<char>()));
  const Outcome outcome = runBundle(gpu, with({"logits", "--driver", "emulated", "--emulate-seed", "3"}));
  EXPECT_EQ(outcome.exitCode, 0);
  EXPECT_EQ(outcome.err, "run: note: kernels run in the bundle's emulated driver, an interpreter, and not on a GPU\n");
}

TEST(CudaCommands, EndWithExit3WhereTheDeviceFails) {
  const FakeGpuBundle gpu;
  EXPECT_EQ(failing(3, runBundle(gpu, with({"logits", "--driver", "/nonexistent"}))),
            "run: error: /nonexistent: the driver cannot be loaded: /nonexistent: cannot open shared object file: No "
            "such file or directory; install NVIDIA's driver, or name another library with --driver FILE\n");
  {
    const DriverSays says("fail=cuGraphLaunch:1:719");
    EXPECT_EQ(failing(3, runOnFake(gpu, with({"logits"}))),
              "run: error: cuGraphLaunch: failed with CUDA_ERROR_LAUNCH_FAILED (719), unspecified launch failure\n");
  }
  {
    const DriverSays says("fail=cuMemAlloc_v2:1:998");
    EXPECT_EQ(failing(3, runOnFake(gpu, with({"logits"}))),
              "run: error: cuMemAlloc_v2: failed with an error that the driver does not name (998) on 32.00 KiB "
              "(32.77 KB) for cache\n");
  }
  {
    const DriverSays says("fail=cuMemFree_v2:1:700");
    const Outcome outcome = runOnFake(gpu, with({"logits", "--json"})); // which has printed them
    EXPECT_EQ(outcome.exitCode, 3);
    EXPECT_NE(outcome.out, "");
    EXPECT_EQ(outcome.err, "run: error: cuMemFree_v2: failed with CUDA_ERROR_ILLEGAL_ADDRESS (700), an illegal memory "
                           "access was encountered\n");
  }
  {
    const DriverSays says("hang=2");
    EXPECT_EQ(
        failing(3, runOnFake(gpu, with({"logits", "--deadline", "0.05"}))),
        "run: error: step 0: has not ended within 0.05 s, it had come to kernel logits (1 row); give it more time "
        "with --deadline\n");
  }
  {
    const DriverSays says("hang=1,idle=1");
    EXPECT_EQ(failing(3, runOnFake(gpu, with({"logits", "--deadline", "0.05"}))),
              "run: error: step 0: has not ended within 0.05 s, and no kernel of it has begun; give it more time with "
              "--deadline\n");
  }
  {
    const DriverSays says("late=1"); // the step's own copy comes behind the word that ends it
    EXPECT_EQ(failing(3, runOnFake(gpu, with({"logits", "--deadline", "0.05"}))),
              "run: error: step 0: has not ended within 0.05 s, and no kernel of it has begun; give it more time with "
              "--deadline\n");
  }
  const DriverSays says("hang=1");
  EXPECT_EQ(
      failing(3, runOnFake(gpu, with({"logits", "--deadline", "0.05"}))),
      "run: error: step 0: has not ended within 0.05 s, and kernel logits (1 row) does not end; give it more time "
      "with --deadline\n");
}

TEST(CudaCommands, EndWithExit130WhenInterrupted) {
  const FakeGpuBundle gpu;
  const DriverSays says("hang=2");
  const Outcome outcome = runOnFake(gpu, with({"generate", "-n", "2"}), /*interruptAfterMs=*/1000);
  EXPECT_EQ(outcome.exitCode, 130);
  EXPECT_EQ(outcome.err, "");
}

TEST(CudaCommands, SayWhatAKernelReturns) {
  const FakeGpuBundle gpu; // whose program refuses 96 behind 96
  EXPECT_EQ(failing(3, runOnFake(gpu, {"logits", "--prompt-ids", "1,96,96"})),
            "run: error: kernel append: failed with 7 in layer 0, row 2\n");
}

TEST(CudaCommands, RefuseCodeThatDoesNotLoad) {
  FakeGpuBundle gpu;
  gpu.leaveCubinsOut();
  gpu.writeFile("ptx/k0.ptx", "other");
  EXPECT_EQ(failing(3, runOnFake(gpu, with({"logits"}))),
            "run: error: cuLibraryLoadData: failed with CUDA_ERROR_INVALID_PTX (218), a PTX JIT compilation failed on "
            "kernel append of ptx/k0.ptx: line 1: no code\n");
  gpu.writeFile("ptx/k9.ptx", "fake");
  gpu.manifest["kernels"][0]["hash"] = "k9";
  gpu.write();
  EXPECT_EQ(failing(3, runOnFake(gpu, with({"logits"}))),
            "run: error: cuLibraryGetKernel: failed with CUDA_ERROR_NOT_FOUND (500), named symbol not found on entry "
            "k9 of ptx/k9.ptx\n");
  gpu.manifest["kernels"][0]["hash"] = "k8";
  gpu.write();
  EXPECT_NE(failing(1, runOnFake(gpu, with({"logits"}))).find("ptx/k8.ptx"), std::string::npos);
}

TEST(CudaCommands, TakeCubinsOfTheVeryDevice) {
  const std::string compiled = "run: note: the driver compiled the kernels from PTX: ";
  FakeGpuBundle gpu;
  EXPECT_EQ(runOnFake(gpu, with({"logits"})).err, "");
  {
    const DriverSays says("fail=cuLibraryLoadData:1:209");
    const Outcome outcome = runOnFake(gpu, with({"logits"}));
    EXPECT_EQ(outcome.exitCode, 0);
    EXPECT_EQ(outcome.err, compiled + "it has no use for cubins of sm_90a\n");
  }
  gpu.manifest["device"]["arch"] = "sm_80";
  gpu.write();
  EXPECT_EQ(runOnFake(gpu, with({"logits"})).err, compiled + "the bundle's cubins are of sm_80 alone\n");
  gpu.leaveCubinsOut();
  EXPECT_EQ(runOnFake(gpu, with({"logits"})).err,
            compiled + "the bundle has no cubins, as it was compiled without ptxas\n");
}

TEST(CudaCommands, RefuseCubinsThatDoNotLoad) {
  const FakeGpuBundle gpu;
  const DriverSays says("fail=cuLibraryLoadData:1:200");
  EXPECT_EQ(failing(3, runOnFake(gpu, with({"logits"}))),
            "run: error: cuLibraryLoadData: failed with CUDA_ERROR_INVALID_IMAGE (200), device kernel image is invalid "
            "on kernel append of cubin/k0.cubin; install a driver that knows code of ptxas 13.0.88, or compile with an "
            "earlier ptxas, which K2C_PTXAS names\n");
}

TEST(CudaCommands, RefuseCodeThatWasChanged) {
  for (const char *file : {"ptx/k1.ptx", "cubin/k2.cubin"}) {
    const FakeGpuBundle gpu;
    std::fstream(gpu.path(file), std::ios::in | std::ios::out).seekp(3).put('!');
    const std::string said = failing(1, runOnFake(gpu, with({"logits"})));
    EXPECT_NE(said.find(std::string(file) + ": hashes to "), std::string::npos) << said;
  }
}

TEST(CudaCommands, RefuseAProgramThatIsNotOfAGpu) {
  const std::string again = "; compile the bundle again\n",
                    processors = ", which is for programs of processors" + again;
  const std::pair<const char *, std::string> mistakes[] = {
      {"of_processors", "program.so: calls launch" + processors},
      {"has_barrier", "program.so: calls barrier" + processors},
      {"starts", "program.so: calls collective_start" + processors},
      {"waits", "program.so: calls collective_wait" + processors},
      {"too_few", "kernel capture: is launched with 4 arguments, the manifest says 5" + again},
      {"no_kernel", "program.so: launches kernel 4, the manifest has 4" + again},
      {"no_count",
       "kernel logits: is launched with a grid of 160, 1, 1, 1: no count of rows, or a number out of range" + again},
      {"out_of_range",
       "kernel logits: is launched with a grid of 8, 1, 0, 1: no count of rows, or a number out of range" + again}};
  for (const auto &[mistake, said] : mistakes)
    EXPECT_EQ(failing(1, runOnFake(FakeGpuBundle(mistake), with({"logits"}))), "run: error: " + said);
  EXPECT_EQ(failing(3, runOnFake(FakeGpuBundle("gives_up"), with({"logits"}))),
            "run: error: program.so: the step failed with 5 while it was recorded\n");
}

TEST(CudaCommands, InfoSaysWhatTheDeviceTakes) {
  FakeGpuBundle gpu;
  const json info = jsonOnFake(gpu, {"info"});
  EXPECT_EQ(info["device"],
            json::parse(R"({"arch":"sm_90a","driver":"CUDA 12.4","name":"Fake GPU","code":"cubin","ctas":3,
    "threads":64,"workers_per_cta":2,"memory_bytes":85899345920,"reference_bytes":0})"));
  const json &rank = info["ranks"][0];
  EXPECT_EQ(rank["owned"], json::parse(R"({"weights":4096,"cache":65536,"arena":65536,"workspace":27680,"graphs":0,
    "collectives":0})"));
  int64_t owned = 0;
  for (const json &part : rank["owned"])
    owned += part.get<int64_t>();
  EXPECT_EQ(rank["device_bytes"], owned + rank["reserve_bytes"].get<int64_t>());
  EXPECT_EQ(rank["reserve_bytes"], gpu.manifest["device"]["reserve_bytes"]);
  EXPECT_EQ(rank["reserve_source"], "estimated: context, code and graphs of no device have been measured");
  const json alone = runJson(gpu, {"info", "--json", "--driver", "/nonexistent"});
  EXPECT_TRUE(alone["device"]["driver"].is_null() && alone["device"]["name"].is_null());
  EXPECT_NE(runOnFake(gpu, {"info"}).out.find("device     sm_90a, here Fake GPU, CUDA 12.4\nmemory     "),
            std::string::npos);
  EXPECT_NE(runBundle(gpu, {"info", "--driver", "/nonexistent"}).out.find("device     sm_90a, no driver here\n"),
            std::string::npos);
  EXPECT_NE(runOnFake(gpu, {"info"}).out.find("\ncode       cubins of ptxas 13.0.88 for sm_90a, and PTX\n"),
            std::string::npos);
  gpu.leaveCubinsOut();
  EXPECT_EQ(jsonOnFake(gpu, {"info"})["device"]["code"], "ptx");
  EXPECT_NE(runOnFake(gpu, {"info"})
                .out.find("\ncode       PTX, which the driver compiles at each start: the bundle was "
                          "compiled without ptxas\n"),
            std::string::npos);
}

TEST(CudaManifest, RefusesWhatIsOutOfRange) {
  const std::tuple<const char *, json, std::string> wrong[] = {
      {"kind", "rocm", "kind: is \"rocm\", this runtime knows cuda"},
      {"code", "sass", "code: is \"sass\", must be cubin or ptx"},
      {"arch", "gfx90", "arch: is \"gfx90\", must be sm_ and a number, as sm_80 or sm_90a"},
      {"arch", "sm_a", "arch: is \"sm_a\", must be sm_ and a number, as sm_80 or sm_90a"},
      {"arch", "sm_9000", "arch: is \"sm_9000\", must be sm_ and a number, as sm_80 or sm_90a"},
      {"threads", 1025, "threads: is 1025, must be within 1..1024"},
      {"workers_per_cta", 65, "workers_per_cta: is 65, must be within 1..64"},
      {"ctas", 0, "ctas: is 0, must be within 1..65536"},
      {"memory_bytes", 0, "memory_bytes: is 0, must be within 1..1125899906842624"}};
  for (const auto &[key, value, said] : wrong) {
    FakeGpuBundle fake;
    fake.manifest["device"][key] = value;
    fake.write();
    EXPECT_EQ(opening(fake), "manifest.json: device." + said + again);
  }
  FakeGpuBundle fake;
  const int64_t reserve = fake.manifest["device"]["reserve_bytes"];
  fake.manifest["device"]["reserve_bytes"] = reserve - 1;
  fake.write();
  EXPECT_EQ(opening(fake), "manifest.json: device.reserve_bytes: is " + std::to_string(reserve - 1) +
                               ", this runtime needs " + std::to_string(reserve) + " (k2rt/reserve.h)" + again);
  fake.manifest["device"]["reserve_bytes"] = reserve;
  fake.manifest["device"]["ctas"] = 65536;
  fake.manifest["memory"]["scratch_per_worker"] = int64_t(1) << 37;
  fake.write();
  EXPECT_EQ(opening(fake),
            "manifest.json: device.ctas: makes the scratch of all workers larger than 2^50 bytes" + again);
}

TEST(CudaManifest, RefusesKernelsThatHaveNoCode) {
  FakeGpuBundle fake;
  fake.manifest["kernels"][1]["arguments"] = 65;
  fake.write();
  EXPECT_EQ(opening(fake), "manifest.json: kernels[1].arguments: is 65, must be within 0..64" + again);
  fake.manifest["kernels"][1]["arguments"] = 5;
  fake.manifest["kernels"][1]["hash"] = "../k1";
  fake.write();
  EXPECT_EQ(opening(fake),
            "manifest.json: kernels[1].hash: is \"../k1\", must be letters, digits and _: it names a file "
            "of code" +
                again);
}

TEST(CudaManifest, RefusesSeveralRanks) {
  FakeGpuBundle fake;
  fake.manifest["model"]["experts"] = 0;
  fake.repeat(2, "tp=1,dp=2,replica=2");
  fake.write();
  EXPECT_EQ(opening(fake), "manifest.json: device.kind: is cuda and topology.ranks is 2, this runtime runs programs of "
                           "one rank on a GPU" +
                               again);
}
