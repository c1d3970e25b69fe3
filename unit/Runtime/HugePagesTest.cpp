// How much of the weights lies in huge pages: what the system says of a page, and the estimate made of many.
#include "device/cpu/HugePages.h"
#include "base/SmallFile.h"
#include "device/cpu/FirstTouch.h"
#include "device/cpu/Region.h"
#include "fake/Root.h"
#include <cerrno>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/mman.h>

using namespace k2c;
using namespace k2c::runtime;

namespace {

std::string indexOf(int64_t bytes) {
  std::string chunks = "\"0000000000000000\"";
  for (int64_t at = hugePageBytes; at < bytes; at += hugePageBytes)
    chunks += ",\"0000000000000000\"";
  return R"({"format":1,"slots":[{"slot":0,"file":"w.bin","bytes":)" + std::to_string(bytes) +
         R"(,"chunk_bytes":2097152,"chunks":[)" + chunks + "]}]}";
}

const std::vector<std::pair<std::string, std::string>> emptyFile = {{"w.bin", ""}};

/// Weights of one file that nothing ever reads: of 10,000 huge pages and a bit, or of `bytes`.
Weights sparseWeights(const Root &root, int64_t bytes) {
  std::filesystem::resize_file(root.folder + "w.bin", bytes);
  Expected<Weights> weights = Weights::map(root.folder, "index.json", indexOf(bytes), 1);
  EXPECT_TRUE(weights) << weights.error().text();
  return std::move(*weights);
}

const std::byte *base = nullptr;
int64_t asked = 0;

/// Every fourth huge page after `base` is one.
int everyFourth(size_t count, const void *const *pages, bool *huge) {
  for (size_t i = 0; i < count; ++i)
    huge[i] = (static_cast<const std::byte *>(pages[i]) - base) / hugePageBytes % 4 == 0;
  asked += static_cast<int64_t>(count);
  return 0;
}

int tooOld(size_t, const void *const *, bool *) { return ENOTTY; }

/// What a mapping of two huge pages, touched under this advice, has at its first aligned one.
bool isHuge(int advice, int &refusal) {
  const size_t bytes = 2 * hugePageBytes;
  void *const mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto first = (reinterpret_cast<uintptr_t>(mapping) + hugePageBytes - 1) / hugePageBytes * hugePageBytes;
  ::madvise(mapping, bytes, advice);
  *reinterpret_cast<volatile char *>(first) = 1;
  const void *const page = reinterpret_cast<const void *>(first + 12345);
  bool huge = false;
  refusal = queryHugePages(1, &page, &huge);
  ::munmap(mapping, bytes);
  return huge;
}

} // namespace

TEST(HugePages, AskedOfTheSystem) {
  int refusal = 0;
  EXPECT_FALSE(isHuge(MADV_NOHUGEPAGE, refusal));
  if (refusal != 0)
    GTEST_SKIP() << "this system does not tell of one page";
  if (readSmallFile("/sys/kernel/mm/transparent_hugepage/enabled").find("[never]") != std::string::npos)
    GTEST_SKIP() << "this system makes no huge pages";
  EXPECT_TRUE(isHuge(MADV_HUGEPAGE, refusal));
}

TEST(HugePages, SmallWeightsAreCountedOneByOne) {
  const int64_t bytes = 6 * hugePageBytes + 5000; // two of six, the rest cannot lie in one
  Root root(emptyFile);
  const Weights weights = sparseWeights(root, bytes);
  base = static_cast<const std::byte *>(weights.slots()[0]);
  asked = 0;
  EXPECT_EQ(hugeWeightBytes(weights, 0, everyFourth), 2 * hugePageBytes);
  EXPECT_EQ(asked, 6);
}

TEST(HugePages, LargeWeightsAreSampled) {
  const int64_t pages = 10000, bytes = pages * hugePageBytes;
  Root root(emptyFile);
  const Weights weights = sparseWeights(root, bytes);
  base = static_cast<const std::byte *>(weights.slots()[0]);
  asked = 0;
  const std::optional<int64_t> huge = hugeWeightBytes(weights, 0, everyFourth);
  ASSERT_TRUE(huge);
  EXPECT_NEAR(static_cast<double>(*huge), bytes / 4.0, bytes / 100.0);
  EXPECT_LE(asked, 4096);
}

TEST(HugePages, AnOlderSystemIsAskedForTheSumOfAFew) {
  const int64_t bytes = 6 * hugePageBytes;
  Root root(emptyFile);
  const Weights weights = sparseWeights(root, bytes);
  EXPECT_EQ(hugeWeightBytes(weights, bytes - 1, tooOld), std::nullopt);
  EXPECT_TRUE(hugeWeightBytes(weights, bytes, tooOld));
}
