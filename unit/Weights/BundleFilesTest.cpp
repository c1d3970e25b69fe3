//===- BundleFilesTest.cpp - index.json and map.json, honest and hostile ---===//
#include "k2c/Weights/BundleFiles.h"
#include "TestTensors.h"
#include "k2c/Weights/Packer.h"
#include "k2c/Weights/WeightIndex.h"
#include <gtest/gtest.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace k2c;
using namespace k2c::test;
namespace fs = std::filesystem;

namespace {

/// A bundle of two blobs.
struct Bundle {
  TemporaryFolder folder;
  MemoryTensors tensors;
  WeightMap map;

  Bundle() {
    for (int64_t slot : {0, 1}) {
      std::string name = "t" + std::to_string(slot);
      tensors.addRandom(name, DType::F32, {2000});
      map.slots.push_back({slot, name, {}, {{name, {2000}, {}, false}}, RowMajor{DType::F32, 2000}});
    }
    EXPECT_TRUE(packWeights(map, tensors, folder.path));
  }
  std::string blob(int slot) {
    return folder.path + "/weights/" + readWeightIndex(folder.path)->slots[slot].ranges[0]->file;
  }
  std::string problem() {
    Expected<VerifyReport> report = verifyBundle(folder.path);
    EXPECT_TRUE(report);
    EXPECT_EQ(report->problems.size(), 1u);
    return report->problems.empty() ? "" : report->problems[0].where + ": " + report->problems[0].message;
  }
};

/// An error's text without the folder before "weights/", where it names a file.
std::string fileAndMessage(const TemporaryFolder &folder, const Error &error) {
  const std::string text = error.text(), place = folder.path + "/weights/";
  return text.compare(0, place.size(), place) == 0 ? text.substr(place.size()) : text;
}

/// The error of reading `text` as weights/<file>.
std::string indexError(const std::string &text) {
  TemporaryFolder folder;
  fs::create_directories(folder.path + "/weights");
  std::ofstream(folder.path + "/weights/index.json") << text;
  auto index = readWeightIndex(folder.path);
  return index ? "" : fileAndMessage(folder, index.error());
}
std::string mapError(const std::string &slot) {
  TemporaryFolder folder;
  fs::create_directories(folder.path + "/weights");
  std::ofstream(folder.path + "/weights/map.json") << "{\"format\":1,\"slots\":[\n" << slot << "]}";
  auto map = readWeightMap(folder.path);
  return map ? "" : fileAndMessage(folder, map.error());
}

} // namespace

TEST(Verify, AcceptsWhatWasPacked) {
  Bundle bundle;
  Expected<VerifyReport> report = verifyBundle(bundle.folder.path);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->files, 2);
  EXPECT_EQ(report->bytes, 2 * 8192);
  EXPECT_TRUE(report->problems.empty());
}

TEST(Verify, NamesAChangedFileWithBothHashes) {
  Bundle bundle;
  std::string path = bundle.blob(1), expected = readWeightIndex(bundle.folder.path)->slots[1].ranges[0]->xxh3;
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(4000).put('!').put('?');
  std::string problem = bundle.problem();
  EXPECT_EQ(problem.find(path + ": hashes to "), 0u) << problem;
  EXPECT_NE(problem.find(", the index says " + expected), std::string::npos) << problem;
}

TEST(Verify, NamesAShortFileWithBothSizes) {
  Bundle bundle;
  std::string path = bundle.blob(0);
  fs::resize_file(path, 8191);
  EXPECT_EQ(bundle.problem(), path + ": has 8191 bytes, the index says 8192");
}

TEST(Verify, NamesAMissingFile) {
  Bundle bundle;
  std::string path = bundle.blob(0);
  fs::remove(path);
  EXPECT_EQ(bundle.problem(), path + ": cannot open: No such file or directory");
}

TEST(Verify, RefusesWhatIsReachedThroughALink) {
  const std::string said = " is reached through a symbolic link or a file that is no folder; put the regular file "
                           "there: a bundle does not follow links";
  TemporaryFolder folder, elsewhere;
  fs::create_directories(folder.path + "/real");
  std::ofstream(folder.path + "/real/a") << "bytes";
  std::ofstream(folder.path + "/b") << "bytes";
  ASSERT_TRUE(writeBundleFiles(folder.path));
  ASSERT_TRUE(verifyBundleFiles(folder.path)->problems.empty());
  fs::rename(folder.path + "/real", elsewhere.path + "/real");
  fs::create_directory_symlink(elsewhere.path + "/real", folder.path + "/real");
  fs::remove(folder.path + "/b");
  fs::create_symlink(elsewhere.path + "/real/a", folder.path + "/b");
  Expected<VerifyReport> report = verifyBundleFiles(folder.path);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->problems.size(), 2u);
  EXPECT_EQ(report->problems[0].text(), folder.path + "/b:" + said);
  EXPECT_EQ(report->problems[1].text(), folder.path + "/real/a:" + said);

  Bundle bundle;
  fs::rename(bundle.blob(0), bundle.folder.path + "/blob");
  fs::create_symlink("../blob", bundle.blob(0));
  EXPECT_EQ(bundle.problem() + ";", bundle.blob(0) + ":" + said.substr(0, said.find(';') + 1));
}

TEST(Verify, RefusesAListThatNamesAFileTwice) {
  TemporaryFolder folder;
  const std::string entry = R"({"file":"a","bytes":0,"xxh3":"2d06800538d394c2"})";
  std::ofstream(folder.path + "/a");
  std::ofstream(folder.path + "/files.json") << R"({"format":1,"files":[)" << entry << "," << entry << "]}";
  Expected<VerifyReport> report = verifyBundleFiles(folder.path);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().text(), folder.path + "/files.json: files[1].file: a is listed twice; compile the bundle "
                                                 "again, or copy the whole folder");
}

TEST(Verify, RefusesAListWithAHashThatIsNone) {
  TemporaryFolder folder;
  std::ofstream(folder.path + "/files.json") << R"({"format":1,"files":[{"file":"a","bytes":0,"xxh3":"2d06"}]})";
  EXPECT_EQ(verifyBundleFiles(folder.path).error().text(),
            folder.path + "/files.json: files[0].xxh3: is not 16 hex digits; compile the bundle again with this "
                          "version of k2c");
}

TEST(Index, HashesAreXxh3OfTheFile) {
  TemporaryFolder folder;
  MemoryTensors tensors;
  tensors.add("zero", DType::F32, {1}, std::vector<float>{0});
  ASSERT_TRUE(
      packWeights({{{0, "zero", {}, {{"zero", {1}, {}, false}}, RowMajor{DType::F32, 1}}}}, tensors, folder.path));
  std::string zeros(4096, 0);
  char expected[17];
  std::snprintf(expected, sizeof expected, "%016llx", (unsigned long long)XXH3_64bits(zeros.data(), zeros.size()));
  EXPECT_EQ(readWeightIndex(folder.path)->slots[0].ranges[0]->xxh3, expected);
}

TEST(Index, ChunksAreHashedOneByOne) {
  TemporaryFolder folder;
  MemoryTensors tensors;
  tensors.addRandom("t", DType::F32, {2000000});
  const WeightMap map{{{0, "t", {}, {{"t", {2000000}, {}, false}}, RowMajor{DType::F32, 2000000}}}};
  ASSERT_TRUE(packWeights(map, tensors, folder.path));
  const BlobRange slot = *readWeightIndex(folder.path)->slots[0].ranges[0];
  const std::string bytes = readFile(folder.path + "/weights/" + slot.file);
  ASSERT_EQ(slot.chunks.size(), 4u);
  for (size_t chunk = 0; chunk < 4; ++chunk) {
    const std::string part = bytes.substr(chunk << 21, 1 << 21);
    char expected[17];
    std::snprintf(expected, sizeof expected, "%016llx", (unsigned long long)XXH3_64bits(part.data(), part.size()));
    EXPECT_EQ(slot.chunks[chunk], expected) << chunk;
  }
  // A blob that is there already is hashed from the disk.
  fs::remove(folder.path + "/weights/index.json");
  std::ofstream(folder.path + "/weights/finished.txt")
      << slot.name << " " << slot.file << " 0 " << slot.bytes << " " << slot.xxh3 << "\n";
  Expected<PackReport> again = packWeights(map, tensors, folder.path);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->reused, 1);
  EXPECT_EQ(readWeightIndex(folder.path)->slots[0].ranges[0]->chunks, slot.chunks);
}

TEST(Verify, NamesAnIndexWhoseChunksAreWrong) {
  Bundle bundle;
  WeightIndex index = *readWeightIndex(bundle.folder.path);
  index.slots[1].ranges[0]->chunks[0] = std::string(16, '0');
  ASSERT_TRUE(writeWeightIndex(index, bundle.folder.path));
  EXPECT_EQ(bundle.problem(), bundle.blob(1) + ": has the hash that the index says, its chunks have others");
}

TEST(Index, RefusesHostileFiles) {
  auto slot = [](const std::string &file, const std::string &bytes,
                 const std::string &chunks = "[\"0123456789abcdef\"]", const std::string &chunk = "2097152",
                 const std::string &hash = "0123456789abcdef") {
    return "{\"format\":1,\"slots\":[{\"slot\":0,\"name\":\"w\",\"layer\":null,"
           "\"file\":\"" +
           file + "\",\"bytes\":" + bytes + ",\"xxh3\":\"" + hash + "\",\"chunk_bytes\":" + chunk +
           ",\"chunks\":" + chunks + "}]}";
  };
  std::string blob = std::string(32, 'a') + ".bin";
  EXPECT_EQ(indexError(slot(blob, "4096")), "");
  EXPECT_NE(indexError(slot("../../etc/passwd", "4096")).find("is not the name of a blob"), std::string::npos);
  EXPECT_NE(indexError(slot(blob, "4095")).find("not a multiple of 4096"), std::string::npos);
  EXPECT_NE(indexError(slot(blob, "-4096")).find("bytes: is -4096, must be within 0.."), std::string::npos);
  EXPECT_NE(indexError(slot(blob, "18446744073709547520"))
                .find("bytes: is 18446744073709547520, must be an integer within 0.."),
            std::string::npos);
  EXPECT_NE(indexError(slot(blob, "2101248")).find("chunks: has 1 hashes, 2101248 bytes have 2"), std::string::npos);
  EXPECT_NE(indexError(slot(blob, "4096", "[1]")).find("chunks[0]: is 1, must be a string"), std::string::npos);
  EXPECT_NE(
      indexError(slot(blob, "4096", "[\"0123456789abcdef\"]", "4096")).find("chunk_bytes: is 4096, must be 2097152"),
      std::string::npos);
  EXPECT_NE(indexError(slot(blob, "4096", "[\"0\"]")).find("chunks: has a hash that is not 16 hex digits"),
            std::string::npos);
  for (const char *hash : {"", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF"})
    EXPECT_NE(indexError(slot(blob, "4096", "[\"0123456789abcdef\"]", "2097152", hash))
                  .find("slots[0].xxh3: is not 16 hex digits"),
              std::string::npos)
        << hash;
  EXPECT_NE(indexError("{\"format\":2,\"slots\":[]}").find("format: is 2, must be 1"), std::string::npos);
  EXPECT_NE(indexError("[]").find("is a list of 0, must be an object"), std::string::npos);
}

TEST(Map, ComesBackAsItWasWritten) {
  PanelLayout layout{{DType::BF16, 2, 8, 4, 2}};
  WeightMap map{
      {{0,
        "gu",
        3,
        {{"a", {2, 4, 4}, TensorSlice{1, 0, 4}, true, {}, {8, 4}, TensorSlice{0, 1, 2}}, {"b", {2, 4, 4}, {}, false}},
        layout,
        2},
       {1, "norm", {}, {{"n", {9}, {}, false}}, RowMajor{DType::F16, 9}},
       {2, "w", {}, {{"w", {8, 4}, {}, false}}, RowLayout{{DType::F32, 1, 8, 4}}}}};
  TemporaryFolder first, second;
  ASSERT_TRUE(writeWeightMap(map, first.path));
  Expected<WeightMap> read = readWeightMap(first.path);
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_TRUE(writeWeightMap(*read, second.path));
  EXPECT_EQ(readFile(first.path + "/weights/map.json"), readFile(second.path + "/weights/map.json"));
  EXPECT_EQ(read->slots[0].layer, 3);
  EXPECT_EQ(read->slots[0].experts, 2);
  EXPECT_EQ(read->slots[0].sources[0].slice->to, 4);
  EXPECT_EQ(read->slots[0].sources[0].part->from, 1);
  EXPECT_TRUE(read->slots[0].sources[0].transpose);
  EXPECT_EQ(read->slots[0].sources[0].storedShape(), (std::vector<int64_t>{8, 4}));
  EXPECT_EQ(read->slots[0].sources[1].storedShape(), (std::vector<int64_t>{2, 4, 4}));
  EXPECT_EQ(std::get<PanelLayout>(read->slots[0].transform).matrix.parts, 2);
  EXPECT_EQ(std::get<RowMajor>(read->slots[1].transform).type, DType::F16);
}

TEST(Map, RefusesHostileSlots) {
  auto slot = [](const std::string &layout, const std::string &sources = "[]") {
    return "{\"slot\":0,\"family\":\"w\",\"layer\":1,\"layout\":" + layout + ",\"sources\":" + sources + "}";
  };
  auto panels = [&](const std::string &n, const std::string &k, const std::string &parts) {
    return slot("{\"kind\":\"panels\",\"type\":\"bf16\",\"matrices\":1,\"n\":" + n + ",\"k\":" + k +
                ",\"parts\":" + parts + "}");
  };
  EXPECT_EQ(mapError(panels("8", "8", "1")), "");
  EXPECT_NE(mapError(panels("8", "8", "3")).find("must be 1 or 2"), std::string::npos);
  EXPECT_NE(mapError(panels("-8", "8", "1")), "");
  EXPECT_NE(mapError(panels("9223372036854775807", "9223372036854775807", "1")), "");
  EXPECT_NE(mapError(panels("8", "4194305", "1")), "");
  EXPECT_NE(mapError(slot("{\"kind\":\"rows\",\"type\":\"f31\",\"elements\":1}")).find("'f31' is no element type"),
            std::string::npos);
  EXPECT_NE(mapError(slot("{\"kind\":\"cube\"}")).find("known are rows, panels, matrix_rows, table"),
            std::string::npos);
  EXPECT_NE(mapError(slot("{\"kind\":\"table\",\"bytes\":1,\"file\":\"/etc/passwd\"}")).find("not the name of a blob"),
            std::string::npos);
  EXPECT_NE(mapError(slot("{\"kind\":\"rows\",\"type\":\"f32\",\"elements\":1}",
                          "[{\"name\":\"t\",\"shape\":[1],\"slice\":[0,1]}]"))
                .find("slots[0].sources[0].slice: is a list of 2, must be a list of 3"),
            std::string::npos);
  EXPECT_EQ(mapError("{\"slot\":1}").find("map.json: slots[0].family: is missing"), 0u);
}

TEST(Map, RefusesSlotsThatAddUpBeyondAllNumbers) {
  std::string slots;
  for (int number = 0; number < 2100; ++number) // each may have 2^52 bytes, 2^63 in all
    slots += (number ? "," : "") + ("{\"slot\":" + std::to_string(number)) +
             ",\"family\":\"f\",\"layer\":null,\"layout\":{\"kind\":\"rows\",\"type\":\"f32\",\"elements\":"
             "1125899906842624},\"sources\":[]}";
  EXPECT_EQ(mapError(slots), "map.json: the blobs up to slot 256 have 1157425104234217472 bytes, more than the "
                             "1152921504606846976 accepted; compile the bundle again");
}
