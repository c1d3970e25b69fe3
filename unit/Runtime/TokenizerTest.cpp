// The tokenizer against the ids and texts that the `tokenizers` package gives
// (test/Runtime/tokenizers), its stream, and hostile files.
#include "text/Tokenizer.h"
#include "base/Utf8.h"
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace k2c;
using namespace k2c::runtime;
using Json = nlohmann::json;

namespace {

std::string pathOf(const std::string &file) { return std::string(K2C_SOURCE_DIR "/test/Runtime/tokenizers/") + file; }

Json readJson(const std::string &file) {
  std::ifstream in(pathOf(file));
  return Json::parse(in);
}

Tokenizer loaded(const std::string &name) {
  Expected<Tokenizer> tokenizer = Tokenizer::load(pathOf(name + ".json"));
  if (!tokenizer)
    ADD_FAILURE() << tokenizer.error().text();
  return std::move(*tokenizer);
}

std::string joined(const std::vector<int32_t> &ids) {
  std::string line;
  for (int32_t id : ids)
    line += (line.empty() ? "" : " ") + std::to_string(id);
  return line;
}

std::string encoded(const Tokenizer &tokenizer, std::string_view text, bool special = false) {
  Expected<std::vector<int32_t>> ids = tokenizer.encode(text, special);
  return ids ? joined(*ids) : ids.error().text();
}

class Golden : public testing::TestWithParam<const char *> {
protected:
  Golden() : tokenizer(loaded(GetParam())) {}
  Tokenizer tokenizer;
};

// A line a text; then two lines with special tokens added, of texts 17 and 40.
TEST_P(Golden, Encode) {
  const Json texts = readJson("texts.json");
  std::ifstream lines(pathOf(GetParam() + std::string(".ids")));
  const std::string mark = "special ";
  std::vector<size_t> special = {17, 40};
  std::string line;
  size_t next = 0;
  while (std::getline(lines, line)) {
    const bool add = line.rfind(mark, 0) == 0;
    size_t which = next++;
    if (add) {
      ASSERT_FALSE(special.empty());
      which = special.front();
      special.erase(special.begin());
      line.erase(0, mark.size());
    }
    EXPECT_EQ(encoded(tokenizer, texts.at(which).get<std::string>(), add), line)
        << "text " << which << ": " << texts.at(which).dump();
  }
  EXPECT_TRUE(special.empty());
  EXPECT_GE(next, 302u);
}

TEST_P(Golden, Decode) {
  for (const Json &one : readJson(GetParam() + std::string(".decoded.json")))
    EXPECT_EQ(tokenizer.decode(one["ids"].get<std::vector<int32_t>>(), one["skip"].get<bool>()),
              one["text"].get<std::string>())
        << one.dump();
}

TEST_P(Golden, StreamIsDecode) {
  for (const Json &one : readJson(GetParam() + std::string(".decoded.json"))) {
    Tokenizer::Stream stream(tokenizer, one["skip"].get<bool>());
    std::string text;
    for (int32_t id : one["ids"].get<std::vector<int32_t>>()) {
      const std::string piece = stream.push(id);
      std::string clean;
      appendWellFormed(piece, false, clean);
      EXPECT_EQ(piece, clean);
      text += piece;
    }
    EXPECT_EQ(text + stream.finish(), one["text"].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, Golden, testing::Values("gpt2", "llama3", "deepseek", "flags", "cuts", "toy"),
                         [](const auto &info) { return info.param; });

TEST(Tokenizer, BundledModel) {
  const std::string folder = K2C_SOURCE_DIR "/models/bundled/";
  Expected<Tokenizer> tokenizer = Tokenizer::load(folder + "tokenizer.json");
  ASSERT_TRUE(bool(tokenizer)) << tokenizer.error().text();
  std::ifstream in(folder + "golden.json");
  const Json golden = Json::parse(in)["tokenizer"];
  ASSERT_FALSE(golden.empty());
  for (const Json &one : golden)
    EXPECT_EQ(encoded(*tokenizer, one["text"].get<std::string>(), true),
              joined(one["ids"].get<std::vector<int32_t>>()));
}

TEST(Tokenizer, RoundTrip) {
  const Tokenizer tokenizer = loaded("llama3");
  for (const Json &text : readJson("texts.json")) {
    Expected<std::vector<int32_t>> ids = tokenizer.encode(text.get<std::string>(), false);
    ASSERT_TRUE(bool(ids));
    EXPECT_EQ(tokenizer.decode(*ids, false), text.get<std::string>());
  }
}

TEST(Tokenizer, IllFormedInputIsReplaced) {
  const Tokenizer tokenizer = loaded("gpt2");
  const std::string replacement = "\xEF\xBF\xBD";
  // One U+FFFD for each maximal part: a lone continuation, a cut character, an
  // overlong form (two), a surrogate (three), beyond U+10FFFF (four).
  EXPECT_EQ(encoded(tokenizer, "a\x80z"), encoded(tokenizer, "a" + replacement + "z"));
  EXPECT_EQ(encoded(tokenizer, "a\xE4\xB8z"), encoded(tokenizer, "a" + replacement + "z"));
  EXPECT_EQ(encoded(tokenizer, "\xC0\xAF"), encoded(tokenizer, replacement + replacement));
  EXPECT_EQ(encoded(tokenizer, "\xED\xA0\x80"), encoded(tokenizer, replacement + replacement + replacement));
  EXPECT_EQ(encoded(tokenizer, "\xF4\x90\x80\x80"),
            encoded(tokenizer, replacement + replacement + replacement + replacement));
}

TEST(Tokenizer, StreamHoldsPartsOfACharacter) {
  const Tokenizer tokenizer = loaded("toy"); // id = byte below 256
  Tokenizer::Stream stream(tokenizer, false);
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push(0x98), "");
  EXPECT_EQ(stream.push(0x80), "\xF0\x9F\x98\x80");
  EXPECT_EQ(stream.push(0xE4), "");
  EXPECT_EQ(stream.push('a'), "\xEF\xBF\xBD"
                              "a");
  EXPECT_EQ(stream.push(0xE4), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Tokenizer, IdsThatNameNothingDecodeToNothing) {
  const Tokenizer tokenizer = loaded("toy");
  EXPECT_EQ(tokenizer.size(), 289);
  EXPECT_EQ(tokenizer.decode({-1, 'a', 289, INT32_MAX, 'b', INT32_MIN}, false), "ab");
  EXPECT_EQ(tokenizer.find("<eos>"), 287);
  EXPECT_EQ(tokenizer.find("<nothing>"), -1);
  EXPECT_TRUE(tokenizer.isSpecial(287));
  EXPECT_FALSE(tokenizer.isSpecial(-1));
  EXPECT_EQ(tokenizer.decode({'a', 287}, true), "a");
  EXPECT_EQ(tokenizer.decode({'a', 287}, false), "a<eos>");
}

// One word of a megabyte: quadratic merging would not return.
TEST(Tokenizer, LongWords) {
  const Tokenizer tokenizer = loaded("llama3");
  Expected<std::vector<int32_t>> ids = tokenizer.encode(std::string(1 << 20, 'e'), false);
  ASSERT_TRUE(bool(ids));
  EXPECT_EQ(tokenizer.decode(*ids, false), std::string(1 << 20, 'e'));
}

//===--------------------------------------------------------------------===//
// Files that are refused
//===--------------------------------------------------------------------===//

/// The error of toy.json with `value` written at `pointer` (a JSON pointer).
std::string refusal(const std::string &pointer, const Json &value, const char *base = "toy.json") {
  Json document = readJson(base);
  document[Json::json_pointer(pointer)] = value;
  Expected<Tokenizer> tokenizer = Tokenizer::parse(document.dump(), "t.json");
  return tokenizer ? "accepted" : tokenizer.error().text();
}

const std::string later = " is not in this build; use token ids instead of text";

TEST(TokenizerRefuses, WhatItIsAskedAndCannotDo) {
  EXPECT_EQ(refusal("/normalizer", {{"type", "StripAccents"}}), "t.json: normalizer: normalizer StripAccents" + later);
  EXPECT_EQ(refusal("/model/type", "Unigram"), "t.json: model.type: model Unigram" + later);
  EXPECT_EQ(refusal("/model/dropout", 0.1), "t.json: model.dropout: dropout" + later);
  EXPECT_EQ(refusal("/model/end_of_word_suffix", "</w>"), "t.json: model.end_of_word_suffix: \"</w>\"" + later);
  EXPECT_EQ(refusal("/pre_tokenizer", {{"type", "BertPreTokenizer"}}),
            "t.json: pre_tokenizer: pre-tokenizer BertPreTokenizer" + later);
  EXPECT_EQ(refusal("/post_processor", {{"type", "BertProcessing"}}),
            "t.json: post_processor: post-processor BertProcessing" + later);
  EXPECT_EQ(refusal("/decoder", {{"type", "WordPiece"}}, "mixtral.json"), "t.json: decoder: decoder WordPiece" + later);
  EXPECT_EQ(refusal("/version", "2.0"), "t.json: version: version 2.0" + later);
}

TEST(TokenizerRefuses, EmptyParts) {
  EXPECT_EQ(refusal("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"String", ""}}}, {"behavior", "Isolated"}}),
            "t.json: pre_tokenizer.pattern.String: an empty pattern");
  EXPECT_EQ(refusal("/decoder/decoders/3/content", "", "mixtral.json"),
            "t.json: decoder.decoders[3].content: an empty character");
}

TEST(TokenizerRefuses, ASecondTemplate) {
  const Json single = Json::array({{{"Sequence", {{"id", "A"}, {"type_id", 0}}}}});
  const Json once = {
      {"type", "TemplateProcessing"}, {"single", single}, {"pair", single}, {"special_tokens", Json::object()}};
  EXPECT_EQ(refusal("/post_processor", {{"type", "Sequence"}, {"processors", {once, once}}}),
            "t.json: post_processor.processors[1]: a second template" + later);
}

TEST(TokenizerRefuses, AFallbackToBytesThatAreNoTokens) {
  Json document = readJson("toy.json");
  document["model"]["byte_fallback"] = true;
  document["model"]["vocab"].erase("\u0100"); // byte 0
  Expected<Tokenizer> tokenizer = Tokenizer::parse(document.dump(), "t.json");
  ASSERT_FALSE(bool(tokenizer));
  EXPECT_EQ(tokenizer.error().text(),
            "t.json: model.byte_fallback: byte fallback of a byte-level vocabulary that lacks "
            "byte 0" +
                later);
}

TEST(TokenizerRefuses, UnknownKeys) {
  EXPECT_EQ(refusal("/surprise", 1), "t.json: surprise: unknown key");
  EXPECT_EQ(refusal("/pre_tokenizer/greedy", true), "t.json: pre_tokenizer.greedy: unknown key");
}

TEST(TokenizerRefuses, BadVocabularies) {
  EXPECT_EQ(refusal("/model/vocab/zz", 7), "t.json: model.vocab.\u0107: id 7 belongs to \"zz\" already");
  EXPECT_EQ(refusal("/model/vocab/zz", -1), "t.json: model.vocab.zz: is -1, must be within 0..4194303");
  EXPECT_EQ(refusal("/model/vocab/zz", 18446744073709551615u),
            "t.json: model.vocab.zz: is 18446744073709551615, must be an integer within 0..4194303");
  EXPECT_EQ(refusal("/model/vocab/zz", "7"), "t.json: model.vocab.zz: is \"7\", must be an integer within 0..4194303");
  EXPECT_EQ(refusal("/model/vocab/zz", 4000000), "t.json: model.vocab: ids reach 4000000, but only 290 tokens are "
                                                 "declared");
  EXPECT_EQ(refusal("/model/vocab/zz", {{"id", 7}}),
            "t.json: model.vocab.zz: is an object, must be an integer within 0..4194303");
  EXPECT_EQ(refusal("/model/vocab/zz", Json::array({7})),
            "t.json: model.vocab.zz: is a list of 0, must be an integer within 0..4194303");
  EXPECT_EQ(refusal("/model/vocab", Json::array()), "t.json: model.vocab: is a list of 0, must be an object");
  EXPECT_EQ(refusal("/model/vocab/" + std::string(70000, 'x'), 400),
            "t.json: model.vocab." + std::string(40, 'x') + "...: a token of 70000 bytes; the limit is 65536");
}

TEST(TokenizerRefuses, BadMerges) {
  EXPECT_EQ(refusal("/model/merges/3", {"t", "zz"}), "t.json: model.merges[3]: \"zz\" is not in the vocabulary");
  EXPECT_EQ(refusal("/model/merges/3", {"z", "z"}), "t.json: model.merges[3]: \"zz\" is not in the vocabulary");
  EXPECT_EQ(refusal("/model/merges/3", {"t", "h", "e"}), "t.json: model.merges[3]: a merge has 2 parts, this one 3");
  EXPECT_EQ(refusal("/model/merges/3", "t h e"), "t.json: model.merges[3]: a merge is two tokens with one space "
                                                 "between them");
  EXPECT_EQ(refusal("/model/merges/3", {"", "the"}), "t.json: model.merges[3]: a part of the merge is empty");
}

TEST(TokenizerRefuses, MergesOfOtherTypes) {
  EXPECT_EQ(refusal("/model/merges/3", 3), "t.json: model.merges[3]: is 3, must be a string of at most 131072 bytes");
  EXPECT_EQ(refusal("/model/merges/3", {{"t", "h"}}),
            "t.json: model.merges[3]: is an object, must be a string of at most 131072 bytes");
  EXPECT_EQ(refusal("/model/merges", {{"t", "h"}}),
            "t.json: model.merges: is an object, must be a list of at most 4194304");
  EXPECT_EQ(refusal("/model/merges/3", {"t", 1}),
            "t.json: model.merges[3][1]: is 1, must be a string of at most 65536 bytes");
}

// The parser would keep the last of two equal keys; a token has one id.
TEST(TokenizerRefuses, OneTokenTwice) {
  std::string text = readJson("toy.json").dump();
  text.insert(text.find("\"vocab\":{") + 9, "\"the\":400,");
  Expected<Tokenizer> tokenizer = Tokenizer::parse(text, "t.json");
  ASSERT_FALSE(bool(tokenizer));
  EXPECT_EQ(tokenizer.error().text(), "t.json: model.vocab.the: the token has id 400 already");
}

// A merge may come before the vocabulary that names its tokens.
TEST(Tokenizer, SectionsInAnyOrder) {
  const Json document = readJson("toy.json");
  std::string text = "{\"model\":{\"merges\":" + document["model"]["merges"].dump() +
                     ",\"vocab\":" + document["model"]["vocab"].dump() + "}";
  for (const char *key : {"decoder", "pre_tokenizer", "added_tokens", "version"})
    text += ",\"" + std::string(key) + "\":" + document[key].dump();
  Expected<Tokenizer> tokenizer = Tokenizer::parse(text + "}", "t.json");
  ASSERT_TRUE(bool(tokenizer)) << tokenizer.error().text();
  EXPECT_EQ(encoded(*tokenizer, "the thing"), encoded(loaded("toy"), "the thing"));
}

TEST(TokenizerRefuses, BadAddedTokens) {
  EXPECT_EQ(refusal("/added_tokens/1/content", "<bos>"),
            "t.json: added_tokens[1].content: the token of added_tokens[0] "
            "again");
  EXPECT_EQ(refusal("/added_tokens/1/content", ""), "t.json: added_tokens[1].content: an empty token");
  EXPECT_EQ(refusal("/added_tokens/1/id", 286), "t.json: added_tokens[1].id: id 286 belongs to \"<bos>\" already");
  EXPECT_EQ(refusal("/added_tokens/1/content", "the"),
            "t.json: added_tokens[1].id: 287, but the vocabulary gives \"the\" "
            "257");
}

TEST(TokenizerRefuses, BadPatterns) {
  const std::string place = "/pre_tokenizer/pretokenizers/0/";
  EXPECT_EQ(refusal(place + "pattern/Regex", "(", "llama3.json"),
            "t.json: pre_tokenizer.pretokenizers[0].pattern.Regex: not a valid "
            "pattern: end pattern with unmatched parenthesis");
  EXPECT_EQ(refusal(place + "behavior", "Sometimes", "llama3.json"),
            "t.json: pre_tokenizer.pretokenizers[0].behavior: unknown behavior "
            "\"Sometimes\"");
}

TEST(TokenizerRefuses, BadTemplates) {
  Json post = {{"type", "TemplateProcessing"},
               {"single", Json::array({{{"SpecialToken", {{"id", "<x>"}}}}})},
               {"pair", Json::array()},
               {"special_tokens", Json::object()}};
  EXPECT_EQ(refusal("/post_processor", post), "t.json: post_processor.special_tokens.<x>: is missing");
  post["special_tokens"]["<x>"] = {{"id", "<x>"}, {"ids", {999}}};
  EXPECT_EQ(refusal("/post_processor", post),
            "t.json: post_processor.special_tokens.<x>.ids[0]: is 999, must be within 0..288");
  post["single"] = Json::array();
  EXPECT_EQ(refusal("/post_processor", post), "t.json: post_processor.single: a single template holds sequence A "
                                              "once");
}

TEST(TokenizerRefuses, WhatIsNotATokenizer) {
  auto parsed = [](const std::string &text) {
    Expected<Tokenizer> tokenizer = Tokenizer::parse(text, "t.json");
    return tokenizer ? "accepted" : tokenizer.error().text();
  };
  EXPECT_EQ(parsed("[]"), "t.json: is a list of 0, must be an object");
  EXPECT_EQ(parsed("{}"), "t.json: version: is missing");
  EXPECT_EQ(parsed("{").rfind("t.json:1:2: not JSON: syntax error", 0), 0u);
  EXPECT_EQ(parsed("{\"version\":\"\xFF\"}").rfind("t.json:1:13: not JSON: syntax error", 0), 0u);
  EXPECT_EQ(parsed(std::string(1 << 20, '[')), "t.json: JSON is nested deeper than 32 levels; flatten the file");
  EXPECT_EQ(parsed(std::string("{}\0{", 4)), "t.json:1:3: not JSON: a NUL byte");
  Expected<Tokenizer> absent = Tokenizer::load("/nonexistent/t.json");
  ASSERT_FALSE(bool(absent));
  EXPECT_EQ(absent.error().text(), "/nonexistent/t.json: cannot be opened: No such file or directory");
}

// A damaged file is refused with a message or is a tokenizer: never a crash.
TEST(TokenizerRefuses, DamagedFiles) {
  std::ifstream in(pathOf("flags.json"));
  std::stringstream content;
  content << in.rdbuf();
  const std::string whole = content.str();
  uint64_t state = 11;
  auto random = [&](size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return size_t(state >> 33) % below;
  };
  int refused = 0;
  for (int round = 0; round < 600; ++round) {
    std::string text = whole;
    for (size_t changes = 1 + random(3); changes > 0; --changes)
      switch (random(3)) {
      case 0:
        text[random(text.size())] = "09\"{}[],:aN-"[random(12)];
        break;
      case 1:
        text.erase(random(text.size()), 1 + random(20));
        break;
      default:
        text.insert(random(text.size()), text, random(text.size()), random(20));
      }
    Expected<Tokenizer> tokenizer = Tokenizer::parse(text, "t.json");
    if (tokenizer) {
      EXPECT_FALSE(encoded(*tokenizer, "the word 12 <|bos|> end", true).empty());
      continue;
    }
    ++refused;
    EXPECT_EQ(tokenizer.error().where.rfind("t.json", 0), 0u);
    EXPECT_FALSE(tokenizer.error().message.empty());
  }
  EXPECT_GT(refused, 300);
}

TEST(TokenizerRefuses, TextItHasNoTokensFor) {
  Json document = readJson("toy.json");
  document["model"]["vocab"].erase("\u010A"); // the newline
  Expected<Tokenizer> tokenizer = Tokenizer::parse(document.dump(), "t.json");
  ASSERT_TRUE(bool(tokenizer)) << tokenizer.error().text();
  EXPECT_EQ(encoded(*tokenizer, "ab"), encoded(loaded("toy"), "ab"));
  EXPECT_EQ(encoded(*tokenizer, "a\nb"), "t.json: no token for byte 10, which the text contains");
}

TEST(TokenizerRefuses, TextThatAPatternGivesUpOn) {
  Json document = readJson("llama3.json");
  document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(a|aa)+$";
  Expected<Tokenizer> tokenizer = Tokenizer::parse(document.dump(), "t.json");
  ASSERT_TRUE(bool(tokenizer));
  EXPECT_EQ(encoded(*tokenizer, std::string(60, 'a') + "b"),
            "t.json: pre_tokenizer.pretokenizers[0].pattern.Regex: the pattern "
            "gives up on this text: retry-limit-in-match over");
}

} // namespace
