// Tokenizers of every published kind against the `tokenizers` and `tiktoken` packages over 10,000 texts
// (test/Runtime/tokenizers/make_wide.py), and the files that only some kinds have.
#include "base/Utf8.h"
#include "text/Tokenizer.h"
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace k2c;
using namespace k2c::runtime;
using Json = nlohmann::json;

namespace {

constexpr size_t decodedTexts = 2500;

std::string fileOf(const std::string &name) {
  std::ifstream in(K2C_SOURCE_DIR "/test/Runtime/tokenizers/" + name, std::ios::binary);
  EXPECT_TRUE(bool(in)) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

TiktokenRules kimiRules() {
  const Json json = Json::parse(fileOf("kimi.rules.json"));
  TiktokenRules rules;
  rules.patterns = json["pattern"].get<std::vector<std::string>>();
  rules.reserved = json["reserved"].get<int64_t>();
  rules.place = "pattern";
  rules.config = json["config"].dump();
  rules.configName = "c.json";
  return rules;
}

Tokenizer loaded(const std::string &name) {
  Expected<Tokenizer> tokenizer = name == "kimi" ? Tokenizer::parseRanks(fileOf("kimi.model"), "t.model", kimiRules())
                                                 : Tokenizer::parse(fileOf(name + ".json"), "t.json");
  if (!tokenizer)
    ADD_FAILURE() << tokenizer.error().text();
  return std::move(*tokenizer);
}

std::string bytesOfHex(const std::string &hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += char(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

/// CRC-32 of zlib.
uint32_t checksum(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (char byte : bytes) {
    crc ^= uint8_t(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

class Wide : public testing::TestWithParam<const char *> {
protected:
  Wide() : tokenizer(loaded(GetParam())), texts(Json::parse(fileOf("wide.json"))) {
    const std::string bytes = fileOf(GetParam() + std::string(".crc"));
    expected.resize(bytes.size() / 4);
    std::memcpy(expected.data(), bytes.data(), expected.size() * 4);
  }
  /// A text as the golden file means it.
  std::string text(size_t i) const {
    return texts[i].is_string() ? texts[i].get<std::string>() : bytesOfHex(texts[i]["hex"].get<std::string>());
  }
  std::vector<int32_t> encoded(size_t i) const {
    Expected<std::vector<int32_t>> ids = tokenizer.encode(text(i), i % 5 == 0);
    if (!ids)
      ADD_FAILURE() << "text " << i << ": " << ids.error().text();
    return ids ? *ids : std::vector<int32_t>();
  }
  static std::string shown(const std::vector<int32_t> &ids) { return Json(ids).dump(); }

  Tokenizer tokenizer;
  Json texts;
  std::vector<uint32_t> expected;
};

TEST_P(Wide, EncodesAsThePackageDoes) {
  ASSERT_EQ(texts.size(), 10000u);
  ASSERT_EQ(expected.size(), texts.size() + decodedTexts);
  size_t wrong = 0;
  for (size_t i = 0; i < texts.size() && wrong < 5; ++i) {
    const std::vector<int32_t> ids = encoded(i);
    const bool same =
        checksum({reinterpret_cast<const char *>(ids.data()), ids.size() * sizeof(int32_t)}) == expected[i];
    wrong += !same;
    EXPECT_TRUE(same) << "text " << i << " " << texts[i].dump() << ": " << shown(ids);
  }
}

TEST_P(Wide, DecodesAsThePackageDoes) {
  size_t wrong = 0;
  for (size_t i = 0; i < decodedTexts && wrong < 5; ++i) {
    const std::string decoded = tokenizer.decode(encoded(i), i % 2 == 0);
    const bool same = checksum(decoded) == expected[texts.size() + i];
    wrong += !same;
    EXPECT_TRUE(same) << "text " << i << " " << texts[i].dump() << ": " << Json(decoded).dump();
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, Wide,
                         testing::Values("mixtral", "mistral", "metaspace", "partial", "qwen", "olmoe", "deepseek_v2",
                                         "fold", "decomposed", "nfd", "kimi", "gpt2", "llama3", "deepseek", "flags",
                                         "cuts"),
                         [](const auto &info) { return info.param; });

class RandomIds : public testing::TestWithParam<const char *> {};

// Ids that no text has: half characters, bytes between pieces. Streamed one by one, every piece is whole characters.
TEST_P(RandomIds, DecodeAndStream) {
  const Tokenizer tokenizer = loaded(GetParam());
  for (const Json &one : Json::parse(fileOf(GetParam() + std::string(".decoded.json")))) {
    const bool skip = one["skip"].get<bool>();
    const auto ids = one["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.decode(ids, skip), one["text"].get<std::string>()) << one.dump();
    Tokenizer::Stream stream(tokenizer, skip);
    std::string text;
    for (int32_t id : ids) {
      const std::string piece = stream.push(id);
      std::string clean;
      appendWellFormed(piece, false, clean);
      EXPECT_EQ(piece, clean);
      text += piece;
    }
    EXPECT_EQ(text + stream.finish(), one["text"].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, RandomIds,
                         testing::Values("mixtral", "mistral", "metaspace", "partial", "qwen", "olmoe", "deepseek_v2",
                                         "fold", "decomposed", "nfd", "kimi"),
                         [](const auto &info) { return info.param; });

//===--------------------------------------------------------------------===//
// Files that are refused
//===--------------------------------------------------------------------===//

/// The error of NAME.json with `value` written at `pointer` (a JSON pointer).
std::string refusal(const std::string &name, const std::string &pointer, const Json &value) {
  Json document = Json::parse(fileOf(name + ".json"));
  document[Json::json_pointer(pointer)] = value;
  Expected<Tokenizer> tokenizer = Tokenizer::parse(document.dump(), "t.json");
  return tokenizer ? "accepted" : tokenizer.error().text();
}

const std::string later = " is not in this build; use token ids instead of text";

TEST(TokenizerParts, KindsDoNotMix) {
  EXPECT_EQ(refusal("qwen", "/pre_tokenizer", nullptr),
            "t.json: decoder: decoder ByteLevel for a vocabulary that is not byte-level" + later);
  EXPECT_EQ(refusal("qwen", "/decoder", {{"type", "Fuse"}}),
            "t.json: decoder: decoder Fuse for a vocabulary that is byte-level" + later);
  EXPECT_EQ(refusal("qwen", "/pre_tokenizer/pretokenizers/2", {{"type", "Metaspace"}, {"replacement", "_"}}),
            "t.json: pre_tokenizer.pretokenizers[2]: Metaspace after ByteLevel" + later);
  const Json twice = {{{"type", "ByteLevel"}}, {{"type", "ByteLevel"}}};
  EXPECT_EQ(refusal("qwen", "/decoder", {{"type", "Sequence"}, {"decoders", twice}}),
            "t.json: decoder.decoders[1]: decoder ByteLevel beside another" + later);
}

TEST(TokenizerParts, MetaspaceThatContradictsItself) {
  const std::string place = "/pre_tokenizer";
  Json metaspace = {{"type", "Metaspace"}, {"replacement", ""}};
  EXPECT_EQ(refusal("mistral", place, metaspace), "t.json: pre_tokenizer.replacement: an empty replacement");
  metaspace = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}};
  EXPECT_EQ(refusal("mistral", place, metaspace),
            "t.json: pre_tokenizer.prepend_scheme: unknown prepend scheme \"last\"");
  metaspace = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}, {"add_prefix_space", false}};
  EXPECT_EQ(refusal("mistral", place, metaspace),
            "t.json: pre_tokenizer.prepend_scheme: \"first\", but add_prefix_space is false");
}

TEST(TokenizerParts, DecodersInAnotherOrder) {
  const std::string stage = "/decoder/decoders/";
  EXPECT_EQ(refusal("mistral", stage + "2", {{"type", "ByteFallback"}}),
            "t.json: decoder.decoders[2]: decoder ByteFallback in this order" + later);
  EXPECT_EQ(refusal("mistral", stage + "2", {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}),
            "t.json: decoder.decoders[2]: decoder Strip without Fuse before it" + later);
  EXPECT_EQ(refusal("mistral", stage + "3/stop", 1), "t.json: decoder.decoders[3].stop: cutting at the end" + later);
}

// Neither unknown token nor byte fallback: the package would drop the character without a word.
TEST(TokenizerParts, CharactersWithoutAToken) {
  Json document = Json::parse(fileOf("metaspace.json"));
  document["model"]["unk_token"] = nullptr;
  Expected<Tokenizer> tokenizer = Tokenizer::parse(document.dump(), "t.json");
  ASSERT_TRUE(bool(tokenizer)) << tokenizer.error().text();
  Expected<std::vector<int32_t>> ids = tokenizer->encode("a\U0001d54f", false);
  ASSERT_FALSE(bool(ids));
  EXPECT_EQ(ids.error().text(), "t.json: no token for \"\U0001d54f\", which the text contains");
}

/// The error of a tiktoken.model.
std::string ranksRefusal(const std::string &ranks, const TiktokenRules &rules = kimiRules()) {
  Expected<Tokenizer> tokenizer = Tokenizer::parseRanks(ranks, "t.model", rules);
  return tokenizer ? "accepted" : tokenizer.error().text();
}

/// The lines of the 256 bytes.
std::string byteRanks() {
  const std::string ranks = fileOf("kimi.model");
  size_t end = 0;
  for (int line = 0; line < 256; ++line)
    end = ranks.find('\n', end) + 1;
  return ranks.substr(0, end);
}

TEST(TiktokenRefuses, BadLines) {
  EXPECT_EQ(ranksRefusal("IQ==\n"), "t.model: line 1: expected a token in base64, a space and its rank");
  for (const char *line : {"IQ= 0\n", "I=Q= 0\n", "I!== 0\n", " 0\n"})
    EXPECT_EQ(ranksRefusal(line), "t.model: line 1: the token is not the base64 of 1 to 65536 bytes");
  EXPECT_EQ(ranksRefusal("IQ== 1\n"), "t.model: line 1: the rank is \"1\", expected 0");
  EXPECT_EQ(ranksRefusal("\nIQ== 0 \n"), "t.model: line 2: the rank is \"0 \", expected 0");
  EXPECT_EQ(ranksRefusal("IQ== 99999999999\n"), "t.model: line 1: the rank is \"99999999999\", expected 0");
}

TEST(TiktokenRefuses, RanksThatAreNoVocabulary) {
  EXPECT_EQ(ranksRefusal(""), "t.model: no token for byte 0");
  EXPECT_EQ(ranksRefusal(fileOf("kimi.model")), "accepted");
  EXPECT_EQ(ranksRefusal(byteRanks() + "IQ== 256\n"), "t.model: rank 256 has the bytes of rank 0");
  EXPECT_EQ(ranksRefusal(std::string((size_t(64) << 20) + 1, '\n')), "t.model: 67108865 bytes; the limit is 67108864");
}

TEST(TiktokenRefuses, BadNames) {
  auto named = [](const std::string &id, const Json &entry) {
    TiktokenRules rules = kimiRules();
    rules.config = Json{{"added_tokens_decoder", {{id, entry}}}}.dump();
    return ranksRefusal(byteRanks(), rules);
  };
  const std::string place = "c.json: added_tokens_decoder.";
  for (const std::string id : {"255", "512", "3x", ""})
    EXPECT_EQ(named(id, {{"content", "a"}}), place + id + ": not an id from 256 to 511, which are the special tokens");
  EXPECT_EQ(named("256", {{"content", ""}}), place + "256.content: an empty token");
  EXPECT_EQ(named("256", {{"content", std::string(65537, 'x')}}),
            place + "256.content: is \"" + std::string(96, 'x') + "..., must be a string of at most 65536 bytes");
  EXPECT_EQ(named("256", {{"content", "a"}, {"special", 5}}), place + "256.special: is 5, must be true or false");
  EXPECT_EQ(named("256", {{"content", "<|reserved_token_300|>"}}),
            "c.json: special tokens 256 and 300 have one name, \"<|reserved_token_300|>\"");
}

TEST(TiktokenRefuses, RulesItDoesNotHave) {
  TiktokenRules rules = kimiRules();
  rules.config = "{";
  EXPECT_EQ(ranksRefusal(fileOf("kimi.model"), rules).rfind("c.json:1:2: not JSON: syntax error", 0), 0u);
  rules = kimiRules();
  rules.patterns.clear();
  EXPECT_EQ(ranksRefusal(fileOf("kimi.model"), rules),
            "t.model: the model's family has no pattern for it; use token ids instead of text");
  rules.patterns = {"("};
  EXPECT_EQ(ranksRefusal(fileOf("kimi.model"), rules),
            "pattern: not a valid pattern: end pattern with unmatched parenthesis");
}

} // namespace
