// Workers and memory over NUMA nodes: rules as pure functions, machines laid out in folders, refusing systems.
#include "../LimitedChild.h"
#include "device/cpu/CpuDevice.h"
#include "device/cpu/PlacementReport.h"
#include "device/cpu/Region.h"
#include "engine/Scheduler.h"
#include "fake/FakeBundle.h"
#include "fake/Root.h"
#include "k2rt/WorkerBinding.h"
#include <fcntl.h>
#include <gtest/gtest.h>
#include <numeric>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace k2c;
using namespace k2c::runtime;

namespace {

constexpr char sysfs[] = "sys/devices/system/node/";

std::vector<int> upTo(int count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Nodes 0, 1, .. with so many processors each.
std::vector<Node> nodesOf(const std::vector<int> &counts) {
  std::vector<Node> nodes;
  int next = 0;
  for (int count : counts) {
    nodes.push_back({static_cast<int32_t>(nodes.size()), {}, static_cast<int32_t>(nodes.size())});
    for (int i = 0; i < count; ++i)
      nodes.back().processors.push_back(next++);
  }
  return nodes;
}

/// "0 0 1 1": the node of each worker.
std::vector<int32_t> nodeOfWorkers(const std::vector<int> &counts, int32_t workers) {
  std::vector<int32_t> nodes;
  for (const WorkerBinding &binding : bindingsOfWorkers(nodesOf(counts), workers))
    nodes.push_back(binding.node);
  return nodes;
}

using Ints = std::vector<int>;
using Nodes = std::vector<int32_t>;

} // namespace

TEST(NumberList, Ranges) {
  EXPECT_EQ(parseNumberList("0-3,8,10-11\n"), (Ints{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parseNumberList("7\n"), Ints{7});
  EXPECT_EQ(parseNumberList("4-5,0"), (Ints{0, 4, 5}));
  for (const char *nothing : {"", "\n", "none", "3-1", "0-99999999", "70000"})
    EXPECT_EQ(parseNumberList(nothing), Ints{}) << nothing;
}

TEST(Nodes, OneWhereTheSystemSaysNothing) {
  Root root({});
  const std::vector<Node> nodes = readNodes({2, 5}, root.folder);
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].processors, (Ints{2, 5}));
}

TEST(Nodes, HolesInTheNumbersAndOfflineProcessors) {
  Root root({{std::string(sysfs) + "online", "0,2-3\n"},
             {std::string(sysfs) + "has_memory", "0,2-3\n"},
             {std::string(sysfs) + "node0/cpulist", "0-1,8-9\n"}, // 9 is offline: no process may use it
             {std::string(sysfs) + "node2/cpulist", "2-3\n"},
             {std::string(sysfs) + "node3/cpulist", "4-5\n"}});
  const std::vector<Node> nodes = readNodes({0, 1, 2, 3, 4, 5, 8}, root.folder);
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].processors, (Ints{0, 1, 8}));
  EXPECT_EQ(nodes[1].number, 2);
  EXPECT_EQ(nodes[2].processors, (Ints{4, 5}));
  EXPECT_EQ(nodes[2].memory, 3);
}

TEST(Nodes, ACpusetLeavesSomeOut) {
  Root root({{std::string(sysfs) + "online", "0-1\n"},
             {std::string(sysfs) + "node0/cpulist", "0-3\n"},
             {std::string(sysfs) + "node1/cpulist", "4-7\n"}});
  const std::vector<Node> both = readNodes({3, 4, 6}, root.folder);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[1].processors, (Ints{4, 6}));
  const std::vector<Node> second = readNodes({5, 6}, root.folder);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].number, 1);
}

TEST(Nodes, WithoutMemoryTheNearestNodesMemory) {
  Root root({{std::string(sysfs) + "online", "0-1,4\n"},
             {std::string(sysfs) + "has_memory", "0,4\n"},
             {std::string(sysfs) + "node0/cpulist", "0\n"},
             {std::string(sysfs) + "node1/cpulist", "1\n"},
             {std::string(sysfs) + "node1/distance", "21 10 12\n"},
             {std::string(sysfs) + "node4/cpulist", "\n"}}); // memory without processors
  const std::vector<Node> nodes = readNodes({0, 1}, root.folder);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].memory, 0);
  EXPECT_EQ(nodes[1].memory, 4);
}

TEST(Nodes, AProcessorThatIsNowhereIsOnTheFirst) {
  Root root({{std::string(sysfs) + "online", "0-1\n"},
             {std::string(sysfs) + "node0/cpulist", "4\n"},
             {std::string(sysfs) + "node1/cpulist", "5\n"}});
  const std::vector<Node> nodes = readNodes({0, 4, 5}, root.folder);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].processors, (Ints{0, 4}));
}

TEST(WorkerBinding, WorkersAreNumberedNodeByNode) {
  EXPECT_EQ(nodeOfWorkers({4, 4}, 8), (Nodes{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(nodeOfWorkers({3, 5}, 8), (Nodes{0, 0, 0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(nodeOfWorkers({4, 4}, 3), (Nodes{0, 0, 1}));
  EXPECT_EQ(nodeOfWorkers({1, 1}, 5), (Nodes{0, 0, 0, 1, 1}));
  EXPECT_EQ(nodeOfWorkers({4, 4, 4}, 2), (Nodes{0, 1}));
  EXPECT_EQ(nodeOfWorkers({64, 64}, 1), (Nodes{0}));
}

TEST(WorkerBinding, AsManyAsProcessorsMeansOneEach) {
  const std::vector<WorkerBinding> bindings = bindingsOfWorkers(nodesOf({2, 3}), 5);
  for (int worker = 0; worker < 5; ++worker)
    EXPECT_EQ(bindings[worker].processors, Ints{worker});
  EXPECT_EQ(bindingsOfWorkers(nodesOf({2, 3}), 4)[2].processors, (Ints{2, 3, 4})); // its node's
  EXPECT_EQ(bindingsOfWorkers(nodesOf({3}), 2)[1].processors, Ints{});             // one node: anywhere
  EXPECT_EQ(bindingsOfWorkers(nodesOf({3}), 3)[2].processors, Ints{2});
}

TEST(WorkerBinding, EachChunkIsTouchedOnceAndNodesTakeTurns) {
  for (const auto &[counts, workers] : {std::pair<Ints, int>{{4}, 3}, {{4, 4}, 8}, {{3, 5}, 7}, {{4, 4, 4}, 2}}) {
    const std::vector<WorkerBinding> bindings = bindingsOfWorkers(nodesOf(counts), workers);
    for (int64_t chunk = 0; chunk < 100; ++chunk) {
      int owners = 0;
      for (const WorkerBinding &binding : bindings)
        if (binding.owns(chunk)) {
          ++owners;
          EXPECT_EQ(binding.nodeIndex, chunk % binding.nodes);
        }
      EXPECT_EQ(owners, 1) << chunk;
    }
  }
}

// The rule of the emitted kernels, item by item: number = index * experts + expert.
TEST(Shares, AreWhatLaunchesRead) {
  for (const k2rt_share &share :
       {k2rt_share{0, 224, 64}, {384, 128, 64}, {7, 3, 64}, {5, 1, 64}, {1, 1, 64}, {0, 1, 64}})
    for (int64_t workers : {1, 2, 3, 7, 64}) {
      const int64_t blocks = k2rt_share_blocks(&share), items = blocks * share.items;
      int64_t bytes = 0;
      for (int64_t worker = 0; worker < workers; ++worker) {
        for (int64_t item = k2rt_share_begin(items, worker, workers);
             item < k2rt_share_begin(items, worker + 1, workers); ++item) {
          const int64_t block = item % blocks, index = item / blocks;
          EXPECT_GE(index, k2rt_block_begin(&share, block, worker, workers));
          EXPECT_LT(index, k2rt_block_begin(&share, block, worker + 1, workers));
        }
        bytes += k2rt_share_bytes(&share, worker, worker + 1, workers);
      }
      EXPECT_EQ(bytes, items * share.item_bytes);
    }
}

TEST(Region, ChunksOfAllOwnersAreAllOfIt) {
  Expected<Region> region = Region::allocate(int64_t(9) << 20, "test");
  ASSERT_TRUE(region);
  std::vector<int64_t> seen;
  for (int64_t part = 0; part < 3; ++part)
    region->populate([&](int64_t chunk) {
      if (part == 0)
        seen.push_back(chunk);
      return chunk % 3 == part;
    });
  EXPECT_GE(seen.size(), 5u);
  std::vector<unsigned char> resident(region->size() / 4096);
  ASSERT_EQ(::mincore(region->data(), region->size(), resident.data()), 0);
  for (unsigned char page : resident)
    EXPECT_TRUE(page & 1);
}

TEST(PageCounts, CountsSamplesElsewhere) {
  alignas(4096) static std::byte memory[64 * 4096];
  // Every second page is on node 1, every eighth is not resident.
  PageQuery query = [](size_t count, void **pages, int *nodes) {
    for (size_t i = 0; i < count; ++i) {
      const auto page = (static_cast<std::byte *>(pages[i]) - memory) / 4096;
      nodes[i] = page % 8 == 7 ? -ENOENT : static_cast<int>(page % 2);
    }
    return 0;
  };
  const PageCounts all = countPages(memory, sizeof memory, 4096, 0, query);
  EXPECT_EQ(all.asked, 64);
  EXPECT_EQ(all.told, 56);
  EXPECT_EQ(all.elsewhere, 24);
  EXPECT_EQ(countPages(memory, sizeof memory, 8192, 1, query).elsewhere, 32);
  PageQuery refusing = [](size_t, void **, int *) { return EPERM; };
  EXPECT_EQ(countPages(memory, sizeof memory, 4096, 0, refusing).refusal, EPERM);
}

TEST(PlacementReport, NodesAndTheirWeights) {
  Manifest manifest;
  manifest.shares = {{2, {1, 10, 100}}, {1, {}}, {3, {4, 2, 10}}};
  Container container;
  container.nodes = nodesOf({1, 3});
  container.processors = upTo(4);
  const std::vector<NodeShare> shares = shareOverNodes(manifest, container, 4);
  EXPECT_EQ(shares[0].weights, 2 * 200 + 3 * 20);
  EXPECT_EQ(shares[1].weights, 2 * 800 + 3 * 60);
  EXPECT_EQ(placementText(manifest, container, 4),
            "workers    4 on 2 NUMA nodes with 4 processors, each on one of its own\n"
            "           node 0: worker 0, 1 processor, 460 B of weights of its own\n"
            "           node 1: workers 1-3, 3 processors, 1.74 KiB (1.78 KB) of weights of its own\n");
  container.nodes[1].memory = 4;
  EXPECT_EQ(placementText(manifest, container, 1),
            "workers    1 on 2 NUMA nodes with 4 processors\n"
            "           node 0: worker 0, 1 processor, 2.19 KiB (2.24 KB) of weights of its own\n"
            "           node 1: no workers\n");
}

TEST(PlacementReport, NotesNameBothNumbersAndTheRemedy) {
  EXPECT_EQ(misplacementNote({1000, 10, 0}, "b"), "");
  EXPECT_EQ(misplacementNote({0, 0, 0}, "b"), "");
  const std::string drop = "end the programs that use them, drop them with: for f in 'a b'/weights/*.bin; do dd "
                           "if=\"$f\" iflag=nocache count=0; done, and start again";
  EXPECT_EQ(misplacementNote({1000, 500, 0}, "a b"),
            "about 500 B of 1000 B of weights (50 %) lie in memory of another NUMA node than the workers that read "
            "them, because the page cache held them before, or under a memory policy (numactl); to place them, " +
                drop);
  EXPECT_EQ(misplacementNote({0, 0, EPERM}, "b"),
            "the system does not tell on which NUMA node memory lies (move_pages: Operation not permitted): weights "
            "were read node by node, but this was not checked");
  EXPECT_EQ(smallPagesNote(750, 1000, "b"), "");
  EXPECT_EQ(smallPagesNote(0, 1000, "b"), "") << "a file system without huge pages";
  EXPECT_EQ(smallPagesNote(749, 1000, "a b"),
            "only 749 B of 1000 B of weights (74 %) lie in huge pages, because something read them before in small "
            "ones, and a step of few sequences can take a quarter longer; to have them read again, " +
                drop);
  Manifest manifest;
  manifest.topology = "t";
  manifest.cores = 8;
  Container container;
  container.nodes = nodesOf({2});
  container.processors = upTo(2);
  EXPECT_EQ(topologyNote(manifest, container), "");
  manifest.numa = {4, 4};
  EXPECT_EQ(topologyNote(manifest, container),
            "compiled for 8 cores on 2 NUMA nodes (topology t), this process may use 2 processors on 1 node: workers "
            "and memory follow this machine, predicted seconds do not");
  container.nodes = nodesOf({4, 4});
  container.processors = upTo(8);
  EXPECT_EQ(topologyNote(manifest, container), "");
}

namespace {

/// A bundle whose weights belong to workers, and this machine as if it had two nodes.
struct TwoNodes : ::testing::Test {
  static constexpr int64_t items = 64, itemBytes = 128 * 1024;

  TwoNodes() {
    std::string blob(items * itemBytes, 'w');
    const int32_t weight = 12345;
    blob.replace(0, 4, reinterpret_cast<const char *>(&weight), 4);
    fake.writeFile("weights/blob0.bin", blob);
    fake.index["slots"][0]["bytes"] = blob.size();
    fake.manifest["memory"]["weights"] = blob.size();
    fake.manifest["shares"] = {{{"slots", 1}, {"items", items}, {"item_bytes", itemBytes}}};
    fake.write();
    container = readContainer();
    container.processors.resize(1);
    container.nodes = {{0, container.processors, 0}, {1, container.processors, 1}};
  }

  /// The tokens that `threads` workers generate; `pageCounts` of the start.
  std::vector<int32_t> generate(int32_t threads, WeightPageCounts &pageCounts) {
    Expected<Bundle> bundle = Bundle::open(fake.folder);
    EXPECT_TRUE(bundle) << bundle.error().text();
    CpuOptions options;
    options.threads = threads;
    options.container = container;
    Expected<CpuEngine> cpu = CpuEngine::create(*bundle, options, {});
    EXPECT_TRUE(cpu) << cpu.error().text();
    pageCounts = cpu->device->weightPageCounts();
    std::vector<int32_t> out;
    StepEvents events;
    events.token = [&](const Sequence &, int32_t id, bool) { return out.push_back(id), true; };
    Scheduler scheduler(*cpu->engine, std::move(events));
    Request request;
    request.prompt = {1, 2, 3};
    request.maxNew = 20;
    request.ignoreEos = true;
    EXPECT_TRUE(scheduler.add(std::move(request)));
    EXPECT_TRUE(scheduler.drain());
    return out;
  }

  FakeBundle fake;
  Container container;
};

} // namespace

// On a machine with one node half of the weights lie "elsewhere"; with more workers than processors, too.
TEST_F(TwoNodes, TheSameTokensAndAnHonestCount) {
  for (int32_t threads : {1, 2, 5}) {
    SCOPED_TRACE(threads);
    WeightPageCounts pageCounts;
    EXPECT_EQ(generate(threads, pageCounts), fakeContinuation({1, 2, 3}, 20, K2RT_FORM_ABSORBED));
    if (pageCounts.refusal != 0)
      continue; // a system without move_pages
    EXPECT_EQ(pageCounts.bytes, items * itemBytes);
    if (readContainer().nodes.size() > 1)
      continue; // which of its nodes the pages are on is the system's business
    EXPECT_EQ(pageCounts.elsewhere, (threads == 1 ? 0 : threads == 2 ? items / 2 : items - items * 3 / 5) * itemBytes);
  }
}

// The pages that this process has mapped. A fault maps the whole large folio that it finds in the page cache, which has
// 2 MiB at most and begins on a multiple of its size: so far from the border nothing of the other's may be there.
TEST_F(TwoNodes, EachNodeReadsTheWeightsOfItsWorkers) {
  const size_t page = ::sysconf(_SC_PAGESIZE), half = items * itemBytes / page / 2, folio = (2 << 20) / page;
  for (int32_t worker : {0, 1}) {
    SCOPED_TRACE(worker);
    Expected<Bundle> bundle = Bundle::open(fake.folder);
    ASSERT_TRUE(bundle) << bundle.error().text();
    populateWeights(bundle->weights, bindingsOfWorkers(container.nodes, 2)[worker], worker, 2, nullptr);
    const MappedFile &file = bundle->weights.mappedFiles().front();
    ASSERT_EQ(file.size(), items * itemBytes);
    std::vector<uint64_t> entries(2 * half);
    const size_t bytes = entries.size() * sizeof entries[0];
    const int pagemap = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const ssize_t got =
        ::pread(pagemap, entries.data(), bytes, reinterpret_cast<uintptr_t>(file.data()) / page * sizeof entries[0]);
    ::close(pagemap);
    if (got != ssize_t(bytes))
      GTEST_SKIP() << "this system has no pagemap";
    auto mapped = [&](size_t begin, size_t end) {
      return std::count_if(&entries[begin], entries.data() + end, [](uint64_t entry) { return entry >> 63 != 0; });
    };
    EXPECT_EQ(worker == 0 ? mapped(0, half) : mapped(half, 2 * half), half) << "its own";
    EXPECT_EQ(worker == 0 ? mapped(half + folio, 2 * half) : mapped(0, half - folio), 0) << "the other's";
  }
}

TEST_F(TwoNodes, ARefusingSystemRunsAllTheSame) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!k2c::test::refuse({SYS_move_pages, SYS_mbind, SYS_get_mempolicy, SYS_sched_setaffinity}, EPERM))
      ::_exit(77);
    WeightPageCounts pageCounts;
    const bool same = generate(2, pageCounts) == fakeContinuation({1, 2, 3}, 20, K2RT_FORM_ABSORBED);
    ::_exit(same && pageCounts.refusal == EPERM ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    GTEST_SKIP() << "this system has no seccomp filters";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(TwoNodes, SharesThatDoNotFitAreRefused) {
  fake.manifest["memory"]["weights"] = int64_t(1) << 30;
  fake.manifest["shares"][0]["items"] = items + 1;
  fake.write();
  Expected<Bundle> large = Bundle::open(fake.folder);
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().text().find("slot 0 has 8388608 bytes, the manifest's shares count 65 items of 131072"),
            std::string::npos)
      << large.error().text();
  fake.manifest["shares"][0]["items"] = items;
  fake.manifest["shares"][0]["slots"] = 2;
  fake.write();
  Expected<Bundle> many = Bundle::open(fake.folder);
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().text().find("has 1 slots, the manifest's shares name 2"), std::string::npos);
  fake.manifest["memory"]["weights"] = items * itemBytes;
  fake.write();
  Expected<Bundle> more = Bundle::open(fake.folder);
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().text().find("shares: count more bytes than memory.weights, 8388608"), std::string::npos)
      << more.error().text();
}
