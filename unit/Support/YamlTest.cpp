//===- YamlTest.cpp - places and bounds of YAML ---------------------------===//

#include "k2c/Support/Yaml.h"

#include <gtest/gtest.h>

using namespace k2c;

namespace {

std::string failure(const std::string &text, YamlLimits limits = {}) {
  Expected<YamlDocument> doc = parseYaml(text, "f.yaml", limits);
  return doc ? "" : doc.error().text();
}

TEST(Yaml, NodesHavePlaces) {
  Expected<YamlDocument> doc = parseYaml("a: 1\nb:\n  - x\n  - y\n", "f.yaml");
  ASSERT_TRUE(doc) << doc.error().text();
  EXPECT_EQ(doc->place(doc->root["b"][1]), "f.yaml:4:5");
  EXPECT_EQ(*doc->asInt(doc->root["a"], "a"), 1);
}

TEST(Yaml, ScalarOfTheWrongKind) {
  Expected<YamlDocument> doc = parseYaml("a: many\n", "f.yaml");
  ASSERT_TRUE(doc);
  EXPECT_EQ(doc->asInt(doc->root["a"], "a").error().text(), "f.yaml:1:4: a must be a whole number, got 'many'");
  EXPECT_EQ(doc->asInt(doc->root["z"], "z").error().text(), "f.yaml: z must be a whole number, got nothing");
}

TEST(Yaml, RefusesUnknownKeys) {
  Expected<YamlDocument> doc = parseYaml("a: 1\nc: 2\n", "f.yaml");
  ASSERT_TRUE(doc);
  EXPECT_EQ(doc->checkKeys(doc->root, "the file", {"a", "b"}).error().text(),
            "f.yaml:2:1: the file has no key 'c'; the keys are a, b");
  EXPECT_TRUE(doc->checkKeys(doc->root, "the file", {"a", "c"}));
}

TEST(Yaml, RefusesDuplicateKeys) {
  EXPECT_EQ(failure("a: 1\na: 2\n"), "f.yaml:2:1: key 'a' occurs twice in one mapping; remove one of the two");
  EXPECT_EQ(failure("- {a: 1}\n- {a: 2}\n"), "");
}

TEST(Yaml, RefusesAnchorsAliasesAndTags) {
  EXPECT_NE(failure("a: &x 1\nb: *x\n").find("anchors are not accepted"), std::string::npos);
  EXPECT_NE(failure("a: !!binary 1\n").find("tag"), std::string::npos);
}

TEST(Yaml, BoundsDepthSizeAndDocuments) {
  EXPECT_EQ(failure("[[1]]", {100, 2}), "");
  EXPECT_EQ(failure("[[[1]]]", {100, 2}), "f.yaml:1:3: YAML is nested deeper than 2 levels; flatten the file");
  EXPECT_EQ(failure("a: 1", {3, 2}), "f.yaml: YAML text has 4 bytes, more than the 3 accepted");
  EXPECT_EQ(failure("a: 1\n---\nb: 1\n"), "f.yaml: the YAML file holds more than one document; split it");
  EXPECT_EQ(failure(""), "f.yaml: the YAML file is empty");
}

TEST(Yaml, QuotesLittleOfWhatItRefuses) {
  const std::string word(1'000, 'Q'), shown = std::string(97, 'Q') + "...";
  EXPECT_EQ(failure(word + ": 1\n" + word + ": 2\n"),
            "f.yaml:2:1: key '" + shown + "' occurs twice in one mapping; remove one of the two");
  EXPECT_EQ(failure("a: !" + word + " 1\n"), "f.yaml:1:4: tag '!" + std::string(96, 'Q') +
                                                 "...' is not accepted; write "
                                                 "the value out");
  EXPECT_LE(failure("a: [1, *" + std::string(100'000, 'Q') + "]\n").size(), 300u) << "of yaml-cpp's own messages, too";
}

TEST(Yaml, RefusesWhatIsNoText) {
  EXPECT_EQ(failure("a: 1\nname: \"h\xff\"\n"),
            "f.yaml:2:7: 'h\\xff' is not UTF-8, or controls a terminal; write it in printable characters");
  EXPECT_EQ(failure("a: \"\\x1b[2J\"\n").rfind("f.yaml:1:4: '\\x1b[2J' is not UTF-8", 0), 0u);
  EXPECT_EQ(failure("\xc3\x28: 1\n").rfind("f.yaml:1:1: ", 0), 0u) << "keys, too";
  EXPECT_EQ(failure("a: Größe\nb: |\n  two\n  lines\n"), "");
}

TEST(Yaml, NamesThePlaceOfASyntaxError) { EXPECT_EQ(failure("a: [1\n").rfind("f.yaml:", 0), 0u); }

} // namespace
