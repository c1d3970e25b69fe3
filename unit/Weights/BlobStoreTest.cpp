//===- BlobStoreTest.cpp - Folders of blobs that fail -------------------------===//
//
// Names that something else has, folders that go away, descriptors that are used up: each is said with its place.
//
//===----------------------------------------------------------------------===//
#include "../LimitedChild.h"
#include "TestTensors.h"
#include "k2c/Weights/BundleFiles.h"
#include "k2c/Weights/Packer.h"
#include "k2c/Weights/WeightIndex.h"
#include <gtest/gtest.h>
#include <sys/syscall.h>

using namespace k2c;
using namespace k2c::test;
namespace fs = std::filesystem;

namespace {

class BlobStoreTest : public testing::Test {
protected:
  BlobStoreTest() { tensors.addRandom("w", DType::F32, {16, 16}); }

  Expected<PackReport> pack() {
    const WeightMap map{{{0, "w", 0, {{"w", {16, 16}, {}, false}}, RowMajor{DType::F32, 256}}}};
    return packWeights(map, tensors, bundle, options);
  }
  /// The error of packing, without the folder of the test; "" if it did.
  std::string refusal() {
    Expected<PackReport> report = pack();
    return report ? "" : relative(report.error().text());
  }
  std::string relative(std::string text) const {
    for (size_t at; (at = text.find(folder.path + "/")) != text.npos;)
      text.erase(at, folder.path.size() + 1);
    return text;
  }
  /// Packs, calls `change` with the blob's path and packs again.
  std::string refusalAfter(const std::function<void(const fs::path &blob)> &change) {
    EXPECT_EQ(refusal(), "");
    change(weights / readWeightIndex(bundle)->slots[0].ranges[0]->file);
    return refusal();
  }
  /// Packs into a shared folder; calls `change` when all is written, but not yet in the bundle.
  std::string refusalAtTheEnd(const std::function<void()> &change) {
    options.sharedFolder = shared;
    options.progress = [&](int64_t done, int64_t total) {
      if (done == total)
        change();
      return true;
    };
    return refusal();
  }

  TemporaryFolder folder;
  const std::string bundle = folder.path + "/out", shared = folder.path + "/shared";
  const fs::path weights = fs::path(bundle) / "weights";
  MemoryTensors tensors;
  PackOptions options{"", 1, nullptr};
};

/// A name that no file can replace.
void makeFolder(const fs::path &path) {
  fs::remove(path);
  fs::create_directories(path / "inside");
}

} // namespace

TEST_F(BlobStoreTest, AFolderBelowAFile) {
  std::ofstream(folder.path + "/file") << "";
  options.sharedFolder = folder.path + "/file/shared";
  EXPECT_EQ(refusal(), "file/shared: cannot create the folder: Not a directory");
}

TEST_F(BlobStoreTest, AFolderThatCannotBeListed) {
  EXPECT_EQ(saidInChild([&] {
              limit(RLIMIT_NOFILE, 0);
              return refusal();
            }),
            "out/weights: cannot list the folder: Too many open files");
}

TEST_F(BlobStoreTest, ABlobsNameIsTaken) {
  std::string name;
  const std::string said = refusalAfter([&](const fs::path &blob) {
    name = blob.filename().string();
    makeFolder(blob);
  });
  EXPECT_EQ(said, "out/weights/" + name + ": cannot rename the finished blob: Is a directory");
}

TEST_F(BlobStoreTest, TheNameOfTheListOfFinishedBlobsIsTaken) {
  makeFolder(weights / "finished.txt");
  EXPECT_EQ(refusal(), "out/weights/finished.txt: cannot create: Is a directory");
}

TEST_F(BlobStoreTest, TheNameOfTheIndexIsTaken) {
  EXPECT_EQ(refusalAfter([&](const fs::path &) { makeFolder(weights / "index.json"); }),
            "out/weights/index.json: cannot replace: Is a directory");
}

TEST_F(BlobStoreTest, AnIndexThatDoesNotReachTheDisk) {
  EXPECT_EQ(refusal(), "");
  const std::string said = saidInChild([&] { return refuse({SYS_fdatasync}, EIO) ? refusal() : "no filters"; });
  if (said == "no filters")
    GTEST_SKIP() << "this system has no seccomp filters";
  EXPECT_EQ(said, "out/weights/index.json.tmp: cannot flush to disk: Input/output error");
}

// A bundle may come from elsewhere, and its links lead anywhere.
TEST_F(BlobStoreTest, ALinkInTheWayOfTheIndexIsNotFollowed) {
  fs::create_directories(weights);
  fs::create_symlink(folder.path + "/victim", weights / "index.json.tmp");
  EXPECT_EQ(refusal(), "");
  EXPECT_FALSE(fs::exists(folder.path + "/victim"));
}

TEST_F(BlobStoreTest, ASharedFolderThatGoesAway) {
  EXPECT_EQ(refusalAtTheEnd([&] { fs::rename(shared, shared + ".moved"); }),
            "shared: cannot flush the folder to disk: No such file or directory");
}

TEST_F(BlobStoreTest, ASharedBlobThatGoesAway) {
  const std::string said = refusalAtTheEnd([&] {
    for (const fs::directory_entry &entry : fs::directory_iterator(shared))
      fs::remove(entry.path());
  });
  EXPECT_EQ(said.rfind("out/weights/", 0), 0u);
  EXPECT_NE(said.find(".bin: cannot copy from the shared folder: No such file or directory"), std::string::npos)
      << said;
}

// Of a process's own memory, nothing is mapped at address 0.
TEST_F(BlobStoreTest, AFileThatFailsToBeRead) {
  ASSERT_EQ(refusal(), "");
  fs::create_symlink("/proc/self/mem", bundle + "/notes");
  Status status = writeBundleFiles(bundle);
  ASSERT_FALSE(status);
  EXPECT_EQ(relative(status.error().text()), "out/notes: cannot read at byte 0: Input/output error");
}

TEST_F(BlobStoreTest, AStrayBlobThatCannotBeRemoved) {
  ASSERT_EQ(refusal(), "");
  ASSERT_TRUE(writeWeightMap(WeightMap{}, bundle));
  const std::string stray = std::string(32, '0') + ".bin";
  makeFolder(weights / stray);
  Status status = removeStrayBlobs(bundle);
  ASSERT_FALSE(status);
  EXPECT_EQ(relative(status.error().text()), "out/weights/" + stray + ": cannot remove: Directory not empty");
}

TEST_F(BlobStoreTest, MemoryThatTheSystemRefuses) {
  if (!canLimitMemory)
    GTEST_SKIP() << "a sanitizer takes memory itself";
  tensors.addRandom("large", DType::F32, {1024, 4096});
  const WeightMap map{{{0, "large", 0, {{"large", {1024, 4096}, {}, false}}, RowMajor{DType::F32, 1 << 22}}}};
  EXPECT_EQ(saidInChild([&] {
              limitMoreMemory(1 << 20);
              Expected<PackReport> report = packWeights(map, tensors, bundle, options);
              return report ? "packed" : report.error().text();
            }),
            "weights 'large': not enough memory to pack it; use fewer threads or a larger limit");
}
