//===- SafetensorsTest.cpp - hostile checkpoints --------------------------===//

#include "k2c/Model/Safetensors.h"
#include "TestFiles.h"

#include <sys/stat.h>

using namespace k2c;
using namespace k2c::test;

namespace {

const std::string twoTensors = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                               R"("b":{"dtype":"BF16","shape":[2,1],"data_offsets":[8,12]}})";

/// Message of opening one file with this header and so many data bytes.
std::string failure(const std::string &header, size_t dataBytes) {
  TempFolder folder;
  std::string path = folder.write("t.safetensors", safetensors(header, std::string(dataBytes, 'x')));
  Expected<Checkpoint> checkpoint = Checkpoint::open(path);
  return checkpoint ? "" : folder.relative(checkpoint.error().text());
}

std::string oneTensor(const std::string &dtype, const std::string &shape, const std::string &offsets) {
  return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

const char *damaged = "; the file is damaged or not safetensors: download it again";

TEST(Safetensors, ReadsTensorsOfOneFile) {
  TempFolder folder;
  folder.write("model.safetensors", safetensors(twoTensors, "12345678abcd"));
  Expected<Checkpoint> checkpoint = Checkpoint::open(folder.path);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  ASSERT_EQ(checkpoint->tensors().size(), 2u);
  const TensorInfo *b = checkpoint->find("b");
  ASSERT_TRUE(b);
  EXPECT_EQ(b->dtype, DType::BF16);
  EXPECT_EQ(b->shape, (std::vector<int64_t>{2, 1}));
  char bytes[3] = {};
  ASSERT_TRUE(checkpoint->read(*b, 1, bytes, 2));
  EXPECT_STREQ(bytes, "bc");
  EXPECT_EQ(checkpoint->find("c"), nullptr);
}

TEST(Safetensors, ReadingOutsideATensorIsAnError) {
  TempFolder folder;
  folder.write("model.safetensors", safetensors(twoTensors, "12345678abcd"));
  Expected<Checkpoint> checkpoint = Checkpoint::open(folder.path);
  ASSERT_TRUE(checkpoint);
  char bytes[16];
  Status status = checkpoint->read(*checkpoint->find("b"), 2, bytes, 3);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "tensor 'b' has 4 bytes, not 3 from 2");
}

TEST(Safetensors, AFileThatShrinksAfterItWasOpenedIsAnError) {
  TempFolder folder;
  const std::string path = folder.write("model.safetensors", safetensors(twoTensors, "12345678abcd"));
  Expected<Checkpoint> checkpoint = Checkpoint::open(folder.path);
  ASSERT_TRUE(checkpoint);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  char bytes[4];
  Status status = checkpoint->read(*checkpoint->find("b"), 0, bytes, 4);
  ASSERT_FALSE(status);
  EXPECT_EQ(folder.relative(status.error().text()),
            "model.safetensors: tensor 'b': the file ended after 3 of 4 bytes; the file was changed while it was read");
}

TEST(Safetensors, ScalarsAndEmptyTensors) {
  EXPECT_EQ(failure(oneTensor("F32", "[]", "[0,4]"), 4), "");
  EXPECT_EQ(failure(oneTensor("F32", "[0,5]", "[0,0]"), 0), "");
  EXPECT_EQ(failure("{}", 0), "");
}

TEST(Safetensors, HeaderLength) {
  TempFolder folder;
  auto open = [&](const std::string &bytes) {
    Expected<Checkpoint> c = Checkpoint::open(folder.write("t.safetensors", bytes));
    return c ? "" : folder.relative(c.error().text());
  };
  EXPECT_EQ(open("1234"), std::string("t.safetensors: file has 4 bytes, a header needs 8") + damaged);
  EXPECT_EQ(open(std::string("\x09\0\0\0\0\0\0\0{}", 10)),
            std::string("t.safetensors: header length 9 exceeds the 2 bytes "
                        "possible in a file of 10") +
                damaged);
  EXPECT_EQ(open(std::string(8, '\xff')), std::string("t.safetensors: header length 18446744073709551615 "
                                                      "exceeds the 0 bytes possible in a file of 8") +
                                              damaged);
}

TEST(Safetensors, MetadataIsAnObjectOfStrings) {
  EXPECT_EQ(failure(R"({"__metadata__":{"format":"pt"}})", 0), "");
  EXPECT_EQ(failure(R"({"__metadata__":{"format":["pt"]}})", 0),
            std::string("t.safetensors: tensor '__metadata__': must be an object of strings") + damaged);
}

TEST(Safetensors, HeaderIsNotAnObject) {
  EXPECT_EQ(failure("[1]", 0), std::string("t.safetensors: the header is not a JSON object") + damaged);
  EXPECT_EQ(failure("{", 0).rfind("t.safetensors:1:2: not JSON", 0), 0u);
}

TEST(Safetensors, HeaderNestedTooDeep) {
  EXPECT_EQ(failure(R"({"a":{"shape":[[1]]}})", 0),
            "t.safetensors: JSON is nested deeper than 3 levels; flatten the file");
}

TEST(Safetensors, DuplicateName) {
  std::string entry = R"("a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_EQ(failure("{" + entry + "," + entry + "}", 1),
            "t.safetensors: a: occurs twice in its object; remove one of the two");
}

TEST(Safetensors, EntryLacksAKey) {
  EXPECT_EQ(failure(R"({"a":{"dtype":"I8","shape":[1]}})", 1),
            std::string("t.safetensors: tensor 'a': has no 'data_offsets'") + damaged);
  EXPECT_EQ(failure(R"({"a":3})", 1), std::string("t.safetensors: tensor 'a': must be an object") + damaged);
}

TEST(Safetensors, UnknownElementType) {
  EXPECT_EQ(failure(oneTensor("F4", "[1]", "[0,1]"), 1),
            std::string("t.safetensors: tensor 'a': element type \"F4\" is not "
                        "in this build") +
                damaged);
}

TEST(Safetensors, NegativeFractionalAndHugeSizes) {
  EXPECT_EQ(failure(oneTensor("I8", "[-1]", "[0,1]"), 1),
            std::string("t.safetensors: tensor 'a': size -1 is not a whole number") + damaged);
  EXPECT_EQ(failure(oneTensor("I8", "[1.5]", "[0,1]"), 1),
            std::string("t.safetensors: tensor 'a': size 1.5 is not a whole number") + damaged);
  EXPECT_EQ(failure(oneTensor("F32", "[4294967296,4294967296]", "[0,1]"), 1),
            std::string("t.safetensors: tensor 'a': shape "
                        "[4294967296,4294967296] overflows 64 bits") +
                damaged);
  EXPECT_EQ(failure(oneTensor("I8", "[99999999999999999999]", "[0,1]"), 1),
            std::string("t.safetensors: tensor 'a': size 1e+20 is not a whole number") + damaged);
}

TEST(Safetensors, RankIsBounded) {
  EXPECT_EQ(failure(oneTensor("I8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1),
            std::string("t.safetensors: tensor 'a': shape must be a list of at "
                        "most 8 numbers, got [1,1,1,1,1,1,1,1,1]") +
                damaged);
}

TEST(Safetensors, OffsetsOutsideTheFile) {
  EXPECT_EQ(failure(oneTensor("I8", "[9]", "[0,9]"), 8),
            std::string("t.safetensors: tensor 'a': bytes 0 to 9 do not lie in "
                        "the file's 8 data bytes") +
                damaged);
  EXPECT_EQ(failure(oneTensor("I8", "[1]", "[5,4]"), 8),
            std::string("t.safetensors: tensor 'a': bytes 5 to 4 do not lie in "
                        "the file's 8 data bytes") +
                damaged);
  EXPECT_EQ(failure(oneTensor("I8", "[1]", "[-1,0]"), 8),
            std::string("t.safetensors: tensor 'a': data_offsets must be two "
                        "whole numbers, got [-1,0]") +
                damaged);
}

TEST(Safetensors, SizeDisagreesWithShapeAndType) {
  EXPECT_EQ(failure(oneTensor("F32", "[2]", "[0,4]"), 4),
            std::string("t.safetensors: tensor 'a': has 4 bytes, its shape and "
                        "type ask for 8") +
                damaged);
}

TEST(Safetensors, OverlapAndHole) {
  auto pair = [](const std::string &second) {
    return R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"I8","shape":[4],"data_offsets":)" +
           second + "}}";
  };
  EXPECT_EQ(failure(pair("[3,7]"), 7), std::string("t.safetensors: tensor 'b': begins at byte 3, inside "
                                                   "tensor 'a', which ends at 4") +
                                           damaged);
  EXPECT_EQ(failure(pair("[5,9]"), 9), std::string("t.safetensors: tensor 'b': begins at byte 5; bytes "
                                                   "from 4 belong to no tensor") +
                                           damaged);
  EXPECT_EQ(failure(pair("[4,8]"), 9), "t.safetensors: tensors end at data byte 8, the file has 9; the "
                                       "file is damaged: download it again");
}

TEST(Safetensors, RefusesAFifoAndFollowsALink) {
  TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "model.safetensors").c_str(), 0600), 0);
  Expected<Checkpoint> fifo = Checkpoint::open(folder.path);
  ASSERT_FALSE(fifo);
  EXPECT_EQ(folder.relative(fifo.error().text()), "model.safetensors: not a regular file; a checkpoint's files are "
                                                  "regular files or links to them");
  std::filesystem::remove(folder / "model.safetensors");
  std::string blob = folder.write("blob", safetensors("{}", ""));
  std::filesystem::create_symlink(blob, folder / "model.safetensors");
  EXPECT_TRUE(Checkpoint::open(folder.path));
}

TEST(Safetensors, FolderWithoutWeights) {
  TempFolder folder;
  EXPECT_FALSE(Checkpoint::hasWeights(folder.path));
  Expected<Checkpoint> checkpoint = Checkpoint::open(folder.path);
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().message, "there are no *.safetensors files");
}

/// A folder of two shards "1.safetensors" {a} and "2.safetensors" {b}.
struct Sharded : TempFolder {
  explicit Sharded(const std::string &index) {
    write("1.safetensors", safetensors(R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})", "x"));
    write("2.safetensors", safetensors(R"({"b":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})", "y"));
    write("model.safetensors.index.json", index);
  }
  std::string failure() const {
    Expected<Checkpoint> checkpoint = Checkpoint::open(path);
    return checkpoint ? "" : relative(checkpoint.error().text());
  }
};
const char *incomplete = "; the checkpoint is incomplete: download it again";

TEST(Safetensors, ShardedCheckpoint) {
  Sharded good(R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  EXPECT_EQ(good.failure(), "");
}

TEST(Safetensors, IndexNamesAMissingShardOrTensor) {
  EXPECT_EQ(Sharded(R"({"weight_map":{"a":"3.safetensors"}})").failure(),
            std::string("model.safetensors.index.json: shard '3.safetensors' "
                        "does not exist") +
                incomplete);
  EXPECT_EQ(Sharded(R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors","c":"2.safetensors"}})").failure(),
            std::string("model.safetensors.index.json:1:56: tensor 'c' is not in "
                        "shard '2.safetensors'") +
                incomplete);
}

TEST(Safetensors, IndexDisagreesWithShards) {
  EXPECT_EQ(Sharded(R"({"weight_map":{"a":"2.safetensors","b":"1.safetensors"}})").failure(),
            std::string("model.safetensors.index.json:1:16: tensor 'a' is in shard "
                        "'1.safetensors', weight_map says '2.safetensors'") +
                incomplete);
  Sharded unlisted(R"({"weight_map":{"a":"1.safetensors"}})");
  unlisted.write(
      "1.safetensors",
      safetensors(
          R"({"a":{"dtype":"I8","shape":[0],"data_offsets":[0,0]},"z":{"dtype":"I8","shape":[0],"data_offsets":[0,0]}})",
          ""));
  EXPECT_EQ(unlisted.failure(), std::string("model.safetensors.index.json: tensor 'z' of shard "
                                            "'1.safetensors' is not in weight_map") +
                                    incomplete);
}

TEST(Safetensors, TensorInTwoShards) {
  Sharded twice(R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  twice.write("2.safetensors", safetensors(R"({"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})", "x"));
  EXPECT_EQ(twice.failure(), "2.safetensors: tensor 'a' is also in "
                             "1.safetensors; keep one of the two");
}

TEST(Safetensors, IndexMustNotPointElsewhere) {
  for (const char *shard : {"../x.safetensors", "/etc/passwd", "..", ""})
    EXPECT_NE(Sharded(std::string(R"({"weight_map":{"a":")") + shard + R"("}})")
                  .failure()
                  .find("tensor 'a' must name a file of this folder"),
              std::string::npos)
        << shard;
  EXPECT_NE(Sharded(R"({"weight_map":[]})").failure().find("there is no object 'weight_map'"), std::string::npos);
}

TEST(Safetensors, IndexBesideASingleFile) {
  Sharded both(R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  both.write("model.safetensors", safetensors("{}", ""));
  EXPECT_EQ(both.failure(), ".: both model.safetensors.index.json and model.safetensors are "
                            "here; remove the one that does not belong to the checkpoint");
}

} // namespace
