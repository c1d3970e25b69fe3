//===- MemoryTest.cpp - Packing needs little memory, whatever the tensors ---===//
#include "TestTensors.h"
#include "k2c/Weights/Packer.h"
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace k2c;
using namespace k2c::test;

namespace {

/// One file of bf16 zeros (a hole: no disk) under three names: a large matrix, stacked experts, their transpose.
class HoleTensors : public TensorSource {
public:
  static constexpr int64_t elements = 50 << 20;

  explicit HoleTensors(const std::string &path) : fd(::open(path.c_str(), O_RDWR | O_CREAT, 0644)) {
    EXPECT_EQ(::ftruncate(fd, elements * 2), 0);
  }
  ~HoleTensors() override { ::close(fd); }
  Expected<StoredTensor> find(const std::string &) const override { return StoredTensor{DType::BF16, {elements}}; }
  Status read(const std::string &name, int64_t offset, char *out, int64_t count) const override {
    if (::pread(fd, out, count, offset) != count)
      return Error{name, "short read", ""};
    out[0] ^= name[0]; // different content, different blobs
    return Status::success();
  }
  TensorPlace place(const std::string &) const override { return {}; }
  std::vector<PieceFile> files() const override { return {{"hole", elements * 2}}; }

private:
  int fd;
};

/// Peak resident bytes since the last reset.
int64_t peakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0)
      return std::stoll(line.substr(6)) * 1024;
  return 0;
}

} // namespace

TEST(PackerMemory, ThreeTensorsOf100MiBInLessThan64MiB) {
  TemporaryFolder folder;
  HoleTensors tensors(folder.path + "/hole");
  auto panels = [](int64_t count, int64_t n, int64_t k) { return PanelLayout{{DType::BF16, count, n, k}}; };
  std::vector<int64_t> stored = {HoleTensors::elements};
  WeightMap map{
      {{0, "matrix", {}, {{"matrix", {5 << 10, 10 << 10}, {}, false, {}, stored}}, panels(1, 5 << 10, 10 << 10)},
       {1, "experts", {}, {{"experts", {100, 512, 1024}, {}, false, {}, stored}}, panels(100, 512, 1024)},
       {2, "absorb", {}, {{"absorb", {100, 512, 1024}, {}, true, {}, stored}}, panels(100, 1024, 512)}}};
  std::ofstream("/proc/self/clear_refs") << 5; // resets the peak
  int64_t before = peakBytes();
  Expected<PackReport> report = packWeights(map, tensors, folder.path, {"", 2, nullptr});
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->writtenBytes, int64_t(300) << 20);
  EXPECT_LT(peakBytes() - before, int64_t(64) << 20);
}
