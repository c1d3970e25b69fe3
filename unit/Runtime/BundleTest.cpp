// Opening bundles: what is refused, and that the message names the place and both numbers.
#include "program/Bundle.h"
#include "device/cuda/RecordedStep.h"
#include "fake/FakeBundle.h"
#include "k2rt/numerics.h"
#include "k2rt/program.h"
#include "program/CpuFeatures.h"
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

/// The message of opening `bundle`, "" when it opens.
std::string openError(const FakeBundle &bundle) {
  Expected<Bundle> opened = Bundle::open(bundle.folder);
  return opened ? "" : opened.error().text();
}

/// Expects that the bundle is refused with all of `parts` in the message, on one line.
void expectRefused(const FakeBundle &bundle, const std::vector<std::string> &parts) {
  const std::string message = openError(bundle);
  for (const std::string &part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "no \"" << part << "\" in: " << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

} // namespace

TEST(Bundle, NamesLaunchesThatReadAlikeOnce) {
  const FakeBundle fake;
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  ASSERT_TRUE(bundle) << bundle.error().text();
  RecordedLaunch launches[4];
  launches[1].kernel = 1;
  launches[3].layer = 2;
  for (RecordedLaunch &launch : launches)
    launch.grid.rows = -1;
  const std::vector<const RecordedLaunch *> all = {&launches[0], &launches[1], &launches[2], &launches[3]};
  const std::string first = bundle->program.kernelName(0);
  EXPECT_EQ(textOf(all, " or ", {}, bundle->program),
            "kernel " + first + " or kernel capture or kernel " + first + " (layer 2)");
  EXPECT_EQ(textOf({}, " or ", {}, bundle->program), "");
}

TEST(Bundle, OpensAndDescribesItself) {
  FakeBundle fake;
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  ASSERT_TRUE(bundle) << bundle.error().text();
  EXPECT_EQ(bundle->manifest.modelName, "fake");
  EXPECT_EQ(bundle->manifest.moeLayers, std::vector<int64_t>{1});
  EXPECT_EQ(bundle->manifest.outputRows(), 8);
  EXPECT_EQ(bundle->weights.bytes(), 4096);
  EXPECT_STREQ(bundle->program.kernelName(1), "capture");
  EXPECT_EQ(bundle->program.variantName(0, 1), "many");
  EXPECT_EQ(bundle->program.variantName(0, 2), "");
  EXPECT_STREQ(bundle->program.kernelName(99), "?");
}

TEST(Bundle, WorksAfterMove) {
  FakeBundle fake;
  const std::string moved = fake.folder + "-moved";
  std::filesystem::rename(fake.folder, moved);
  EXPECT_TRUE(Bundle::open(moved));
  std::filesystem::rename(moved, fake.folder);
}

TEST(Bundle, HostileManifestsAreRefused) {
  struct Case {
    const char *path;
    json value;
    std::vector<std::string> parts;
  };
  const Case cases[] = {
      {"/format", 2, {"format", "is 2, must be 1;"}},
      {"/model/layers", -1, {"model.layers", "is -1, must be within 1.."}},
      {"/model/vocab", "97", {"model.vocab", "must be an integer within 1.."}},
      {"/model/vocab",
       18446744073709551615u,
       {"model.vocab", "is 18446744073709551615, must be an integer within 1.."}},
      {"/model/vocab", 1e300, {"model.vocab", "must be an integer within 1.."}},
      {"/model/name", std::string(5000, 'a'), {"model.name", "4096 bytes"}},
      {"/model/moe_layers", json::array({2, 1}), {"moe_layers", "ascending"}},
      {"/model/top_k", 0, {"model.top_k", "is 0, but moe_layers names 1"}},
      {"/numerics/version", 0, {"numerics.version", "is 0, must be within 1.."}},
      {"/numerics/version", "2", {"numerics.version", "is \"2\", must be an integer within 1.."}},
      {"/numerics/mla", "sideways", {"numerics.mla", "sideways"}},
      {"/topology/ranks", 4097, {"topology.ranks", "is 4097"}},
      {"/topology/ranks", 8, {"layout", "has ep=1, this runtime runs ep=8 on 8 ranks"}},
      {"/limits/page", 16, {"limits.page", "is 16"}},
      {"/limits/max_context", 0, {"limits.max_context", "is 0"}},
      {"/limits/max_context", 4097, {"cache", "64 pages", "needs 65"}},
      {"/cache/0/layers", 0, {"cache[0].layers", "is 0"}},
      {"/cache/1/pages", 63, {"cache[1].pages", "is 63", "has 64"}},
      {"/cache/0/width", 1 << 20, {"memory.cache", "is 65536 bytes"}},
      {"/memory/cache", 1, {"memory.cache", "is 1 bytes", "65536"}},
      {"/memory/logits", 4, {"memory.logits", "is 4 bytes", "388"}},
      {"/memory/reserve_bytes", 10, {"memory.reserve_bytes", "is 10", "reserve.h"}},
      {"/memory/weights", 10, {"maps 4096 bytes", "states 10"}},
      {"/memory/arena", 1024, {"program.so", "arena_bytes is 65536", "1024"}},
      {"/kernels", json::array(), {"program.so", "n_kernels is 4", "says 0"}},
      {"/kernels", 5, {"kernels", "is 5, must be a list of at most 65536"}},
      {"/eos", json::array({97}), {"eos[0]", "is 97", "0..96"}},
      {"/target/features_required", json::array({"quantum"}), {"\"quantum\"", "cannot check"}},
      {"/spec/widened", 5, {"spec.widened", "is 5, must be a list of at most 256"}},
      {"/spec/widened", json::array({5}), {"spec.widened[0]", "is 5, must be"}},
      {"/weights_index", "../index.json", {"not a path inside the bundle"}},
      {"/weights_index", "/etc/passwd", {"not a path inside the bundle"}},
  };
  for (const Case &test : cases) {
    SCOPED_TRACE(test.path);
    FakeBundle fake;
    fake.manifest[json::json_pointer(test.path)] = test.value;
    fake.write();
    expectRefused(fake, test.parts);
  }
}

TEST(Bundle, OfAnotherNumericsVersionIsRefused) {
  FakeBundle fake;
  for (const int64_t version : {K2RT_NUMERICS_VERSION - 1, K2RT_NUMERICS_VERSION + 1}) {
    fake.manifest["numerics"]["version"] = version;
    fake.write();
    expectRefused(fake,
                  {"manifest.json: numerics.version: is " + std::to_string(version) + ", this runtime knows " +
                   std::to_string(K2RT_NUMERICS_VERSION) + "; compile the bundle again with this version of k2c"});
  }
  fake.manifest["numerics"]["version"] = K2RT_NUMERICS_VERSION;
  fake.write();
  EXPECT_EQ(openError(fake), "");
}

TEST(Bundle, MissingFieldsAreNamed) {
  for (const char *path : {"/model", "/model/hidden", "/numerics", "/numerics/version", "/limits/step_tokens",
                           "/memory/arena", "/cache", "/kernels"}) {
    FakeBundle fake;
    const json::json_pointer pointer(path);
    fake.manifest[pointer.parent_pointer()].erase(pointer.back());
    if (pointer.back() != "model" && pointer.back() != "step_tokens")
      fake.write();
    else
      fake.writeFile("manifest.json", fake.manifest.dump());
    expectRefused(fake, {pointer.back(), "is missing", "compile the bundle again"});
  }
}

TEST(Bundle, BrokenJsonIsRefused) {
  FakeBundle fake;
  for (const std::string &text : {std::string("{"), std::string(), std::string("[]"), std::string(100000, '['),
                                  std::string("\xff\xfe"), std::string("{\"format\":1}trailing")}) {
    fake.writeFile("manifest.json", text);
    EXPECT_FALSE(Bundle::open(fake.folder));
  }
  expectRefused(fake, {"manifest.json"});
}

TEST(Bundle, NotABundle) {
  FakeBundle fake;
  std::filesystem::remove(fake.path("manifest.json"));
  expectRefused(fake, {"is not a bundle"});
}

TEST(Bundle, ShapeOnlyNamesTheRemedy) {
  FakeBundle fake;
  std::filesystem::remove_all(fake.path("weights"));
  fake.list();
  expectRefused(fake, {"has no weights", "k2c pack"});
}

TEST(Bundle, WeightsMustBeRegularFilesOfTheStatedSize) {
  FakeBundle fake;
  fake.writeFile("weights/blob0.bin", "short");
  expectRefused(fake, {"blob0.bin", "has 5 bytes", "4096"});
  std::filesystem::remove(fake.path("weights/blob0.bin"));
  expectRefused(fake, {"blob0.bin", "is missing"});
  std::filesystem::create_symlink("/etc/passwd", fake.path("weights/blob0.bin"));
  expectRefused(fake, {"blob0.bin", "symbolic link"});
  std::filesystem::remove(fake.path("weights/blob0.bin"));
  std::filesystem::create_directory(fake.path("weights/blob0.bin"));
  expectRefused(fake, {"blob0.bin", "not a regular file"});
}

TEST(Bundle, HostileIndexesAreRefused) {
  struct Case {
    const char *path;
    json value;
    std::string part;
  };
  for (const Case &test :
       {Case{"/slots/0/file", "../manifest.json", "plain name"}, Case{"/slots/0/file", "/etc/passwd", "plain name"},
        Case{"/slots/0/file", ".blob0.bin", "plain name"}, Case{"/slots/0/chunk_bytes", 4096, "chunk_bytes: is 4096"},
        Case{"/slots/0/file", "", "plain name"}, Case{"/slots/0/slot", 1, "slots[0].slot: is 1"},
        Case{"/slots/0/bytes", -4, "slots[0].bytes: is -4"},
        Case{"/slots/0/chunks/0", "12", "slots[0].chunks: has a hash that is not 16 hex digits"},
        Case{"/slots/0/bytes", 2097153, "slots[0].chunks: has 1 hashes, 2097153 bytes have 2"},
        Case{"/slots", json::array(), "slot 0 of 1 is missing"}}) {
    FakeBundle fake;
    fake.index[json::json_pointer(test.path)] = test.value;
    fake.writeFile("weights/index.json", fake.index.dump());
    expectRefused(fake, {"weights/index.json", test.part});
  }
  FakeBundle twice;
  twice.index["slots"].push_back(twice.index["slots"][0]);
  twice.write();
  expectRefused(twice, {"slots[1].slot: 0 is listed twice"});
}

TEST(Bundle, ProgramsOfAnotherKindAreRefused) {
  FakeBundle other("fake_abi");
  expectRefused(other, {"program.so", "ABI other, this runtime has " + std::to_string(K2RT_ABI_VERSION)});
  FakeBundle text;
  text.writeFile("program.so", "no program");
  expectRefused(text, {"program.so", "cannot be loaded"});
  std::filesystem::remove(text.path("program.so"));
  std::filesystem::create_symlink("run", text.path("program.so"));
  expectRefused(text, {"program.so", "symbolic link"});
}

TEST(CpuFeatures, PresentAbsentUnknown) {
  EXPECT_TRUE(checkCpuFeatures({"sse2", "64bit", "cmov"}, "x86-64"));
  Status unknown = checkCpuFeatures({"sse2", "warp-drive"}, "enterprise");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().text().find("warp-drive"), std::string::npos);
  // No processor has both AMD's SSE4a and Intel's AVX512-VP2INTERSECT with AMX.
  EXPECT_FALSE(checkCpuFeatures({"sse4a", "amx-tile"}, "chimera"));
}

TEST(Manifest, FormsFollowTheTable) {
  FakeBundle fake;
  Expected<FileList> files = readFileList(fake.folder);
  ASSERT_TRUE(files) << files.error().text();
  Expected<Manifest> manifest = readManifest(*files);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->promptForm(7), K2RT_FORM_ABSORBED);
  EXPECT_EQ(manifest->promptForm(8), K2RT_FORM_EXPANDED);
  EXPECT_EQ(manifest->generatedForm(), K2RT_FORM_ABSORBED);
  manifest->promptExpandedAtLeast = -1;
  EXPECT_EQ(manifest->promptForm(100000), K2RT_FORM_ABSORBED);
  manifest->promptExpandedAtLeast = 0;
  EXPECT_EQ(manifest->promptForm(1), K2RT_FORM_EXPANDED);
  manifest->mla = MlaForm::expanded;
  EXPECT_EQ(manifest->generatedForm(), K2RT_FORM_EXPANDED);
  manifest->mla = MlaForm::absorbed;
  EXPECT_EQ(manifest->promptForm(100000), K2RT_FORM_ABSORBED);
}
