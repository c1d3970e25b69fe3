//===- HostileTest.cpp - damaged files never do harm ----------------------===//
//
// Thousands of small random damages to config.json and to a safetensors header.
// Nothing is asked of the answers but that they are answers; with sanitizers
// (K2C_INSTRUMENT=address) this is the check that reading hostile bytes is safe.
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"
#include "k2c/Model/CheckWeights.h"

#include <random>

using namespace k2c;
using namespace k2c::test;

namespace {

/// Overwrites, deletes or repeats a few bytes in [begin, end).
std::string damage(std::string bytes, size_t begin, size_t end, std::mt19937 &random) {
  static const std::string likely = "{}[]\",:0123456789.-e/n\\ \x80";
  for (unsigned count = 1 + random() % 3; count > 0 && end > begin; --count) {
    size_t at = begin + random() % (end - begin);
    switch (random() % 3) {
    case 0:
      bytes[at] = likely[random() % likely.size()];
      break;
    case 1:
      bytes.erase(at, 1);
      --end;
      break;
    default:
      bytes.insert(at, bytes.substr(at, 1 + random() % 8));
    }
  }
  return bytes;
}

TEST(Hostile, DamagedConfigs) {
  std::mt19937 random(1);
  TempFolder folder;
  int accepted = 0;
  for (const char *family : {"llama", "kimi_k2"}) {
    std::string text = readFile(oracle(family) + "/config.json");
    for (int i = 0; i < 300; ++i) {
      folder.write("config.json", damage(text, 0, text.size(), random));
      Expected<ModelSpec> spec = loadModelSpec(folder.path);
      if (spec)
        ++accepted;
      else
        EXPECT_FALSE(spec.error().message.empty());
    }
  }
  // Numbers may change into other numbers; most damage is noticed.
  EXPECT_LT(accepted, 300);
}

TEST(Hostile, DamagedHeaders) {
  std::mt19937 random(2);
  TempFolder folder;
  std::string bytes = readFile(oracle("kimi_k2") + "/model.safetensors");
  Expected<ModelSpec> spec = loadModelSpec(oracle("kimi_k2"));
  ASSERT_TRUE(spec);
  size_t headerEnd = bytes.find("}}", 8) + 2;
  for (int i = 0; i < 300; ++i) {
    folder.write("model.safetensors", damage(bytes, 0, headerEnd, random));
    Expected<Checkpoint> checkpoint = Checkpoint::open(folder.path);
    if (!checkpoint)
      continue;
    ModelSpec copy = *spec;
    (void)bool(checkWeights(copy, *checkpoint));
    for (const TensorInfo &tensor : checkpoint->tensors()) {
      std::string data(tensor.bytes(), '\0');
      EXPECT_TRUE(checkpoint->read(tensor, 0, data.data(), data.size()));
    }
  }
}

TEST(Hostile, TruncatedCheckpoints) {
  TempFolder folder;
  std::string bytes = readFile(oracle("llama") + "/model.safetensors");
  for (size_t size = 0; size < bytes.size(); size += 997) {
    folder.write("model.safetensors", bytes.substr(0, size));
    EXPECT_FALSE(Checkpoint::open(folder.path)) << size;
  }
}

TEST(Hostile, AFileThatShrinksAfterOpening) {
  TempFolder folder;
  std::string path = folder.write("model.safetensors", readFile(oracle("llama") + "/model.safetensors"));
  Expected<Checkpoint> checkpoint = Checkpoint::open(folder.path);
  ASSERT_TRUE(checkpoint);
  std::filesystem::resize_file(path, 4096);
  const TensorInfo *norm = checkpoint->find("model.norm.weight");
  ASSERT_TRUE(norm);
  char data[128];
  Status status = checkpoint->read(*norm, 0, data, sizeof data);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "tensor 'model.norm.weight': the file ended after 0 of 128 bytes");
}

} // namespace
