// tokenizer.json -> TokenizerData: the model and the added tokens; TokenizerParts.h has the sections around them. See
// TokenizerData.h for what may come out.
//
// The vocabulary and the merges are most of the file and are taken while it is parsed (Vocabulary.h); the tree that is
// left is small. The sections are read in the order of what they need: normalizer and pre-tokenizer first, which say
// whether spellings are byte-level and how added tokens are normalised, then the model, added tokens, the bytes of all
// tokens by id, and at last post-processor and decoder, which name tokens. Ids may have small holes, as published
// files do; one far beyond the number of tokens would make a small file allocate much, and is refused. Inside,
// refusals are exceptions with a place; they end in readJsonFields.
#include "base/Utf8.h"
#include "text/ByteLevel.h"
#include "text/TokenizerParts.h"
#include "text/Vocabulary.h"

namespace k2c::runtime {

namespace {

class Reader {
public:
  Reader(const JsonFields &root, Vocabulary &vocabulary, TokenizerData &data)
      : root(root), vocabulary(vocabulary), data(data) {}

  void read() {
    root.onlyKeys({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
                   "decoder", "model"});
    if (const std::string &version = root.string("version"); version != "1.0")
      unsupported(root, "version", "version " + shortened(version));
    if (root.has("normalizer"))
      data.normalizer = readNormalizer(root.object("normalizer"));
    if (root.has("pre_tokenizer"))
      data.preTokenizer = readPreTokenizer(root.object("pre_tokenizer"));
    readModel(root.object("model"));
    readAddedTokens();
    fillTokens();
    if (root.has("post_processor"))
      readPostProcessor(root.object("post_processor"), data);
    data.decoder = readDecoder(root.object("decoder"), byteLevel());
  }

private:
  bool byteLevel() const { return data.preTokenizer.byteLevel; }

  void readModel(const JsonFields &model) {
    model.onlyKeys({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                    "byte_fallback", "ignore_merges", "vocab", "merges"});
    if (const std::string type = model.string("type", "BPE"); type != "BPE")
      unsupported(model, "type", "model " + shortened(type));
    for (const char *key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (const std::string affix = model.string(key, ""); !affix.empty())
        unsupported(model, key, "\"" + shortened(affix) + "\"");
    if (model.has("dropout"))
      unsupported(model, "dropout", "dropout");
    // Their entries went to the vocabulary while they were parsed.
    model.object("vocab");
    model.objects("merges", maxTokens);
    readSymbols(model);
    vocabulary.resolveMerges();
    if (model.flag("ignore_merges", false))
      for (const auto &[spelling, id] : data.ids)
        if (!byteLevel() || spelledBytes(spelling))
          wholeWords.push_back(id);
  }

  int32_t idOf(const std::string &spelling) const {
    auto found = data.ids.find(spelling);
    return found == data.ids.end() ? -1 : found->second;
  }

  /// The tokens that single symbols begin as. A symbol without one is an error of the text that has it, not of the
  /// file; so is an unknown token that is not in the vocabulary.
  void readSymbols(const JsonFields &model) {
    BytePairs &pairs = data.pairs;
    pairs.characters = !byteLevel();
    if (model.has("unk_token"))
      pairs.unknown = idOf(model.string("unk_token", maxTokenBytes));
    pairs.fuseUnknown = model.flag("fuse_unk", false);
    const bool fallback = model.flag("byte_fallback", false);
    for (int byte = 0; byte < 256; ++byte) {
      if (byteLevel())
        pairs.byteToken[size_t(byte)] = idOf(byteSpelling(uint8_t(byte)));
      else if (fallback)
        pairs.byteToken[size_t(byte)] = idOf(tokenOfByte(uint8_t(byte)));
      if (byteLevel() && fallback && pairs.byteToken[size_t(byte)] < 0)
        unsupported(model, "byte_fallback",
                    "byte fallback of a byte-level vocabulary that lacks byte " + std::to_string(byte));
    }
    if (pairs.characters)
      for (const auto &[spelling, id] : data.ids)
        if (!spelling.empty() && utf8Step(spelling, 0).length == spelling.size())
          pairs.characterToken.emplace(utf8CodePoint(spelling), id);
  }

  void readAddedTokens() {
    std::vector<AddedToken> tokens;
    std::unordered_map<std::string, size_t> seen;
    const bool hasList = root.has("added_tokens");
    for (const JsonFields &node : hasList ? root.objects("added_tokens", maxTokens) : std::vector<JsonFields>()) {
      node.onlyKeys({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
      const std::string &content = node.string("content", maxTokenBytes);
      const int32_t id = int32_t(node.integer("id", 0, maxTokens - 1));
      if (content.empty())
        node.fail("content", "an empty token");
      if (!seen.emplace(content, tokens.size()).second)
        node.fail("content", "the token of added_tokens[" + std::to_string(seen[content]) + "] again");
      const int32_t known = idOf(content);
      if (known < 0)
        vocabulary.declare(content, id, node, "id");
      else if (known != id)
        node.fail("id", std::to_string(id) + ", but the vocabulary gives \"" + shortened(content) + "\" " +
                            std::to_string(known));
      AddedToken token = {id,
                          content,
                          node.flag("single_word", false),
                          node.flag("lstrip", false),
                          node.flag("rstrip", false),
                          node.flag("normalized", true),
                          node.flag("special", false)};
      if (token.normalized)
        orThrow(data.normalizer.apply(token.content));
      shown.emplace(id, token.content);
      tokens.push_back(std::move(token));
    }
    data.special.assign(vocabulary.spellings().size(), false);
    for (const AddedToken &token : tokens)
      data.special[size_t(token.id)] = token.special;
    data.added = orThrow(AddedTokens::create(std::move(tokens), root.place(hasList ? "added_tokens" : "")));
  }

  // Published vocabularies have small holes; an id far beyond the number of
  // tokens is a damaged file.
  void fillTokens() {
    if (vocabulary.spellings().size() > 2 * data.ids.size() + 1024)
      root.fail("model.vocab", "ids reach " + std::to_string(vocabulary.spellings().size() - 1) + ", but only " +
                                   std::to_string(data.ids.size()) + " tokens are declared");
    for (const std::string *spelling : vocabulary.spellings()) {
      const auto added = shown.find(data.tokens.size());
      const std::string &text = added != shown.end() ? added->second : spelling ? *spelling : std::string();
      data.tokens.push(byteLevel() ? spelledBytes(text).value_or(text) : text);
    }
    if (wholeWords.empty())
      return;
    data.pairs.whole.reserve(data.tokens, wholeWords.size());
    for (int32_t id : wholeWords)
      data.pairs.whole.add(id);
  }

  const JsonFields &root;
  Vocabulary &vocabulary;
  TokenizerData &data;
  std::vector<int32_t> wholeWords;                ///< tokens of the model that a word may be
  std::unordered_map<int32_t, std::string> shown; ///< added tokens as they are decoded: normalized, if they are that
};

} // namespace

Expected<std::unique_ptr<TokenizerData>> readTokenizerData(std::string_view json, const std::string &name) {
  if (json.size() > maxTokenizerBytes)
    return Error{K2RT_INVALID_BUNDLE, name,
                 std::to_string(json.size()) + " bytes; the limit is " + std::to_string(maxTokenizerBytes), ""};
  auto data = std::make_unique<TokenizerData>();
  data->name = name;
  Vocabulary vocabulary(*data, name);
  const auto read = [&](const JsonFields &root) {
    Reader(root, vocabulary, *data).read();
    return std::move(data);
  };
  return readJsonFields(json, name, read, "", [&](int depth, Vocabulary::Event event, nlohmann::json &parsed) {
    return vocabulary.take(depth, event, parsed);
  });
}

} // namespace k2c::runtime
