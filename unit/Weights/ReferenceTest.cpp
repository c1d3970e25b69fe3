//===- ReferenceTest.cpp - Weights that are a checkpoint's own bytes -----------===//
//
// The pieces that an index names are put together as a runtime does, and compared with the blob that the packer makes
// of the same slot.
//
//===----------------------------------------------------------------------===//
#include "TestTensors.h"
#include "k2c/Weights/Packer.h"
#include "k2c/Weights/WeightIndex.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::test;
namespace fs = std::filesystem;

namespace {

/// A bundle whose weights are those of a checkpoint beside it.
struct Referred {
  TemporaryFolder bundle, checkpoint;

  Status make(const MemoryTensors &tensors, const WeightSlot &slot) {
    tensors.save(checkpoint.path);
    WeightMap map{{slot}, true};
    if (Expected<PackReport> report = packWeights(map, tensors, bundle.path, {"", 1, nullptr}); !report)
      return report.takeError();
    return linkCheckpoint(checkpoint.path, bundle.path);
  }
  BlobRange range(size_t number = 0) const { return *readWeightIndex(bundle.path)->slots[0].ranges[number]; }
  /// What a runtime has of a range, read in parts of odd sizes.
  std::string read(const BlobRange &range) const {
    Expected<PieceFiles> files =
        PieceFiles::open(bundle.path + "/weights/" + checkpointLink, readWeightIndex(bundle.path)->files);
    EXPECT_TRUE(files) << (files ? "" : files.error().text());
    std::string bytes(size_t(range.bytes), 'x');
    for (int64_t begin = 0; begin < range.bytes; begin += 999)
      EXPECT_TRUE(files->read(range.pieces, begin, bytes.data() + begin, std::min<int64_t>(999, range.bytes - begin)));
    return bytes;
  }
  std::vector<std::string> problems() const {
    std::vector<std::string> texts;
    Expected<VerifyReport> report = verifyBundle(bundle.path);
    if (!report)
      return {report.error().text()};
    for (const Error &problem : report->problems)
      texts.push_back(problem.text());
    return texts;
  }
  std::string file(const char *name) const { return bundle.path + "/weights/checkpoint/" + name; }
};

/// Every range has the bytes, the name and the hashes that it has packed.
void expectAsPacked(const MemoryTensors &tensors, const WeightSlot &slot) {
  TemporaryFolder packed;
  Expected<PackReport> report = packWeights(WeightMap{{slot}}, tensors, packed.path, {"", 1, nullptr});
  ASSERT_TRUE(report) << report.error().text();
  Referred referred;
  Status made = referred.make(tensors, slot);
  ASSERT_TRUE(made) << made.error().text();
  const IndexedSlot blobs = readWeightIndex(packed.path)->slots[0];
  for (size_t i = 0; i < blobs.ranges.size(); ++i) {
    const BlobRange &blob = *blobs.ranges[i], range = referred.range(i);
    EXPECT_EQ(range.bytes, blob.bytes);
    EXPECT_EQ(range.xxh3, blob.xxh3);
    EXPECT_EQ(range.chunks, blob.chunks);
    EXPECT_TRUE(referred.read(range) ==
                readFile(packed.path + "/weights/" + blob.file).substr(size_t(blob.offset), size_t(blob.bytes)))
        << "range " << i;
  }
  EXPECT_EQ(referred.problems(), std::vector<std::string>());
  for (const fs::directory_entry &entry : fs::directory_iterator(referred.bundle.path + "/weights"))
    EXPECT_NE(entry.path().extension(), ".bin") << "nothing is packed";
}

RowLayout rows(DType type, int64_t count, int64_t n, int64_t k, int64_t parts = 1) {
  return {{type, count, n, k, parts}};
}

/// The error of a reference to `slot`; "" when there is none.
std::string refusal(const MemoryTensors &tensors, const WeightSlot &slot) {
  Status made = Referred().make(tensors, slot);
  return made ? "" : made.error().text();
}

} // namespace

TEST(Reference, AVectorIsOnePiece) {
  MemoryTensors tensors;
  tensors.addRandom("before", DType::F32, {3});
  tensors.addRandom("norm", DType::BF16, {7});
  const WeightSlot slot{0, "norm", 0, {{"norm", {7}, {}, false}}, RowMajor{DType::BF16, 7}};
  expectAsPacked(tensors, slot);
  Referred referred;
  ASSERT_TRUE(referred.make(tensors, slot));
  EXPECT_EQ(referred.range().pieces, (std::vector<FilePiece>{{1, 24, 14, 0}}));
}

TEST(Reference, AMatrixLargerThanAChunk) {
  MemoryTensors tensors;
  tensors.addRandom("w", DType::BF16, {1100, 1032});
  expectAsPacked(tensors, {0, "w", 0, {{"w", {1100, 1032}, {}, false}}, rows(DType::BF16, 1, 1100, 1032)});
}

TEST(Reference, SourcesFollowOneAnother) {
  MemoryTensors tensors;
  WeightSlot slot{0, "qkv", 0, {}, rows(DType::F32, 1, 40 + 9 + 9, 8)};
  for (auto [name, count] : {std::pair<const char *, int64_t>{"q", 40}, {"k", 9}, {"v", 9}}) {
    tensors.addRandom(name, DType::F32, {count, 8});
    slot.sources.push_back({name, {count, 8}, {}, false});
  }
  expectAsPacked(tensors, slot);
}

TEST(Reference, GateAndUpOfEachExpert) {
  MemoryTensors tensors;
  WeightSlot slot{0, "gate_up", 1, {}, rows(DType::BF16, 3, 2 * 19, 8, 2), 3};
  for (int expert = 0; expert < 3; ++expert)
    for (const char *part : {"gate", "up"}) {
      const std::string name = std::to_string(expert) + "." + part;
      tensors.addRandom(name, DType::BF16, {19, 8});
      slot.sources.push_back({name, {19, 8}, {}, false});
    }
  expectAsPacked(tensors, slot);
}

// Matrices begin on cache lines: 5 rows of 16 bytes have 48 bytes of zeros behind them.
TEST(Reference, SlicesOfHeads) {
  constexpr int64_t heads = 3, nope = 5, value = 6, latent = 8;
  MemoryTensors tensors;
  tensors.addRandom("kv_b", DType::BF16, {heads * (nope + value), latent});
  const SourceTensor source{"kv_b", {heads, nope + value, latent},   TensorSlice{1, 0, nope}, false,
                            {},     {heads * (nope + value), latent}};
  expectAsPacked(tensors, {0, "uk", 0, {source}, rows(DType::BF16, heads, nope, latent)});
  Referred referred;
  ASSERT_TRUE(referred.make(tensors, {0, "uk", 0, {source}, rows(DType::BF16, heads, nope, latent)}));
  EXPECT_EQ(referred.range().pieces,
            (std::vector<FilePiece>{{0, 24, 80, 0}, {0, 24 + 176, 80, 128}, {0, 24 + 352, 80, 256}}));
}

TEST(Reference, ColumnsOfAPart) { // a piece for each row
  MemoryTensors tensors;
  tensors.addRandom("w", DType::BF16, {4, 32});
  SourceTensor source{"w", {4, 32}, {}, false};
  source.part = TensorSlice{1, 16, 32};
  expectAsPacked(tensors, {0, "w", 0, {source}, rows(DType::BF16, 1, 4, 16)});
}

TEST(Reference, ScaledBlocksWithTheirScales) {
  MemoryTensors tensors;
  WeightSlot slot{0, "gate_up", 1, {}, RowLayout{{DType::F8E4M3, 1, 2 * 40, 64, 2, 16, 32}}};
  for (const char *name : {"gate", "up"}) {
    std::vector<uint8_t> codes(40 * 64);
    for (size_t i = 0; i < codes.size(); ++i)
      codes[i] = uint8_t(i * 89 % 251) & 0xf7; // bit 3 clear: no code is NaN
    tensors.add(name, DType::F8E4M3, {40, 64}, codes);
    tensors.add(name + std::string("_scale"), DType::F32, {3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6});
    slot.sources.push_back({name, {40, 64}, {}, false, SourceScales{name + std::string("_scale"), 16, 32}});
  }
  expectAsPacked(tensors, slot);
}

TEST(Reference, TypesThatWouldBeConvertedAreRefused) {
  MemoryTensors tensors;
  tensors.addRandom("half", DType::F16, {4, 8});
  tensors.addRandom("float", DType::F32, {4, 8});
  const RowLayout layout = rows(DType::F32, 1, 4, 8);
  EXPECT_EQ(refusal(tensors, {0, "w", 0, {{"half", {4, 8}, {}, false}}, layout}),
            "tensor 'half': is stored as f16, the program reads it as f32; use --weights packed");
  EXPECT_EQ(refusal(tensors, {0, "w", 0, {{"half", {32}, {}, false, {}, {4, 8}}}, RowMajor{DType::F32, 32}}),
            "tensor 'half': is stored as f16, the program reads it as f32; use --weights packed");
  EXPECT_EQ(refusal(tensors, {0, "w", 0, {{"float", {4, 8}, {}, false}}, layout}), "");
}

TEST(Reference, RowsThatNeedPaddingAreRefused) {
  MemoryTensors tensors;
  tensors.addRandom("odd", DType::BF16, {4, 12});
  tensors.addRandom("even", DType::BF16, {4, 16});
  EXPECT_EQ(refusal(tensors, {0, "w", 0, {{"odd", {4, 12}, {}, false}}, rows(DType::BF16, 1, 4, 12)}),
            "tensor 'odd': its rows have 24 bytes, the program reads rows of 32, a multiple of 16; "
            "use --weights packed");
  EXPECT_EQ(refusal(tensors, {0, "w", 0, {{"even", {4, 16}, {}, false}}, rows(DType::BF16, 1, 4, 16)}), "");
}

TEST(Reference, ATransposeIsRefused) {
  MemoryTensors tensors;
  tensors.addRandom("w", DType::BF16, {8, 8});
  EXPECT_EQ(refusal(tensors, {0, "w", 0, {{"w", {8, 8}, {}, true}}, rows(DType::BF16, 1, 8, 8)}),
            "tensor 'w': the program reads it transposed, so the checkpoint's bytes are not those of its memory; "
            "use --weights packed");
  EXPECT_EQ(refusal(tensors, {0, "w", 0, {{"w", {8, 8}, {}, false}}, rows(DType::BF16, 1, 8, 8)}), "");
}

TEST(Reference, PanelsAreRefused) {
  MemoryTensors tensors;
  tensors.addRandom("w", DType::BF16, {8, 8});
  EXPECT_EQ(refusal(tensors, {0, "w", 0, {{"w", {8, 8}, {}, false}}, PanelLayout{{DType::BF16, 1, 8, 8}}}),
            "weights 'w': are read in panels of 32 columns, tensors are stored in rows; use --weights packed");
}

TEST(Reference, LayoutsAreCheckedWithoutACheckpoint) {
  WeightMap map{{{0, "w", 0, {{"w", {8, 8}, {}, true}}, rows(DType::BF16, 1, 8, 8)}}, true};
  EXPECT_FALSE(checkLayouts(map));
  map.isReference = false;
  EXPECT_TRUE(checkLayouts(map));
}

TEST(Reference, ADamagedCheckpointIsFound) {
  MemoryTensors tensors;
  tensors.addRandom("v", DType::BF16, {16});
  tensors.addRandom("w", DType::BF16, {4, 16});
  Referred referred;
  ASSERT_TRUE(referred.make(tensors, {0, "w", 0, {{"w", {4, 16}, {}, false}}, rows(DType::BF16, 1, 4, 16)}));
  const std::string path = referred.file("b.safetensors"), before = readFile(path);
  EXPECT_EQ(referred.problems(), std::vector<std::string>());
  std::string changed = before;
  changed[30] ^= 1;
  std::ofstream(path, std::ios::binary) << changed;
  ASSERT_EQ(referred.problems().size(), 1u);
  EXPECT_EQ(referred.problems()[0].find(path + ": the weights from byte 24 on: hashes to "), 0u)
      << referred.problems()[0];
  std::ofstream(path, std::ios::binary) << before << "x";
  EXPECT_EQ(referred.problems(),
            std::vector<std::string>{path + ": has " + std::to_string(before.size() + 1) + " bytes, the index says " +
                                     std::to_string(before.size()) + "; " + checkpointRemedy});
  fs::remove(path);
  EXPECT_EQ(referred.problems(),
            std::vector<std::string>{path + ": is missing, the index says a file of " + std::to_string(before.size()) +
                                     " bytes; " + checkpointRemedy});
  fs::create_directory(path);
  EXPECT_EQ(referred.problems(), std::vector<std::string>{path + ": is not a regular file; " + checkpointRemedy});
}

TEST(Reference, AFileThatShrinksIsAnError) {
  TemporaryFolder folder;
  std::ofstream(folder.path + "/a.safetensors") << std::string(100, 'a');
  Expected<PieceFiles> files = PieceFiles::open(folder.path, {{"a.safetensors", 100}});
  ASSERT_TRUE(files) << files.error().text();
  std::string bytes(4096, 'x');
  EXPECT_TRUE(files->read({{0, 20, 80, 0}}, 0, bytes.data(), 4096));
  EXPECT_EQ(bytes, std::string(80, 'a') + std::string(4016, '\0'));
  fs::resize_file(folder.path + "/a.safetensors", 60);
  EXPECT_EQ(files->read({{0, 20, 80, 0}}, 0, bytes.data(), 4096).error().text(),
            folder.path + "/a.safetensors: ends at byte 60, 40 bytes before what the index names; " + checkpointRemedy);
}

TEST(Reference, FilesMayBeLinks) { // as in the Hugging Face cache
  MemoryTensors tensors;
  tensors.addRandom("w", DType::BF16, {4, 16});
  Referred referred;
  ASSERT_TRUE(referred.make(tensors, {0, "w", 0, {{"w", {4, 16}, {}, false}}, rows(DType::BF16, 1, 4, 16)}));
  TemporaryFolder elsewhere;
  fs::rename(referred.file("a.safetensors"), elsewhere.path + "/blob");
  fs::create_symlink(elsewhere.path + "/blob", referred.file("a.safetensors"));
  EXPECT_EQ(referred.problems(), std::vector<std::string>());
}

TEST(Reference, AnotherCheckpointTakesThePlaceOfTheFirst) {
  MemoryTensors tensors;
  tensors.addRandom("w", DType::BF16, {4, 16});
  Referred referred;
  const WeightSlot slot{0, "w", 0, {{"w", {4, 16}, {}, false}}, rows(DType::BF16, 1, 4, 16)};
  ASSERT_TRUE(referred.make(tensors, slot));
  fs::remove_all(referred.checkpoint.path);
  EXPECT_EQ(referred.problems().size(), 1u);
  fs::create_directory(referred.checkpoint.path + "-moved");
  tensors.save(referred.checkpoint.path + "-moved");
  ASSERT_TRUE(linkCheckpoint(referred.checkpoint.path + "-moved", referred.bundle.path));
  EXPECT_EQ(referred.problems(), std::vector<std::string>());
  fs::remove_all(referred.checkpoint.path + "-moved");
  Status gone = linkCheckpoint(referred.checkpoint.path, referred.bundle.path);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().text(), referred.bundle.path + "/weights/checkpoint: cannot be a link to " +
                                     referred.checkpoint.path +
                                     ": No such file or directory; use a file system that has symbolic links, or "
                                     "--weights packed");
}

TEST(Reference, IndexesAreHostile) {
  TemporaryFolder folder;
  fs::create_directory(folder.path + "/weights");
  auto indexError = [&](const std::string &pieces, const std::string &file = "a.safetensors") {
    std::ofstream(folder.path + "/weights/index.json")
        << R"({"format":1,"files":[{"file":")" << file << R"(","bytes":100}],"slots":[{"slot":0,"name":"w",)"
        << R"("chunk_bytes":2097152,"bytes":4096,"xxh3":"0123456789abcdef","chunks":["0123456789abcdef"],"pieces":)"
        << pieces << "}]}";
    Expected<WeightIndex> index = readWeightIndex(folder.path);
    return index ? "" : index.error().text().substr(index.error().text().find("index.json: ") + 12);
  };
  EXPECT_EQ(indexError("[[0,0,60,0],[0,60,40,4056]]"), "");
  const std::pair<const char *, const char *> cases[] = {
      {"[]", "slots[0].pieces: is empty: a range has one or more"},
      {"[[0,0,60]]", "slots[0].pieces[0]: is not a list of file, offset, bytes and at"},
      {"[[0,null,60,0]]", "slots[0].pieces[0]: is not a list of file, offset, bytes and at"},
      {"[[1,0,60,0]]", "slots[0].pieces[0]: is of file 1, the index lists 1"},
      {"[[0,50,60,0]]", "slots[0].pieces[0]: is bytes 50 to 110 of a.safetensors, which has 100"},
      {"[[0,50,0,0]]", "slots[0].pieces[0]: is bytes 50 to 50 of a.safetensors, which has 100"},
      {"[[0,0,60,0],[0,0,60,59]]", "slots[0].pieces[1]: begins at byte 59 of its range, the one before it ends at 60"},
      {"[[0,0,60,4037]]", "slots[0].pieces[0]: ends at byte 4097 of its range, which has 4096"},
      {"[[0,-1,60,0]]", "slots[0].pieces[0][1]: is -1, must be"}};
  for (const auto &[pieces, error] : cases)
    EXPECT_EQ(indexError(pieces).find(error), 0u) << indexError(pieces);
  std::string badHash = R"([[0,0,60,0]],"experts":[{"name":"x","bytes":4096,"xxh3":"0123456789abcdef","chunks":)"
                        R"(["0123456789abcdef"],"pieces":[[0,0,60,0]]}])";
  EXPECT_EQ(indexError(badHash).find("slots[0].experts[0].name: is not 32 hex digits"), 0u) << indexError(badHash);
  for (const char *name : {"../a.safetensors", "/etc/passwd", "..", "x/a.safetensors", ""})
    EXPECT_NE(indexError("[[0,0,60,0]]", name).find("' is not the name of a file in the checkpoint's folder"),
              std::string::npos)
        << name;
}
