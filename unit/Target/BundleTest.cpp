//===- BundleTest.cpp - DIR.partial becomes DIR: locks, leftovers, refusals ---------------------===//
#include "../LimitedChild.h"
#include "k2c/Target/Package.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

using namespace k2c;
namespace fs = std::filesystem;

namespace {

void writeText(const fs::path &path, const std::string &text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::string readText(const fs::path &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string noMounts = "this process may not mount";

/// What `body` says while a file system of its own is mounted at `folder`.
std::string saidBeside(const fs::path &folder, const std::function<std::string()> &body) {
  return test::saidInChild([&] {
    const bool isMounted =
        ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && ::mount("none", folder.c_str(), "tmpfs", 0, nullptr) == 0;
    return isMounted ? body() : noMounts;
  });
}

class BundleTest : public testing::Test {
protected:
  BundleTest() {
    std::string name = (fs::temp_directory_path() / "k2c-bundle-XXXXXX").string();
    root = ::mkdtemp(name.data());
    out = root / "out";
    partial = root / "out.partial";
  }
  ~BundleTest() override { fs::remove_all(root); }

  Expected<BundleFolder> begin(const fs::path &output, bool force) const {
    return BundleFolder::begin(output.string(), /*source=*/"elsewhere/model", force);
  }
  /// The message of a refusal, "" when the folder was entered.
  std::string refusal(const fs::path &output, bool force = false) {
    Expected<BundleFolder> bundle = begin(output, force);
    return bundle ? "" : bundle.error().text();
  }
  /// The message when a bundle with a link to `target` cannot be finished, "" when it can.
  std::string refusalWithLink(const char *name, const char *target) {
    Expected<BundleFolder> bundle = begin(out, false);
    fs::create_symlink(target, partial / name);
    const Status status = bundle ? bundle->finish() : Status(bundle.takeError());
    return status ? "" : status.error().text();
  }
  /// Assembles a bundle whose program says `text`.
  void assemble(const std::string &text, bool force = false, bool canExchange = true) {
    Expected<BundleFolder> bundle = begin(out, force);
    ASSERT_TRUE(bundle) << bundle.error().text();
    ASSERT_TRUE(bundle->write("program.so", text));
    ASSERT_TRUE(bundle->write("manifest.json", "{}"));
    Status status = bundle->finish(canExchange);
    ASSERT_TRUE(status) << status.error().text();
  }
  /// Names in the temporary folder.
  std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const auto &entry : fs::directory_iterator(root))
      found.push_back(entry.path().filename());
    return found;
  }

  fs::path root, out, partial;
};

} // namespace

TEST_F(BundleTest, AppearsWithoutMarkerAndLeavesNothingBeside) {
  assemble("first");
  EXPECT_EQ(readText(out / "program.so"), "first");
  EXPECT_FALSE(fs::exists(out / ".k2c-partial"));
  EXPECT_EQ(names(), std::vector<std::string>{"out"});
}

TEST_F(BundleTest, ReplacesABundle) {
  assemble("first");
  writeText(out / "stale", "");
  assemble("second");
  EXPECT_EQ(readText(out / "program.so"), "second");
  EXPECT_FALSE(fs::exists(out / "stale"));
  EXPECT_EQ(names(), std::vector<std::string>{"out"});
}

TEST_F(BundleTest, ReplacesABundleWhereFoldersCannotBeExchanged) {
  assemble("first");
  assemble("second", false, /*canExchange=*/false);
  EXPECT_EQ(readText(out / "program.so"), "second");
  EXPECT_EQ(names(), std::vector<std::string>{"out"});
}

TEST_F(BundleTest, ALinkIsReplacedNotFollowed) {
  assemble("first");
  fs::rename(out, root / "elsewhere");
  fs::create_directory_symlink(root / "elsewhere", out);
  assemble("second");
  EXPECT_EQ(readText(out / "program.so"), "second");
  EXPECT_EQ(readText(root / "elsewhere/program.so"), "first");
}

TEST_F(BundleTest, ALinkToAnEmptyFolderIsReplacedNotFollowed) {
  fs::create_directory(root / "elsewhere");
  fs::create_directory_symlink(root / "elsewhere", out);
  assemble("first");
  EXPECT_EQ(readText(out / "program.so"), "first");
  EXPECT_TRUE(fs::is_empty(root / "elsewhere"));
}

TEST_F(BundleTest, TheSourceIsNotReplaced) {
  writeText(out / "model" / "config.json", "{}");
  fs::create_directory_symlink(out / "model", root / "link");
  writeText(root / "blob", "of a cache");
  fs::create_symlink(root / "blob", out / "model.onnx");
  for (const fs::path &source :
       {out, out / "model", out / "model" / "config.json", root / "link", out / "model.onnx"}) {
    Expected<BundleFolder> bundle = BundleFolder::begin(out.string() + "/", source.string(), /*force=*/true);
    ASSERT_FALSE(bundle) << source;
    EXPECT_EQ(bundle.error().text(),
              out.string() + "/: is or contains the source, which it would replace; name another folder");
  }
  for (const fs::path &output : {out / "model" / "new", root / "new", root / "link" / "new"})
    EXPECT_TRUE(BundleFolder::begin(output.string(), (out / "model").string(), /*force=*/false)) << output;
}

TEST_F(BundleTest, OneCompileAtATime) {
  Expected<BundleFolder> first = begin(out, false);
  ASSERT_TRUE(first);
  EXPECT_EQ(refusal(out),
            out.string() + ": another k2c is writing to it; wait for it, or choose another output folder");
}

TEST_F(BundleTest, SomeoneElsesPartialFolderIsLeftAlone) {
  writeText(partial / "thesis.txt", "mine");
  EXPECT_EQ(refusal(out, true), partial.string() + ": is in the way: k2c assembles its output there and did not make "
                                                   "it; move it away, or choose another output folder");
  EXPECT_EQ(readText(partial / "thesis.txt"), "mine");
}

// Each file of the kernel's own is read-only and on no disk.
TEST_F(BundleTest, AFileThatDoesNotReachTheDiskIsNamed) {
  EXPECT_EQ(refusalWithLink("notes", "/proc/version"),
            (partial / "notes").string() +
                ": cannot be flushed to disk: Invalid argument; check space and permissions");
}

TEST_F(BundleTest, AFileOfAnUnknownKindIsNotPassedOver) {
  EXPECT_EQ(refusalWithLink("itself", "itself"),
            partial.string() + ": cannot be flushed to disk: Too many levels of symbolic links; check space and "
                               "permissions");
}

// A mount point is busy.
TEST_F(BundleTest, ALeftoverThatCannotBeRemovedIsNamed) {
  writeText(partial / ".k2c-partial", "");
  fs::create_directory(partial / "busy");
  const std::string said = saidBeside(partial / "busy", [&] { return refusal(out); });
  if (said == noMounts)
    GTEST_SKIP() << said;
  EXPECT_EQ(said, (partial / "busy").string() + ": cannot be removed: Device or resource busy; check permissions");
}

TEST_F(BundleTest, AReplacedFolderThatCannotBeRemovedIsNamed) {
  assemble("first");
  fs::create_directory(out / "busy");
  const std::string said = saidBeside(out / "busy", [&] {
    Expected<BundleFolder> bundle = begin(out, false);
    if (!bundle)
      return bundle.error().text();
    Status status = bundle->finish(/*canExchange=*/false);
    return status ? "replaced" : status.error().text();
  });
  if (said == noMounts)
    GTEST_SKIP() << said;
  EXPECT_EQ(said.rfind(out.string() + ".replaced-", 0), 0u) << said;
  EXPECT_NE(said.find(": was replaced and cannot be removed: Device or resource busy; remove it"), std::string::npos)
      << said;
}

TEST_F(BundleTest, AnInterruptedCompileLeavesBlobsToTheNextAndNothingElse) {
  {
    Expected<BundleFolder> first = begin(out, false);
    ASSERT_TRUE(first);
    for (const char *name : {"tokenizer.json", "weights/a.bin", "weights/finished.txt", "weights/index.json"})
      ASSERT_TRUE(first->write(name, "stale"));
  }
  Expected<BundleFolder> second = begin(out, false);
  ASSERT_TRUE(second);
  EXPECT_FALSE(fs::exists(partial / "tokenizer.json"));
  EXPECT_FALSE(fs::exists(partial / "weights/index.json"));
  EXPECT_TRUE(fs::exists(partial / "weights/a.bin"));
  EXPECT_TRUE(fs::exists(partial / "weights/finished.txt"));
}

TEST_F(BundleTest, AFailedCompileLeavesNothing) {
  Expected<BundleFolder> bundle = begin(out, false);
  ASSERT_TRUE(bundle);
  ASSERT_TRUE(bundle->write("program.so", "half"));
  EXPECT_EQ(bundle->abandon({"here", "it failed", ""}).text(), "here: it failed");
  EXPECT_TRUE(names().empty());
}

TEST_F(BundleTest, AFailedCompileSaysThatItKeepsWeights) {
  Expected<BundleFolder> bundle = begin(out, false);
  ASSERT_TRUE(bundle);
  ASSERT_TRUE(bundle->write("weights/a.bin", "blob"));
  EXPECT_EQ(bundle->abandon({"here", "it failed", "do this"}).text(),
            "here: it failed; do this; " + partial.string() + " keeps the finished weights for the next compile into " +
                out.string());
  EXPECT_TRUE(fs::exists(partial / "weights/a.bin"));
}

TEST_F(BundleTest, AnotherFolderIsReplacedWithForceOnly) {
  writeText(out / "thesis.txt", "mine");
  EXPECT_EQ(refusal(out),
            out.string() + ": exists and is not a k2c bundle; choose another folder, or replace it with --force");
  assemble("first", true);
  EXPECT_FALSE(fs::exists(out / "thesis.txt"));
}

TEST_F(BundleTest, MountPointsAreNotReplaced) {
  EXPECT_EQ(refusal("/", true), "/: is a mount point, which cannot be replaced; name a folder inside it");
  EXPECT_EQ(refusal("/proc/", true), "/proc/: is a mount point, which cannot be replaced; name a folder inside it");
}

TEST_F(BundleTest, TheHomeFolderIsNotReplaced) {
  const char *home = std::getenv("HOME");
  std::string before = home ? home : "";
  ::setenv("HOME", root.c_str(), 1);
  EXPECT_EQ(refusal(root, true), root.string() + ": is the home folder, which k2c does not replace; name a folder "
                                                 "inside it");
  home ? ::setenv("HOME", before.c_str(), 1) : ::unsetenv("HOME");
}

TEST_F(BundleTest, FoldersAroundTheWorkingFolderAreNotReplaced) {
  fs::path before = fs::current_path();
  fs::create_directories(root / "a/b");
  fs::current_path(root / "a/b");
  for (const char *output : {".", "..", "../../a"})
    EXPECT_EQ(refusal(output, true), std::string(output) + ": is or contains the working folder, which k2c does not "
                                                           "replace; name another folder, or call k2c from elsewhere");
  fs::current_path(before);
}

TEST_F(BundleTest, AFolderThatCannotBeMadeIsNamedWithTheRemedy) {
  EXPECT_EQ(refusal("/proc/x/out"),
            "/proc/x/out: cannot be created: No such file or directory; name a folder where you "
            "may write");
}
