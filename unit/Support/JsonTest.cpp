//===- JsonTest.cpp - places and bounds of JSON ---------------------------===//

#include "base/Json.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace k2c;

namespace {

std::string failure(const std::string &text, JsonLimits limits = {}) {
  Expected<JsonDocument> doc = parseJson(text, "f.json", limits);
  return doc ? "" : doc.error().text();
}

TEST(Json, LocatesNestedMembers) {
  Expected<JsonDocument> doc = parseJson("{\n  \"a\": [1, {\"x/y\": 2}],\n  \"b\\u0041\": \"}\"\n}", "f.json");
  ASSERT_TRUE(doc) << doc.error().text();
  EXPECT_EQ(doc->place(""), "f.json:1:1");
  EXPECT_EQ(doc->place("/a"), "f.json:2:3");
  EXPECT_EQ(doc->place("/a/1/x~1y"), "f.json:2:13");
  EXPECT_EQ(doc->place("/bA"), "f.json:3:3");
}

TEST(Json, LocatesTheNearestParentOfAMissingMember) {
  Expected<JsonDocument> doc = parseJson("{\"a\": {\"b\": 1}}", "f.json");
  ASSERT_TRUE(doc);
  EXPECT_EQ(doc->place("/a/c"), "f.json:1:2");
}

TEST(Json, NamesThePlaceOfASyntaxError) {
  EXPECT_EQ(failure("{\n  \"a\": ,\n}").rfind("f.json:2:8: not JSON: syntax error", 0), 0u);
}

TEST(Json, RefusesWhatFollowsANulByte) {
  EXPECT_EQ(failure(std::string("{}\n\0{", 5)), "f.json:2:1: not JSON: a NUL byte");
  EXPECT_EQ(failure("{\"a\": \"\\u0000\"}\n"), "");
}

TEST(Json, RefusesADuplicateKey) {
  EXPECT_EQ(failure("[1e999]"), "f.json: not JSON: number overflow parsing '1e999'");
  EXPECT_EQ(failure("{\"a\": 1, \"a\": 2}"), "f.json: a: occurs twice in its object; remove one of the two");
  EXPECT_EQ(failure("[{\"a\": 1}, {\"a\": 2}]"), "");
  EXPECT_EQ(failure("{\"a\": [1, {\"b\": 1, \"b\": 2}]}"),
            "f.json: a[1].b: occurs twice in its object; remove one of the two");
}

TEST(Json, QuotesNoRawBytesOfAFile) {
  EXPECT_EQ(failure("{\"\\u001b[2Jé\\u009b\": 1, \"\\u001b[2Jé\\u009b\": 2}"),
            "f.json: \\x1b[2Jé\\xc2\\x9b: occurs twice in its object; remove one of the two");
  const std::string message = failure("{\"\xe4\xb8\xff\": 1}");
  EXPECT_NE(message.find("\\xe4\\xb8\\xff"), message.npos) << message;
  EXPECT_EQ((Error{"é中\n", "\xf0\x9f\x98", "\x7f"}.text()), "é中\\x0a: \\xf0\\x9f\\x98; \\x7f");
}

TEST(Json, QuotesLittleOfWhatItRefuses) {
  const std::string word(100'000, 'Q'), shown = std::string(40, 'Q') + "...";
  EXPECT_EQ(failure("{\"" + word + "\": 1, \"" + word + "\": 2}"),
            "f.json: " + shown + ": occurs twice in its object; remove one of the two");
  for (const std::string &text : {std::string(100'000, '9'), "{\"a\": \"" + word + "\n\"}"}) {
    const std::string message = failure(text);
    EXPECT_NE(message.find(": not JSON: "), message.npos) << message;
    EXPECT_LE(message.size(), 250u) << "of the parser's own message, too";
    EXPECT_EQ(message.substr(message.size() - 3), "...");
  }
}

TEST(Json, BoundsDepthAndSize) {
  EXPECT_EQ(failure("[[[1]]]", {100, 3}), "");
  EXPECT_EQ(failure("[[[[1]]]]", {100, 3}), "f.json: JSON is nested deeper than 3 levels; flatten the file");
  EXPECT_EQ(failure(std::string(100000, '['), {1 << 20, 8}),
            "f.json: JSON is nested deeper than 8 levels; flatten the file");
  EXPECT_EQ(failure("[1,2]", {4, 3}), "f.json: JSON text has 5 bytes, more than the 4 accepted");
}

TEST(Json, RefusesWhatIsNotARegularFile) {
  std::string path = testing::TempDir() + "k2c-json-fifo-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  Expected<JsonDocument> doc = readJsonFile(path);
  ::unlink(path.c_str());
  ASSERT_FALSE(doc);
  EXPECT_EQ(doc.error().message, "not a regular file");
}

} // namespace
