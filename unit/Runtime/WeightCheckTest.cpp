// Damaged weights at the start of a run: every byte is in some worker's hash, whatever the nodes and threads are.
#include "device/cpu/WeightCheck.h"
#include "device/cpu/CpuDevice.h"
#include "fake/FakeBundle.h"
#include "run/FileFaults.h"
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

/// A bundle with a blob of three chunks, the last of one page; its items are pages.
struct Weighty : FakeBundle {
  static constexpr int64_t bytes = 2 * hugePageBytes + 4096;

  explicit Weighty(int64_t itemBytes = 4096, const char *program = "fake") : FakeBundle(program) {
    const int32_t weight = 12345;
    std::string blob(bytes, 'w');
    blob.replace(0, 4, reinterpret_cast<const char *>(&weight), 4);
    writeFile("weights/blob0.bin", blob);
    index["slots"][0]["bytes"] = bytes;
    manifest["memory"]["weights"] = bytes;
    manifest["shares"] = {{{"slots", 1}, {"items", bytes / itemBytes}, {"item_bytes", itemBytes}}};
    write();
  }
  /// The blob becomes two of fake_experts' four experts, the second in front, of 300 and 724 pages; the last page is
  /// nobody's.
  void cutIntoExperts() {
    const int64_t first = 724 * 4096, second = 300 * 4096;
    index["slots"][0] = {{"slot", 0}, {"name", "up"}, {"layer", 1}};
    index["slots"][0]["experts"] = {{{"file", "blob0.bin"}, {"offset", second}, {"bytes", first}},
                                    {{"file", "blob0.bin"}, {"offset", 0}, {"bytes", second}},
                                    nullptr,
                                    nullptr};
    manifest["memory"]["weights"] = 4 * second; // at least what shares count
    manifest["shares"] = {{{"slots", 1}, {"experts", 4}, {"items", 300}, {"item_bytes", 4096}}};
    write();
  }
  /// Changes byte `at` of the blob, which nothing else knows.
  void damage(int64_t at) const {
    std::fstream(path("weights/blob0.bin"), std::ios::in | std::ios::out | std::ios::binary).seekp(at).put('!');
  }
  /// Why an engine of `threads` workers on `nodes` nodes is refused; "" when it is not.
  std::string error(int32_t threads, int nodes, bool trust = false) const {
    Expected<Bundle> bundle = Bundle::open(folder);
    EXPECT_TRUE(bundle) << bundle.error().text();
    CpuOptions options;
    options.threads = threads;
    options.trust = trust;
    options.container = readContainer();
    options.container->processors.resize(1);
    options.container->nodes.clear();
    for (int node = 0; node < nodes; ++node)
      options.container->nodes.push_back({node, options.container->processors, node});
    Expected<CpuEngine> cpu = CpuEngine::create(*bundle, options, {});
    return cpu ? "" : cpu.error().text();
  }
};

} // namespace

TEST(WeightCheck, SoundWeightsPass) {
  const Weighty fake;
  for (int nodes : {1, 2})
    for (int32_t threads : {1, 2, 5})
      EXPECT_EQ(fake.error(threads, nodes), "") << threads << " threads on " << nodes << " nodes";
}

TEST(WeightCheck, AByteAnywhereIsNamedWithItsChunk) {
  for (int64_t at : {int64_t(4), hugePageBytes - 1, hugePageBytes, 2 * hugePageBytes, Weighty::bytes - 1})
    for (int nodes : {1, 2})
      for (int32_t threads : {1, 3}) {
        const Weighty fake(6000); // items that end before the last chunk begins leave it to nobody
        fake.damage(at);
        const int64_t begin = at / hugePageBytes * hugePageBytes;
        const std::string message = fake.error(threads, nodes);
        EXPECT_EQ(message.find(fake.path("weights/blob0.bin") + ": bytes " + std::to_string(begin) + " to " +
                               std::to_string(std::min(begin + hugePageBytes, Weighty::bytes)) + " hash to "),
                  0u)
            << at << ": " << message;
        EXPECT_NE(message.find(", the index says "), std::string::npos) << message;
        EXPECT_NE(message.find("; k2c pack with the checkpoint writes it again, or compile the bundle again"),
                  std::string::npos)
            << message;
      }
}

TEST(WeightCheck, AnExpertsBytesAreNamedInItsFile) {
  for (const auto &[at, named] : {std::pair<int64_t, std::string>{5, "bytes 0 to 1228800 hash to "},
                                  {300 * 4096, "bytes 1228800 to 3325952 hash to "},
                                  {1024 * 4096 - 1, "bytes 3325952 to 4194304 hash to "},
                                  {1024 * 4096, ""}})
    for (int nodes : {1, 2})
      for (int32_t threads : {1, 3}) {
        Weighty fake(4096, "fake_experts");
        fake.cutIntoExperts();
        fake.damage(at);
        const std::string message = fake.error(threads, nodes);
        EXPECT_EQ(message.substr(0, message.find("hash to ") + 8),
                  named.empty() ? "" : fake.path("weights/blob0.bin") + ": " + named)
            << message;
      }
}

TEST(WeightCheck, TheFirstOfSeveralIsNamed) {
  const Weighty fake;
  fake.damage(2 * hugePageBytes + 1);
  fake.damage(hugePageBytes + 1);
  EXPECT_NE(fake.error(1, 1).find("bytes 2097152 to 4194304 hash to"), std::string::npos);
}

TEST(WeightCheck, TrustLeavesThemUnread) {
  const Weighty fake;
  fake.damage(4);
  EXPECT_EQ(fake.error(2, 1, /*trust=*/true), "");
  EXPECT_EQ(fake.error(2, 2, /*trust=*/true), "");
}

TEST(WeightCheck, RunEndsWith1UnlessItIsToldToTrust) {
  const Weighty fake;
  fake.damage(8000);
  const std::vector<std::string> command = {"generate", "--prompt-ids", "5,6,7", "-n", "3", "--ignore-eos", "--json"};
  const Outcome refused = runBundle(fake, command);
  EXPECT_EQ(refused.exitCode, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(refused.err.find("run: error: " + fake.path("weights/blob0.bin") + ": bytes 0 to 2097152 hash to "), 0u)
      << refused.err;
  std::vector<std::string> trusting = command;
  trusting.push_back("--trust");
  EXPECT_EQ(runJson(fake, trusting)["ids"].get<std::vector<int32_t>>(), fakeContinuation({5, 6, 7}, 3, 1));
}

TEST(WeightCheck, InfoSaysWhetherTheyAreRead) {
  const FakeBundle fake;
  EXPECT_EQ(runJson(fake, {"info", "--json"})["trust"], false);
  EXPECT_EQ(runJson(fake, {"info", "--json", "--trust"})["trust"], true);
  EXPECT_NE(runBundle(fake, {"info"}).out.find("hashed at each start, weights too\n"), std::string::npos);
  EXPECT_NE(runBundle(fake, {"info", "--trust"})
                .out.find("hashed at each start but for the weights, which are trusted (--trust)\n"),
            std::string::npos);
}

/// Whether a process of this machine that may be looked at maps the file.
static bool isMapped(const std::string &path) {
  std::error_code none;
  for (const auto &entry : std::filesystem::directory_iterator("/proc", none)) {
    std::ifstream maps(entry.path() / "maps");
    for (std::string line; std::getline(maps, line);)
      if (line.find(path) != std::string::npos)
        return true;
  }
  return false;
}

// The program steps on while its weights lose their pages.
TEST(FileFaults, AFileThatBecomesShorterIsNamed) {
  const FakeBundle fake("fake_slow");
  std::atomic<bool> hasEnded{false}; // a run that is refused maps nothing
  std::thread cutter([&] {
    while (!isMapped(fake.path("weights/blob0.bin")) && !hasEnded)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(200)); // weights are compared with their hashes first
    std::error_code error;
    std::filesystem::resize_file(fake.path("weights/blob0.bin"), 0, error);
    EXPECT_FALSE(error) << error.message();
  });
  const Outcome outcome =
      runBundle(fake, {"generate", "--prompt-ids", "1,2,3", "-n", "900", "--ignore-eos", "--threads", "2"});
  hasEnded = true;
  cutter.join();
  EXPECT_EQ(outcome.exitCode, 3) << outcome.err;
  EXPECT_EQ(outcome.err, "run: error: " + fake.path("weights/blob0.bin") +
                             ": became shorter while it was in use, or its disk cannot be read; copy the file again, "
                             "or compile the bundle again\n");
}

// A page of memory that the machine lost: the signal that the kernel sends for it, at an address without a file.
TEST(FileFaults, APageWithoutAFileIsMemory) {
  EXPECT_EXIT(
      {
        nameFileFaults();
        siginfo_t fault{};
        fault.si_signo = SIGBUS;
        fault.si_code = BUS_MCEERR_AR;
        fault.si_addr = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::syscall(SYS_gettid), SIGBUS, &fault);
      },
      testing::ExitedWithCode(3), "run: error: memory: a page of it failed\n");
}
