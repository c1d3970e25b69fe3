//===- ReadExternalTest.cpp - tensors in other files --------------------------===//
#include "ReadHelpers.h"
#include <sys/stat.h>

using namespace k2c;
using namespace k2c::onnx;
using namespace k2c::onnx::test;

namespace {

const std::string damaged = "; the model is damaged: export or copy it again";

std::string external(const std::string &name, int64_t size, const std::string &location, const std::string &offset,
                     const std::string &length) {
  return initializer(tensor(name, ElementType::U8, {size}, externalData(location, offset, length)));
}

/// A folder with a model of some external tensors "a", "b", .. and the files that it is given.
struct External : TempFolder {
  std::string failure(const std::string &tensors) const {
    Expected<Graph> graph = readGraph(write("m.onnx", model({}, {"x"}, {"x"}, tensors)));
    return graph ? "" : relative(graph.error().text());
  }
  std::string failure(const std::string &location, const std::string &offset, const std::string &length) const {
    return failure(external("a", 4, location, offset, length));
  }
};

TEST(OnnxExternal, TensorsArePlacesInTheirFile) {
  External folder;
  folder.write("w.bin", "0123456789");
  std::filesystem::create_directory(folder / "more");
  folder.write("more/w.bin", "abcd");
  Expected<Graph> graph = readGraph(
      folder.write("m.onnx", model({}, {}, {"a", "b", "c"},
                                   external("a", 4, "w.bin", "2", "4") + external("b", 4, "more/w.bin", "", "") +
                                       external("c", 2, "./w.bin", "6", "2"))));
  ASSERT_TRUE(graph) << graph.error().text();
  ASSERT_EQ(graph->files->files.size(), 3u);
  EXPECT_EQ(graph->files->files[1].name, "w.bin");
  EXPECT_EQ(graph->files->files[1].bytes, 10);
  std::string all;
  for (const Port &output : graph->outputs) {
    Expected<std::string> bytes = readTensor(*graph, graph->constants.at(output.value), 4);
    all += bytes ? *bytes : bytes.error().text();
  }
  EXPECT_EQ(all, "2345abcd67");
}

TEST(OnnxExternal, AFileOfTheCurrentFolder) {
  External folder;
  folder.write("w.bin", "0123");
  folder.write("m.onnx", model({}, {}, {"a"}, external("a", 4, "w.bin", "0", "4")));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path);
  Expected<Graph> graph = readGraph("m.onnx");
  std::filesystem::current_path(before);
  EXPECT_TRUE(graph) << graph.error().text();
}

TEST(OnnxExternal, PathsThatLeaveTheFolder) {
  External folder;
  folder.write("w.bin", "0123");
  for (const std::string location : {"", "/etc/passwd", "../w.bin", "more/../w.bin", "..", ".", "a//b"})
    EXPECT_EQ(folder.failure(location, "0", "4"),
              "m.onnx: tensor 'a': external data '" + location + "' is not a path inside the model's folder" + damaged);
}

TEST(OnnxExternal, LinksInsideTheFolderAreFollowedAndNoOthers) {
  External folder, outside;
  folder.write("w.bin", "0123");
  std::filesystem::create_symlink("w.bin", folder / "inside.bin");
  std::filesystem::create_symlink(outside.write("w.bin", "0123"), folder / "outside.bin");
  std::filesystem::create_directory_symlink(outside.path, folder / "more");
  std::filesystem::create_symlink("/dev/zero", folder / "zero.bin");
  EXPECT_EQ(folder.failure("inside.bin", "0", "4"), "");
  for (const std::string location : {"outside.bin", "more/w.bin", "zero.bin"})
    EXPECT_EQ(folder.failure(location, "0", "4"),
              "m.onnx: tensor 'a': external data '" + location +
                  "' is a link that leaves the model's folder; copy the file itself to where the .onnx file is");
}

// Files of a snapshot in the cache of Hugging Face are links to blobs beside it.
TEST(OnnxExternal, LinksOfASnapshotToItsRepositorysBlobsAreFollowed) {
  TempFolder cache;
  for (const char *repository : {"models--me--mine", "models--me--other", "mine"}) {
    std::filesystem::create_directories(cache / (std::string(repository) + "/blobs"));
    cache.write(std::string(repository) + "/blobs/b", "0123");
  }
  const auto failureIn = [&](const std::string &folder, const std::string &blob) {
    std::filesystem::create_directories(cache / folder);
    std::filesystem::create_symlink(blob, cache / (folder + "/w.bin"));
    const std::string file =
        cache.write(folder + "/m.onnx", model({}, {"x"}, {"x"}, external("a", 4, "w.bin", "0", "4")));
    const Expected<Graph> graph = readGraph(file);
    return graph ? "" : graph.error().message;
  };
  const std::string refused = "tensor 'a': external data 'w.bin' is a link that leaves the model's folder";
  EXPECT_EQ(failureIn("models--me--mine/snapshots/c0ffee", "../../blobs/b"), "");
  EXPECT_EQ(failureIn("models--me--mine/snapshots/c0ffee/onnx", "../../../blobs/b"), "");
  EXPECT_EQ(failureIn("models--me--mine/snapshots/bad", "../../../models--me--other/blobs/b"), refused);
  EXPECT_EQ(failureIn("mine/snapshots/c0ffee", "../../blobs/b"), refused);
}

TEST(OnnxExternal, AFolderWhoseNameBeginsLikeTheModels) {
  External folder;
  const std::string beside = folder.path + "-more";
  std::filesystem::create_directory(beside);
  std::ofstream(beside + "/w.bin") << "0123";
  std::filesystem::create_symlink(beside + "/w.bin", folder / "w.bin");
  EXPECT_NE(folder.failure("w.bin", "0", "4"), "");
  std::filesystem::remove_all(beside);
}

TEST(OnnxExternal, WhatIsNoRegularFile) {
  External folder;
  std::filesystem::create_directory(folder / "folder");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  for (const std::string location : {"folder", "fifo"})
    EXPECT_EQ(folder.failure(location, "0", "4"),
              "m.onnx: tensor 'a': external data '" + location + "' is not a regular file" + damaged);
}

TEST(OnnxExternal, AFileThatIsNotThere) {
  External folder;
  const std::string remedy = "; copy it to where the .onnx file is";
  EXPECT_EQ(folder.failure("w.bin", "0", "4"), "m.onnx: tensor 'a': external data 'w.bin' is missing" + remedy);
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_EQ(folder.failure("loop", "0", "4"), "m.onnx: tensor 'a': external data 'loop' cannot be opened" + remedy);
}

TEST(OnnxExternal, OffsetsAndLengthsAreNumbers) {
  External folder;
  folder.write("w.bin", "0123");
  for (const std::string number : {"-1", "4x", " 4", "0x4", "99999999999999999999", "-0"}) {
    EXPECT_EQ(folder.failure("w.bin", number, "4"),
              "m.onnx: tensor 'a': offset '" + number + "' or length '4' is not a number of bytes" + damaged);
    EXPECT_EQ(folder.failure("w.bin", "0", number),
              "m.onnx: tensor 'a': offset '0' or length '" + number + "' is not a number of bytes" + damaged);
  }
}

TEST(OnnxExternal, LengthsAreThoseOfShapeAndType) {
  External folder;
  folder.write("w.bin", "0123");
  EXPECT_EQ(folder.failure("w.bin", "0", "3"),
            "m.onnx: tensor 'a': has 3 bytes of external data, its shape and type ask for 4" + damaged);
}

TEST(OnnxExternal, TensorsLieInTheirFile) {
  External folder;
  folder.write("w.bin", "01234");
  const std::string remedy = "; copy the file again: it is incomplete or of another export";
  EXPECT_EQ(folder.failure("w.bin", "1", "4"), "");
  EXPECT_EQ(folder.failure("w.bin", "2", "4"),
            "m.onnx: tensor 'a': bytes from 2, 4 of them, do not lie in 'w.bin', which has 5" + remedy);
  EXPECT_EQ(folder.failure("w.bin", "9223372036854775807", "4"),
            "m.onnx: tensor 'a': bytes from 9223372036854775807, 4 of them, do not lie in 'w.bin', which has 5" +
                remedy);
}

TEST(OnnxExternal, TensorsShareAllOfTheirBytesOrNone) {
  External folder;
  folder.write("w.bin", "0123456789");
  EXPECT_EQ(folder.failure(external("a", 4, "w.bin", "0", "4") + external("b", 4, "w.bin", "0", "4") +
                           external("c", 4, "w.bin", "4", "4") + external("d", 0, "w.bin", "2", "0")),
            "");
  EXPECT_EQ(folder.failure(external("a", 4, "w.bin", "0", "4") + external("b", 4, "w.bin", "3", "4")),
            "m.onnx: tensor 'b': begins at byte 3 of its external data, inside tensor 'a', which ends at 4" + damaged);
  EXPECT_NE(folder.failure(external("a", 6, "w.bin", "0", "6") + external("b", 2, "w.bin", "0", "2")), "");
}

TEST(OnnxExternal, FilesAreBounded) {
  External folder;
  std::string tensors;
  for (int i = 0; i < 513; ++i) {
    const std::string name = std::to_string(i);
    folder.write(name, "0123");
    tensors += external(name, 4, name, "0", "4");
  }
  EXPECT_EQ(folder.failure(tensors), "m.onnx: tensor '512': its external data is in one file more than 512; save the "
                                     "model with all external data in one file");
}

TEST(OnnxExternal, EntriesOfTensorsThatLieInTheModelAreIgnored) {
  External folder;
  EXPECT_EQ(folder.failure(initializer(
                tensor("a", ElementType::U8, {1}, rawData("1") + entry("location", "none") + entry("checksum", "0")))),
            "");
}

} // namespace
