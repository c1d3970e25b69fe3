// Slots that share a blob: one mapping, and one size.
#include "program/Weights.h"
#include "fake/FakeBundle.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

/// A bundle whose slots 0 and 1 both name blob0.bin, of 4096 bytes; the second says it has `bytes`.
struct SharedBlob {
  explicit SharedBlob(int64_t bytes) {
    fake.index["slots"].push_back({{"slot", 1}, {"name", "v"}, {"layer", nullptr}, {"file", "blob0.bin"}});
    fake.index["slots"][1]["bytes"] = bytes;
    fake.write();
    if (bytes == 0)
      fake.index["slots"][1]["chunks"] = json::array();
  }
  Expected<Weights> map() const { return Weights::map(fake.folder, "weights/index.json", fake.index.dump(), 2, {}); }

  FakeBundle fake;
};

} // namespace

TEST(Weights, EqualSlotsShareOneMapping) {
  Expected<Weights> weights = SharedBlob(4096).map();
  ASSERT_TRUE(weights) << weights.error().text();
  EXPECT_EQ(weights->bytes(), 4096);
  EXPECT_EQ(weights->slots()[0], weights->slots()[1]);
}

TEST(Weights, ASlotOfAnotherSizeThanItsBlobIsRefused) {
  for (const int64_t bytes : {4097, 8192, 4095, 0}) {
    const SharedBlob shared(bytes);
    Expected<Weights> weights = shared.map();
    ASSERT_FALSE(weights) << bytes;
    EXPECT_EQ(weights.error().text(), shared.fake.folder + "/weights/index.json: slot 1 says " + std::to_string(bytes) +
                                          " bytes, file blob0.bin has 4096; run k2c pack");
  }
}
