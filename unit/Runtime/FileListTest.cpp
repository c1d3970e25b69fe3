// files.json at the start of a run: every damaged file is named with both values, and so is a damaged list.
#include "program/FileList.h"
#include "base/Hash.h"
#include "fake/FakeBundle.h"
#include "program/Bundle.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// Damage that files.json does not know of: byte `at` of a file changes.
void flip(const std::string &path, int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(at).put(byte);
}

std::string openError(const FakeBundle &fake) {
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  return bundle ? "" : bundle.error().text();
}

/// The line that `run generate` prints.
std::string generateError(const FakeBundle &fake) {
  const Outcome outcome = runBundle(fake, {"generate", "--prompt-ids", "1", "-n", "1"});
  EXPECT_EQ(outcome.exitCode, 1) << outcome.out;
  return outcome.err.substr(0, outcome.err.find('\n'));
}

void expectError(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

/// The message of a bundle whose list is `text`.
std::string listError(const std::string &text) {
  FakeBundle fake;
  std::ofstream(fake.path("files.json")) << text;
  return openError(fake);
}

constexpr const char *remedy =
    "; compile the bundle again, copy the whole folder, or repeat the k2c pack that was interrupted";

} // namespace

TEST(Hash, IsXxh3AsPublished) {
  // The specification's value of no bytes, seed 0.
  EXPECT_EQ(hashText(hashOf(nullptr, 0)), "2d06800538d394c2");
  const std::string bytes(300000, 'k');
  RunningHash running;
  running.update(bytes.data(), 1);
  running.update(bytes.data() + 1, bytes.size() - 1);
  EXPECT_EQ(running.value(), hashOf(bytes.data(), bytes.size()));
}

TEST(Hash, TextAndBack) {
  EXPECT_EQ(parseHash("00000000000000ff"), 255u);
  EXPECT_EQ(hashText(255), "00000000000000ff");
  for (const char *text : {"", "ff", "00000000000000fF", "00000000000000fg", "00000000000000ff0"})
    EXPECT_FALSE(parseHash(text)) << text;
}

TEST(FileList, AChangedByteIsNamedWithBothHashes) {
  for (const char *file : {"program.so", "manifest.json", "weights/index.json", "weights/map.json"}) {
    SCOPED_TRACE(file);
    FakeBundle fake;
    fake.writeFile("weights/map.json", "{}");
    flip(fake.path(file), 1);
    expectError(openError(fake), fake.path(file) + ": hashes to ");
    expectError(openError(fake), ", files.json says ");
    expectError(openError(fake), remedy);
  }
}

TEST(FileList, SizesOfAllFilesAreCompared) {
  FakeBundle fake;
  fake.writeFile("config.json", "{} ");
  fs::resize_file(fake.path("config.json"), 2);
  expectError(openError(fake), fake.path("config.json") + ": has 2 bytes, files.json says 3" + remedy);
  fs::remove(fake.path("config.json"));
  expectError(openError(fake), fake.path("config.json") + ": is missing, files.json names it" + remedy);
}

TEST(FileList, AFileThatItDoesNotNameIsNotRead) {
  FakeBundle fake;
  std::ofstream(fake.path("tokenizer.json")) << "{}";
  expectError(generateError(fake), fake.path("tokenizer.json") + ": is not in files.json" + remedy);
}

TEST(FileList, WhatAStartReadsMustBeListed) {
  for (const std::string file : {"manifest.json", "program.so", "weights/index.json", "weights/map.json"}) {
    SCOPED_TRACE(file);
    FakeBundle fake;
    fake.writeFile("weights/map.json", "{}");
    json list = json::parse(std::ifstream(fake.path("files.json")));
    for (size_t i = list["files"].size(); i-- > 0;)
      if (list["files"][i]["file"] == file)
        list["files"].erase(i);
    std::ofstream(fake.path("files.json")) << list;
    expectError(openError(fake), fake.path(file) + ": is not in files.json" + remedy);
  }
}

TEST(FileList, DamagedTextsOfTokenizersAreNamed) {
  FakeBundle fake;
  for (const char *file : {"tokenizer.json", "lib/libonig.so.5"}) {
    fake.writeFile("tokenizer.json", "{}");
    fake.writeFile("lib/libonig.so.5", "library");
    flip(fake.path(file), 0);
    expectError(generateError(fake), fake.path(file) + ": hashes to ");
  }
}

TEST(FileList, TheLibraryBesideTheProgramIsTheOneThatIsChecked) {
  FakeBundle program, other;
  program.writeFile("lib/libonig.so.5", "library");
  flip(program.path("lib/libonig.so.5"), 0);
  other.writeFile("tokenizer.json", "{}");
  const Outcome outcome = runBundle(program, {"--bundle", other.folder, "generate", "--prompt-ids", "1", "-n", "1"});
  EXPECT_EQ(outcome.exitCode, 1);
  expectError(outcome.err.substr(0, outcome.err.find('\n')), program.path("lib/libonig.so.5") + ": hashes to ");
}

TEST(FileList, IsReadStrictly) {
  const auto entry = [](const std::string &file, const std::string &bytes, const std::string &hash) {
    return R"({"format":1,"files":[{"file":")" + file + R"(","bytes":)" + bytes + R"(,"xxh3":")" + hash + R"("}]})";
  };
  const std::string hash = "2d06800538d394c2", twice = entry("a", "0", hash);
  expectError(listError(""), "files.json:1:1: not JSON: ");
  expectError(listError(R"({"format":2,"files":[]})"), std::string("files.json: format: is 2, must be 1") + remedy);
  expectError(listError(R"({"format":1})"), "files.json: files: is missing");
  expectError(listError(entry("../a", "0", hash)), "files.json: files[0].file: is not a path inside the bundle");
  expectError(listError(entry("a", "-1", hash)), "files.json: files[0].bytes: is -1, must be within 0..");
  expectError(listError(entry("a", "0", "2D06800538d394c2")), "files.json: files[0].xxh3: is not 16 hex digits");
  expectError(listError(twice.substr(0, twice.size() - 2) + "," + twice.substr(twice.find("{\"file\""))),
              "files.json: files[1].file: a is listed twice");
  expectError(listError(R"({"format":1,"files":[]})"), "manifest.json: is not in files.json");
  expectError(listError(entry(std::string(3000, 'n'), "0", hash)),
              std::string(80, 'n') + "...: is missing, files.json");
  FakeBundle fake;
  fs::remove(fake.path("files.json"));
  expectError(openError(fake), fake.path("files.json") + ": is missing");
}

TEST(FileList, AProgramThatIsDamagedSaysSoItself) {
  FakeBundle fake;
  std::ofstream(fake.path("run"), std::ios::app) << "x";
  const Outcome longer = runBundle(fake, {"--version"});
  EXPECT_EQ(longer.exitCode, 1);
  expectError(longer.err.substr(0, longer.err.find('\n')), fake.path("run") + ": hashes to ");
  // Of a bundle that another program opens, `run` is only measured.
  expectError(openError(fake), fake.path("run") + ": has ");
}
