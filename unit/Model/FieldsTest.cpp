//===- FieldsTest.cpp - the values a config gives to a family's fields -----===//

#include "Fields.h"

#include <functional>
#include <gtest/gtest.h>

using namespace k2c;

namespace {

const std::string head = "family: f\nmodel_types: [f]\narchitectures: [F]\n";

/// What a config says to a family with the keys and checks of `rest`.
std::string refusal(const std::string &rest, const std::string &config) {
  Expected<Family> family = parseFamily(head + rest, "f.yaml");
  Expected<JsonDocument> document = parseJson(config, "config.json");
  EXPECT_TRUE(family && document);
  ConfigFile file(std::move(*document), {});
  std::map<std::string, ConfigPlace> places;
  Expected<Fields> fields = readFields(file, *family, places);
  return fields ? "" : fields.error().text();
}

} // namespace

TEST(Fields, ADefaultThatDividesUnevenlyIsRefused) {
  const std::string keys = "config:\n  hidden: {field: h, kind: size}\n  heads: {field: n, kind: size}\n"
                           "  head_dim: {field: d, kind: size, default: h / n}\n";
  EXPECT_EQ(refusal(keys, R"({"hidden": 6, "heads": 3})"), "");
  EXPECT_EQ(refusal(keys, R"({"hidden": 7, "heads": 3})"),
            "config.json: key 'head_dim' is not given and cannot be derived: 'h / n' asks for 7 / 3, which is not "
            "whole; correct the sizes or add the key");
}

TEST(Fields, ACheckOfWhatIsNoNumberIsRefused) {
  EXPECT_EQ(refusal("config:\n  act: {field: a, kind: word}\nchecks:\n  - {that: a > 1, at: act, say: no}\n",
                    R"({"act": "silu"})"),
            "config.json:1:2: 'a' is not a whole number here");
}

TEST(Fields, WhereAListHasAWord) {
  const std::string keys = "config:\n  n: {field: layers, kind: size}\n  types: {field: full, kind: where, of: layers, "
                           "is: full, one_of: [full, sliding], default: 1 to layers step 2}\n"
                           "checks:\n  - {that: full == 0, at: n, say: \"{full}\"}\n";
  const std::string end = "; take config.json from the published model";
  EXPECT_EQ(refusal(keys, R"({"n": 3, "types": ["full", "sliding", "full"]})"), "config.json:1:2: [0,2]" + end);
  EXPECT_EQ(refusal(keys, R"({"n": 6})"), "config.json:1:2: [1,3,5]" + end);
  EXPECT_EQ(refusal(keys, R"({"n": 2, "types": ["full", "chunked"]})"),
            "config.json:1:10: types must be a list of 2 (layers) of full, sliding, got [\"full\",\"chunked\"]");
}

TEST(Fields, AListHasAWordOfDigits) {
  EXPECT_EQ(refusal("config:\n  n: {field: n, kind: size}\n  types: {field: x, kind: where, of: n, is: "
                    "99999999999999999999, one_of: [99999999999999999999]}\n",
                    R"({"n": 1, "types": [1]})"),
            "config.json:1:10: types must be a list of 1 (n) of 99999999999999999999, got [1]");
}

TEST(Fields, AListOfStepsBelowOneIsRefused) {
  EXPECT_EQ(refusal("config:\n  n: {field: layers, kind: size}\n  types: {field: full, kind: where, of: layers, is: 0, "
                    "one_of: [0, 1], default: 0 to layers step layers - 2}\n",
                    R"({"n": 2})"),
            "config.json: key 'types' is not given and cannot be derived: step must be at least 1, got 0; correct the "
            "sizes or add the key");
}

TEST(Fields, WhereAListOfLayersHasZeros) {
  const std::string keys = "config:\n  n: {field: layers, kind: size}\n"
                           "  types: {field: linear, kind: where, of: layers, is: 0, one_of: [0, 1]}\n"
                           "checks:\n  - {that: linear == 2, at: types, say: \"layers {linear}\"}\n";
  EXPECT_EQ(refusal(keys, R"({"n": 3, "types": [0, 1, 0]})"), "");
  EXPECT_EQ(refusal(keys, R"({"n": 3, "types": [1, 1, 0]})"),
            "config.json:1:10: layers [2]; take config.json from the published model");
  for (const char *wrong : {"[0,0]", "[0,1,0,1]", "[0,2,0]", "[0,true,0]", "[0,\"1\",0]", "0"})
    EXPECT_EQ(refusal(keys, std::string(R"({"n": 3, "types": )") + wrong + "}"),
              std::string("config.json:1:10: types must be a list of 3 (layers) of 0, 1, got ") + wrong);
}

// Any other share would be rounded, by each reader of the file in its own way.
TEST(Fields, AShareIsAWholeNumber) {
  const std::string keys = "config:\n  dims: {field: d, kind: size}\n  a.part: {field: p, kind: share, of: d}\n"
                           "checks:\n  - {that: p == 6, at: a.part, say: \"{p}\"}\n";
  EXPECT_EQ(refusal(keys, R"({"dims": 8, "a": {"part": 0.75}})"), "");
  EXPECT_EQ(refusal(keys, R"({"dims": 8, "a": {"part": 1}})"),
            "config.json:1:19: 8; take config.json from the published model");
  EXPECT_EQ(refusal(keys, R"({"dims": 8, "a": {"part": 0.3}})"),
            "config.json:1:19: a.part 0.3 of d 8 is 2.4, not a whole number of at most 8; take config.json from the "
            "published model");
  EXPECT_EQ(refusal(keys, R"({"dims": 8, "a": {"part": 1.5}})"),
            "config.json:1:19: a.part 1.5 of d 8 is 12.0, not a whole number of at most 8; take config.json from the "
            "published model");
  EXPECT_EQ(refusal(keys, R"({"dims": 8, "a": {"part": 0}})"),
            "config.json:1:19: a.part must be a number above 0, got 0");
}

// Of a section of a families file that names a field or a literal of another kind.
TEST(Fields, EntriesOfAnotherKindAreRefused) {
  Expected<Family> family =
      parseFamily(head + "moe:\n  top_k: silu\n  bias: silu\n  activation: 4\n  score: other\n", "f.yaml");
  ASSERT_TRUE(family) << family.error().text();
  const Fields fields;
  auto said = [&](const std::function<void(Section &)> &read) {
    Section section(family->sections["moe"], fields, "f.yaml: moe");
    read(section);
    return section.error() ? section.error()->text() : "";
  };
  EXPECT_EQ(said([](Section &s) { s.size("top_k"); }), "f.yaml: moe: entry 'top_k' is not a whole number");
  EXPECT_EQ(said([](Section &s) { s.number("top_k"); }), "f.yaml: moe: entry 'top_k' is not a number");
  EXPECT_EQ(said([](Section &s) { s.flag("bias"); }), "f.yaml: moe: entry 'bias' is not true or false");
  EXPECT_EQ(said([](Section &s) { s.word("activation"); }), "f.yaml: moe: entry 'activation' is not a word");
  EXPECT_EQ(said([](Section &s) { s.oneOf<int>("score", {{"sigmoid", 1}}); }),
            "f.yaml: moe: entry 'score' has an unknown value");
}
