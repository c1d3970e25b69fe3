//===- JsonTextTest.cpp - what is written is JSON, what is read must be ---===//
//
// Every writer of JSON (or of YAML and HTML that holds its strings) with texts of control characters, quotes,
// backslashes and bytes that are no UTF-8: the document is valid, and the text comes back; what is not UTF-8 is U+FFFD.
// Every reader of JSON with texts that RFC 8259 forbids: refused; and with those that it allows.
//
//===----------------------------------------------------------------------===//
#include "base/JsonText.h"
#include "../Model/TestFiles.h"
#include "../Report/SamplePlan.h"
#include "base/Json.h"
#include "base/JsonFields.h"
#include "base/Utf8.h"
#include "fake/FakeBundle.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Target/Package.h"
#include "k2c/Weights/Packer.h"
#include "k2c/Weights/WeightIndex.h"
#include "run/JsonWriter.h"
#include "text/Tokenizer.h"

#include <functional>

using namespace k2c;
using namespace k2c::test;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// Texts that are UTF-8, and such that are not.
const std::vector<std::string> wellFormed = {"plain",
                                             "a \"quoted\" word",
                                             "back\\slash \\\" \\u0041 \\n",
                                             "</script><!-- & ' -->",
                                             "\b\f\n\r\t",
                                             "\x1b[2J",
                                             "\x7f",
                                             "\u0080\u009f",
                                             "\u2028\u2029\ufeff",
                                             "\ufffd\uffff",
                                             "\U0001f600\U0010ffff",
                                             std::string("a\0b", 3),
                                             std::string("\x01\x02\x03\x0b\x0e\x1f", 6)};
const std::vector<std::string> illFormed = {
    "\xff",     "a\x80z",           "\xc3",     "\xe4\xb8",       "\xed\xa0\x80",
    "\xc0\xaf", "\xf4\x90\x80\x80", "\"\xfe\\", "\xf0\x9f\x98\"}"};

/// A string of a valid document, found by its JSON pointer.
std::string stringAt(const std::string &document, const char *pointer) {
  const json parsed = json::parse(document, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded())
    return "not JSON: " + document.substr(0, 300);
  const json::json_pointer at(pointer);
  return parsed.contains(at) && parsed[at].is_string() ? parsed[at].get<std::string>() : "nothing at " + parsed.dump();
}

/// Writes each text with `write`, which returns the document; the text must stand at `pointer`.
void judge(const char *pointer, const std::function<std::string(const std::string &)> &write) {
  for (const std::string &text : wellFormed)
    EXPECT_EQ(stringAt(write(text), pointer), text);
  for (const std::string &text : illFormed) {
    const std::string document = write(text), back = stringAt(document, pointer);
    EXPECT_NE(back.find("\ufffd"), back.npos) << printable(text) << " in " << printable(document);
    std::string clean;
    k2c::appendWellFormed(document, false, clean);
    EXPECT_EQ(clean, document) << "not UTF-8";
  }
}

TEST(JsonWriters, OfTheCompilersTexts) {
  judge("/text", [](const std::string &text) { return jsonText(json{{"text", text}}); });
  judge("/text", [](const std::string &text) { return jsonText(ordered_json{{"text", text}}, 2); });
}

TEST(JsonWriters, OfManifests) {
  Expected<ModelSpec> spec = loadModelSpec(oracle("kimi_k2"));
  ASSERT_TRUE(spec);
  auto manifest = [&](const std::string &name, ProgramFacts facts) {
    ModelSpec changed = *spec;
    changed.name = name;
    changed.ignoredKeys = {name};
    return manifestText(changed, Plan(), facts, {});
  };
  judge("/model/name", [&](const std::string &text) { return manifest(text, {}); });
  judge("/ignored_keys/0", [&](const std::string &text) { return manifest(text, {}); });
  judge("/topology/name", [&](const std::string &text) {
    ProgramFacts facts;
    facts.topology = text;
    return manifest("m", facts);
  });
  judge("/kernels/0/name", [&](const std::string &text) {
    ProgramFacts facts;
    facts.kernels = {{text, "0", {"v"}, {}}};
    return manifest("m", facts);
  });
}

TEST(JsonWriters, OfWeightIndexes) {
  TempFolder folder;
  std::filesystem::create_directories(folder / "weights");
  judge("/slots/0/name", [&](const std::string &text) {
    EXPECT_TRUE(writeWeightIndex(
        {{{0, text, 3, {BlobRange{"", std::string(32, 'c') + ".bin", 0, 8192, "d", {}, {}}}, false}}, {}},
        folder.path));
    return readFile(folder / "weights/index.json");
  });
}

TEST(JsonWriters, OfWeightMaps) {
  TempFolder folder;
  std::filesystem::create_directories(folder / "weights");
  for (const char *pointer : {"/slots/0/family", "/slots/0/sources/0/name"})
    judge(pointer, [&](const std::string &text) {
      WeightMap map;
      WeightSlot slot;
      slot.family = text;
      slot.sources.emplace_back();
      slot.sources[0].name = text;
      slot.sources[0].shape = {4};
      map.slots.push_back(slot);
      EXPECT_TRUE(writeWeightMap(map, folder.path));
      return readFile(folder / "weights/map.json");
    });
}

TEST(JsonWriters, OfPlans) {
  const Topology topology = sampleTopology();
  auto planOf = [](const std::string &text) {
    ClusterPlan plan = sampleServing();
    plan.model = text;
    plan.notes = {text};
    return plan;
  };
  judge("/notes/0", [&](const std::string &text) {
    const ClusterPlan plan = planOf(text);
    return jsonText(planJson({plan, topology}));
  });
  for (const auto *texts : {&wellFormed, &illFormed})
    for (const std::string &text : *texts) {
      const ClusterPlan plan = planOf(text);
      EXPECT_TRUE(json::accept(planTrace({plan, topology}))) << printable(text);
      std::string clean;
      const std::string page = planHtml({plan, topology});
      k2c::appendWellFormed(page, false, clean);
      EXPECT_EQ(clean, page) << "not UTF-8";
      EXPECT_EQ(page.find("<script"), page.npos);
      EXPECT_EQ(page.find_first_of(std::string("\0\x01\x1b\x7f", 4)), page.npos) << printable(text);
    }
}

/// YAML's double-quoted scalars are JSON's strings; what controls a terminal is not read back.
TEST(JsonWriters, OfTopologies) {
  Expected<Topology> topology = loadTopology("4x8-h100");
  ASSERT_TRUE(topology);
  for (const auto *texts : {&wellFormed, &illFormed})
    for (const std::string &text : *texts) {
      topology->description = text;
      const std::string file = printTopology(*topology);
      std::string clean;
      k2c::appendWellFormed(file, false, clean);
      EXPECT_EQ(clean, file) << "not UTF-8";
      Expected<Topology> again = parseTopology(file, "t.yaml");
      const bool isShown = texts == &wellFormed && printable(text) == text;
      EXPECT_TRUE(again || !isShown) << printable(file);
      if (again) {
        EXPECT_TRUE(!isShown || again->description == text) << printable(text);
      } else {
        EXPECT_NE(again.error().text().find("is not UTF-8, or controls a terminal"), std::string::npos)
            << again.error().text();
      }
    }
}

TEST(JsonWriters, OfTheRuntime) {
  auto document = [](const std::function<void(k2c::runtime::JsonWriter &)> &fill) {
    char *text = nullptr;
    size_t size = 0;
    FILE *file = ::open_memstream(&text, &size);
    k2c::runtime::JsonWriter writer(file);
    fill(writer);
    std::fclose(file);
    std::string copy(text, size);
    std::free(text);
    return copy;
  };
  judge("/text", [&](const std::string &text) {
    return document(
        [&](k2c::runtime::JsonWriter &writer) { writer.beginObject().key("text").value(text).endObject(); });
  });
  judge("/0", [&](const std::string &text) {
    const std::string object =
        document([&](k2c::runtime::JsonWriter &writer) { writer.beginObject().key(text).value(1.0).endObject(); });
    const json parsed = json::parse(object, nullptr, false);
    return parsed.is_object() && parsed.size() == 1 ? jsonText(json::array({parsed.begin().key()})) : object;
  });
}

TEST(JsonWriters, OfWhatTheRuntimePrintsAgain) {
  judge("/name", [](const std::string &text) {
    const json manifest = {{"model", {{"name", text}}}};
    return k2c::JsonFields(manifest, "m").raw("model");
  });
}

TEST(JsonWriters, OfTraces) {
  TempFolder folder;
  k2c::runtime::FakeBundle fake; // whose kernels are called what its program says; the manifest's names are not read
  const k2c::runtime::Outcome outcome =
      runBundle(fake, {"generate", "--prompt-ids", "1,2", "-n", "2", "--json", "--trace", fake.path("t\"\\.json")});
  EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_TRUE(json::accept(readFile(fake.path("t\"\\.json"))));
}

//===----------------------------------------------------------------------===//
// Readers
//===----------------------------------------------------------------------===//

const std::vector<std::string> forbidden = {"",
                                            "{",
                                            "{\"a\":1,}",
                                            "{\"a\" 1}",
                                            "{a:1}",
                                            "{'a':1}",
                                            "{\"a\":1}x",
                                            "{\"a\":1}{}",
                                            "{\"a\":01}",
                                            "{\"a\":+1}",
                                            "{\"a\":1.}",
                                            "{\"a\":.5}",
                                            "{\"a\":0x10}",
                                            "{\"a\":1e}",
                                            "{\"a\":NaN}",
                                            "{\"a\":Infinity}",
                                            "{\"a\":nul}",
                                            "{\"a\":True}",
                                            "{\"a\":\"open}",
                                            "{\"a\":\"line\nbreak\"}",
                                            "{\"a\":\"tab\t\"}",
                                            "{\"a\":\"\x01\"}",
                                            "{\"a\":\"\x1f\"}",
                                            "{\"a\":\"\\x41\"}",
                                            "{\"a\":\"\\u12\"}",
                                            "{\"a\":\"\\ud800\"}",
                                            "{\"a\":\"\\udc00\\ud800\"}",
                                            "{\"a\":\"\xff\"}",
                                            "{\"a\":\"\xc3\"}",
                                            "{\"a\":\"\xed\xa0\x80\"}",
                                            "{\"\xc0\xaf\":1}",
                                            "{\"a\":1} // comment",
                                            "/* comment */ {\"a\":1}",
                                            std::string("{\"a\":1}\0", 8),
                                            std::string("{\"a\":\"\0\"}", 9)};
const std::vector<std::string> allowed = {"{}", " \t\r\n{\"a\" : [ 1 , -0.5e+3 , true , null ] }\n",
                                          "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\ud83d\\ude00\"}",
                                          "{\"a\":\"\x7f\u0080\u2028\ufeff\U0010ffff\"}", "{\"\":\"\"}"};

TEST(JsonReaders, OfTheCompiler) {
  for (const std::string &text : forbidden) {
    const Expected<JsonDocument> document = parseJson(text, "f.json");
    ASSERT_FALSE(document) << printable(text);
    EXPECT_NE(document.error().message.find("not JSON: "), std::string::npos) << document.error().text();
    EXPECT_EQ(document.error().where.rfind("f.json:", 0), 0u) << document.error().text();
  }
  for (const std::string &text : allowed)
    EXPECT_TRUE(parseJson(text, "f.json")) << printable(text);
}

/// A reader begins with the same parser; it takes all of what JSON allows.
TEST(JsonReaders, OfBundles) {
  auto verdictOf = [](const std::string &text) {
    const Expected<int64_t> read =
        readJsonFields(text, "f.json", [](const JsonFields &root) { return root.integer("x", 1, 1, 1); });
    return read ? "accepted" : read.error().text();
  };
  for (const std::string &text : forbidden)
    EXPECT_NE(verdictOf(text).find("not JSON: "), std::string::npos) << printable(text);
  for (const std::string &text : allowed)
    EXPECT_EQ(verdictOf(text), "accepted") << printable(text);
}

/// Tokenizers are read piece by piece; what follows a NUL byte is read by nobody.
TEST(JsonReaders, OfTokenizers) {
  const std::string sound =
      R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"decoder":{"type":"Fuse"},"version":)";
  for (const std::string &text : forbidden) {
    if (text.find('\0') != text.npos)
      continue;
    const k2c::Expected<k2c::runtime::Tokenizer> tokenizer =
        k2c::runtime::Tokenizer::parse(sound + text + "}", "t.json");
    ASSERT_FALSE(tokenizer) << printable(text);
    EXPECT_EQ(tokenizer.error().text().rfind("t.json", 0), 0u) << tokenizer.error().text();
  }
  for (const std::string &text : forbidden)
    EXPECT_FALSE(k2c::runtime::Tokenizer::parse(text, "t.json")) << printable(text);
}

} // namespace
