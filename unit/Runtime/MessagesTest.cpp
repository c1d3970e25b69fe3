// Messages of the runtime, each with the condition that makes it and in full: bundles, programs, machines, requests.
#include "../LimitedChild.h"
#include "base/File.h"
#include "base/FormatBytes.h"
#include "base/JsonFields.h"
#include "device/cpu/CpuDevice.h"
#include "device/cpu/Region.h"
#include "engine/Scheduler.h"
#include "engine/StepArrays.h"
#include "engine/Trace.h"
#include "fake/FakeBundle.h"
#include "k2rt/program.h"
#include "k2rt/reserve.h"
#include "program/Bundle.h"
#include "program/CpuFeatures.h"
#include "run/BufferedRows.h"
#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>

using namespace k2c::test;
using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

template <class T> std::string said(const T &result) { return result ? "accepted" : result.error().text(); }

/// What reading the manifest of a sound bundle says when the value at `path` is another one.
std::string withValue(const char *path, const json &value) {
  FakeBundle fake;
  fake.manifest[json::json_pointer(path)] = value;
  return said(parseManifest(fake.manifest.dump(), "manifest.json", 0));
}

/// What opening `fake` says, with names of files as the bundle has them.
std::string opening(const FakeBundle &fake) {
  std::string text = said(Bundle::open(fake.folder));
  for (size_t at; (at = text.find(fake.folder + "/")) != text.npos;)
    text.erase(at, fake.folder.size() + 1);
  return text;
}

const std::string again = "; compile the bundle again with this version of k2c";

} // namespace

TEST(ManifestMessages, OfFields) {
  EXPECT_EQ(said(parseManifest("[]", "manifest.json", 0)), "manifest.json: is a list of 0, must be an object" + again);
  EXPECT_EQ(withValue("/model/layers", 9223372036854775808ull),
            "manifest.json: model.layers: is 9223372036854775808, must be an integer within 1..65536" + again);
  EXPECT_EQ(withValue("/model/layers", "2"),
            "manifest.json: model.layers: is \"2\", must be an integer within 1..65536" + again);
  EXPECT_EQ(withValue("/model/name", 5),
            "manifest.json: model.name: is 5, must be a string of at most 4096 bytes" + again);
  EXPECT_EQ(withValue("/eos", 5), "manifest.json: eos: is 5, must be a list of at most 256" + again);
  EXPECT_EQ(withValue("/eos", std::vector<int>(257, 1)),
            "manifest.json: eos: is a list of 257, must be a list of at most 256" + again);
  FakeBundle fake;
  fake.manifest["model"].erase("layers");
  EXPECT_EQ(said(parseManifest(fake.manifest.dump(), "manifest.json", 0)),
            "manifest.json: model.layers: is missing" + again);
}

TEST(ManifestMessages, OfTheTextItself) {
  EXPECT_EQ(said(parseJsonValue(std::string_view("{}\0", 3), "f.json")), "f.json:1:3: not JSON: a NUL byte");
  EXPECT_EQ(said(parseJsonValue("[1,]", "f.json")).rfind("f.json:1:4: not JSON: syntax error ", 0), 0u);
  EXPECT_EQ(said(parseJsonValue(std::string(40, '['), "f.json")),
            "f.json: JSON is nested deeper than 32 levels; flatten the file");
  EXPECT_EQ(said(parseJsonValue("]][", "f.json")).find("nested"), std::string::npos);
}

TEST(ManifestMessages, OfWhatFieldsSayOfEachOther) {
  EXPECT_EQ(withValue("/model/moe_layers", {1, 1}),
            "manifest.json: model.moe_layers: is not in ascending order" + again);
  EXPECT_EQ(withValue("/numerics/mla", "sideways"),
            "manifest.json: numerics.mla: is \"sideways\", must be phased, absorbed or expanded" + again);
  EXPECT_EQ(withValue("/cache/1/pages", 32),
            "manifest.json: cache[1].pages: is 32, another plane of group 0 has 64" + again);
  EXPECT_EQ(withValue("/cache/0/width", 1 << 20), "manifest.json: memory.cache: is 65536 bytes, the planes of "
                                                  "\"cache\" need 34359771136" +
                                                      again);
  EXPECT_EQ(withValue("/memory/logits", 4),
            "manifest.json: memory.logits: is 4 bytes, one row of 97 logits needs 388" + again);
  EXPECT_EQ(withValue("/weights_index", "../index.json"),
            "manifest.json: weights_index: is not a path inside the bundle" + again);
  FakeBundle fake;
  const k2rt_limits limits = {48, 4, 1000, 1, 97, 0, 0};
  EXPECT_EQ(withValue("/memory/reserve_bytes", 1), "manifest.json: memory.reserve_bytes: is 1, this runtime needs " +
                                                       std::to_string(k2rt_reserve_bytes(&limits)) +
                                                       " (k2rt/reserve.h)" + again);
  fake.manifest["cache"][0]["width"] = 1 << 20;
  fake.manifest["cache"][0]["bytes_per_element"] = 8;
  fake.manifest["cache"][0]["pages"] = 1 << 24;
  EXPECT_EQ(said(parseManifest(fake.manifest.dump(), "manifest.json", 0)),
            "manifest.json: cache[0].pages: makes the plane larger than 2^50 bytes" + again);
}

TEST(ManifestMessages, OfCacheGroups) {
  const std::string place = "manifest.json: cache[1].group: ";
  EXPECT_EQ(withValue("/cache/1/group", 8), place + "is 8, must be within 0..7" + again);
  EXPECT_EQ(withValue("/cache/1/group", -1), place + "is -1, must be within 0..7" + again);
  EXPECT_EQ(withValue("/cache/1/group", INT64_MAX), place + "is 9223372036854775807, must be within 0..7" + again);
  EXPECT_EQ(withValue("/cache/1/group", UINT64_MAX),
            place + "is 18446744073709551615, must be an integer within 0..7" + again);
  EXPECT_EQ(withValue("/cache/1/group", 0.5), place + "is 0.5, must be an integer within 0..7" + again);
  EXPECT_EQ(withValue("/cache/1/group", 2),
            "manifest.json: cache: has no plane of group 1, but one of group 2" + again);
}

TEST(ManifestMessages, OfPagesThatHoldNoSequence) {
  FakeBundle fake;
  fake.manifest["cache"][0]["pages"] = fake.manifest["cache"][1]["pages"] = 8;
  fake.manifest["memory"]["cache"] = 2 * 2 * 8 * 64 * 4;
  EXPECT_EQ(said(parseManifest(fake.manifest.dump(), "manifest.json", 0)),
            "manifest.json: cache: group 0 has 8 pages per layer, one sequence of max_context needs 16" + again);
}

TEST(CpuMessages, LackingAndUnknown) {
  EXPECT_EQ(said(checkCpuFeatures({"sse2", "warp-drive"}, "znver9")),
            "target znver9: needs CPU feature \"warp-drive\", which this build cannot check; compile again with a "
            "--target this build knows");
  int lacking = 0; // no machine has all of these
  for (const char *name : {"sse4a", "avx512vp2intersect", "avxifma", "prefetchi", "amx-tile"}) {
    const std::string text = said(checkCpuFeatures({name}, "other"));
    if (text == "accepted")
      continue;
    ++lacking;
    EXPECT_EQ(text, "target other: this machine lacks CPU feature \"" + std::string(name) +
                        "\"; compile on this machine, or with a smaller --target such as x86-64-v3");
  }
  EXPECT_GT(lacking, 0);
}

TEST(ProgramMessages, OfAnotherAbi) {
  EXPECT_EQ(opening(FakeBundle("fake_abi")),
            "program.so: has ABI other, this runtime has " + std::to_string(K2RT_ABI_VERSION) + again);
  EXPECT_EQ(opening(FakeBundle("fake_liar")),
            "program.so: has ABI 9998, this runtime has " + std::to_string(K2RT_ABI_VERSION) + again);
}

TEST(ProgramMessages, OfOtherCacheGroups) {
  FakeBundle fake;
  fake.manifest["cache"][1]["group"] = 1;
  fake.write();
  EXPECT_EQ(opening(fake), "program.so: n_groups is 1, the manifest says 2; compile the bundle again");
}

TEST(ProgramMessages, OfOneThatLacksItsFunctions) {
  EXPECT_EQ(opening(FakeBundle("fake_stepless")), "program.so: has no entry 'serve'; compile the bundle again");
  EXPECT_EQ(opening(FakeBundle("fake_entryless")),
            "program.so: has no entries, no kernel names or no sizes of weight slots; compile the bundle again");
  EXPECT_EQ(opening(FakeBundle("fake_mute")),
            "program.so: does not export k2c_program_query; compile the bundle again");
}

TEST(ProgramMessages, OfOneThatIsNoProgram) {
  FakeBundle fake;
  fake.writeFile("program.so", "no program");
  EXPECT_EQ(opening(fake).rfind("program.so: cannot be loaded: ", 0), 0u) << opening(fake);
}

TEST(ProgramMessages, OfAnotherBundlesProgram) {
  FakeBundle fake;
  fake.manifest["memory"]["arena"] = 4096;
  fake.write();
  EXPECT_EQ(opening(fake), "program.so: arena_bytes is 65536, the manifest says 4096; compile the bundle again");
}

TEST(BundleMessages, OfWeights) {
  FakeBundle fake;
  fake.manifest["memory"]["weights"] = 100;
  fake.write();
  EXPECT_EQ(opening(fake), "weights/index.json: maps 4096 bytes, the manifest states 100; compile the bundle again");
  FakeBundle elsewhere;
  elsewhere.index["slots"][0]["file"] = "../blob0.bin";
  elsewhere.write();
  EXPECT_EQ(opening(elsewhere),
            "weights/index.json: slots[0].file: is not the plain name of a file beside the index" + again);
}

TEST(FileMessages, OfPathsInABundle) {
  FakeBundle fake;
  const std::string &folder = fake.folder;
  EXPECT_EQ(said(readBundleFile(folder, "../manifest.json", 100)),
            folder + "/../manifest.json: is not a path inside the bundle; compile the bundle again");
  EXPECT_EQ(said(readBundleFile(folder, "weights", 100)),
            folder + "/weights: is not a regular file; compile the bundle again");
  EXPECT_EQ(said(readBundleFile(folder, "manifest.json", 100)), folder + "/manifest.json: is larger than 100 B");
  EXPECT_EQ(said(readBundleFile(folder, "absent", 100)),
            folder + "/absent: is missing; compile the bundle again, or copy the whole folder");
  EXPECT_EQ(said(MappedFile::open(folder, "weights/blob0.bin", 4095)),
            folder + "/weights/blob0.bin: has 4096 bytes, the index says 4095; copy the file again or run k2c pack");
  std::filesystem::create_symlink("manifest.json", fake.path("link"));
  EXPECT_EQ(said(readBundleFile(folder, "link", 100)),
            folder + "/link: is reached through a symbolic link or a file that is no folder; put the regular file "
                     "there: a bundle does not follow links");
}

TEST(MemoryMessages, OfWhatTheSystemRefuses) {
  EXPECT_EQ(said(Region::allocate(int64_t(1) << 60, "arena")),
            "arena: the system refuses 1024.00 PiB (1152.92 PB) of memory; free memory, or compile with smaller "
            "--max-sequences, --max-context or --step-tokens");
  Manifest manifest;
  manifest.limits = {1, int64_t(1) << 20, int64_t(1) << 34, 1, 97, 0, 0};
  FakeBundle fake;
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  ASSERT_TRUE(bundle) << bundle.error().text();
  Expected<std::unique_ptr<CpuDevice>> device = CpuDevice::create(*bundle, {});
  ASSERT_TRUE(device) << device.error().text();
  const std::string arrays = said(StepArrays::allocate(manifest, **device));
  EXPECT_EQ(arrays.rfind("step arrays: the system refuses ", 0), 0u) << arrays;
}

// Of a process's own memory, nothing is mapped at address 0.
TEST(FileMessages, OfOnesThatFailToBeRead) {
  EXPECT_EQ(said(readUserFile("/proc/self/mem", 100)), "/proc/self/mem: cannot read: Input/output error");
}

TEST(FileMessages, OfOnesThatCannotBeMapped) {
  if (!canLimitMemory)
    GTEST_SKIP() << "a sanitizer takes memory itself";
  FakeBundle fake;
  std::filesystem::resize_file(fake.path("weights/blob0.bin"), 1 << 26);
  EXPECT_EQ(saidInChild([&] {
              limitMoreMemory(1 << 20);
              return said(MappedFile::open(fake.folder, "weights/blob0.bin", 1 << 26));
            }),
            fake.path("weights/blob0.bin") + ": cannot map 64.00 MiB (67.11 MB): Cannot allocate memory");
}

TEST(BufferedRowsMessages, OfATemporaryFileThatIsRefused) {
  EXPECT_EQ(saidInChild([] {
              limit(RLIMIT_NOFILE, 0);
              return said(BufferedRows::create());
            }),
            "temporary file: cannot be created in /tmp: Too many open files");
}

TEST(BufferedRowsMessages, OfResultsThatDoNotFit) {
  EXPECT_EQ(saidInChild([] {
              ::signal(SIGXFSZ, SIG_IGN);
              limit(RLIMIT_FSIZE, 4096);
              Expected<BufferedRows> buffered = BufferedRows::create();
              const std::vector<float> logits(4096);
              buffered->write(0, logits.data(), int64_t(logits.size()));
              return said(buffered->status());
            }),
            "temporary file: cannot hold the results in /tmp: File too large");
}

TEST(TraceMessages, OfRingsThatAreRefused) {
  EXPECT_EQ(saidInChild([] {
              const int next = ::dup(0);
              ::close(next);
              limit(RLIMIT_NOFILE, rlim_t(next)); // as many as are open
              return said(Trace::create(1));
            }),
            "--trace: cannot create the rings: Too many open files");
  const std::string rings = said(Trace::create(INT32_MAX));
  EXPECT_EQ(rings.rfind("--trace: cannot map ", 0), 0u) << rings;
  EXPECT_NE(rings.find("B) for the rings: "), std::string::npos) << rings;
}

TEST(MemoryMessages, OfABundleThatDoesNotFit) {
  FakeBundle fake;
  Expected<Manifest> manifest = readManifest(*readFileList(fake.folder));
  ASSERT_TRUE(manifest);
  const auto exactly = [](int64_t bytes) { return formatBytes(bytes) + " = " + std::to_string(bytes) + " bytes"; };
  Container container;
  container.memoryBytes = 1 << 19;
  container.memorySource = "memory.max";
  EXPECT_EQ(said(checkMemoryFits(*manifest, 2, container)),
            "memory: the bundle needs " + exactly(manifest->memory.peakBytes(2)) +
                ", memory.max allows 512.00 KiB (524.29 KB) = 524288 bytes; give the container more memory, or compile "
                "with smaller "
                "--max-sequences, --max-context or --step-tokens");
  container.memoryBytes = int64_t(1) << 40;
  container.availableBytes = 5;
  EXPECT_EQ(said(checkMemoryFits(*manifest, 2, container)),
            "memory: the bundle needs " + exactly(manifest->memory.anonymousBytes(2)) +
                " beside its weights, 5 B = 5 bytes are available; end other programs, or give the container more "
                "memory, or compile with smaller --max-sequences, --max-context or --step-tokens");
}

TEST(MemoryMessages, OfRanksThatMapExpertsOfTheirOwn) {
  FakeBundle fake("fake_ranks2");
  Expected<Manifest> manifest = readManifest(*readFileList(fake.folder));
  ASSERT_TRUE(manifest);
  const int64_t experts = 8 * 4096; // of 8 slots
  const MemoryCertificate &memory = manifest->memory;
  const int64_t needed = 2 * (memory.anonymousBytes(1) + experts) + memory.weights - experts + memory.code;
  Container container;
  container.memorySource = "memory.max";
  container.memoryBytes = container.availableBytes = needed;
  EXPECT_TRUE(checkMemoryFits(*manifest, 1, container, 2));
  --container.memoryBytes;
  EXPECT_NE(said(checkMemoryFits(*manifest, 1, container, 2)).find("2 ranks of the bundle need "), std::string::npos);
}

TEST(EngineMessages, OfOptions) {
  FakeBundle fake;
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  ASSERT_TRUE(bundle) << bundle.error().text();
  CpuOptions options;
  EXPECT_EQ(said(CpuEngine::create(*bundle, options, {-1, ""})), "--chunk: is -1, must be at least 1");
  options.threads = -1;
  EXPECT_EQ(said(CpuEngine::create(*bundle, options, {})), "--threads: is -1, must be within 1..4096");
}

TEST(RequestMessages, OfLengths) {
  FakeBundle fake;
  Expected<Manifest> manifest = readManifest(*readFileList(fake.folder));
  ASSERT_TRUE(manifest);
  const auto message = [&](size_t tokens, int64_t maxNew) {
    return said(checkRequest(*manifest, std::vector<int32_t>(tokens, 1), maxNew, "prompt"));
  };
  EXPECT_EQ(message(0, 1), "prompt: the prompt has no tokens; give at least one");
  EXPECT_EQ(message(1001, 1), "prompt: the prompt has 1001 tokens, max_context is 1000; shorten it or compile with "
                              "--max-context 1001");
  EXPECT_EQ(message(990, 12), "prompt: 990 prompt tokens and 12 new ones exceed max_context 1000; use -n 11 at most or "
                              "compile with a larger --max-context");
}

/// What a step of one request says.
static std::string stepping(const FakeBundle &fake) {
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  if (!bundle)
    return bundle.error().text();
  CpuOptions options;
  options.threads = 2;
  Expected<CpuEngine> cpu = CpuEngine::create(*bundle, options, {});
  if (!cpu)
    return cpu.error().text();
  Scheduler scheduler(*cpu->engine, {});
  Request request;
  request.prompt = {1, 2, 3};
  request.maxNew = 2;
  EXPECT_TRUE(scheduler.add(std::move(request)));
  return said(scheduler.drain());
}

TEST(StepMessages, OfLogitsThatAreNoNumbers) {
  EXPECT_EQ(stepping(FakeBundle("fake_nan")),
            "sequence 0: no token could be sampled after position 2: the logits are not numbers, or the program does "
            "not sample; check the checkpoint with k2c verify");
}

TEST(StepMessages, OfAStepFunctionThatFails) {
  EXPECT_EQ(stepping(FakeBundle("fake_failing")), "program.so: the step failed with 5 on worker 0");
}
