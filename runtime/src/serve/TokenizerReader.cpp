// tokenizer.json -> TokenizerData: the sections in the order of the file, each
// checked as it is read. See TokenizerData.h for what may come out.
#include "serve/ByteLevel.h"
#include "serve/JsonNode.h"
#include "serve/Vocabulary.h"

namespace k2rt {

namespace {

using Json = nlohmann::json;

template <class T> T orRefuse(Result<T> result) {
  if (!result)
    throw Refusal{result.takeError()};
  return std::move(*result);
}

class Reader {
public:
  Reader(const JsonNode &root, Vocabulary &vocabulary, TokenizerData &data)
      : root(root), vocabulary(vocabulary), data(data) {}

  void read() {
    root.onlyKeys({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
                   "decoder", "model"});
    if (root["version"].text() != "1.0")
      root["version"].unsupported("version " + root["version"].text());
    readNormalizer();
    readModel(root["model"]);
    readAddedTokens();
    fillTokens();
    for (int32_t id : wholeWords)
      data.pairs.whole.emplace(data.bytes(id), id);
    readPreTokenizer();
    if (auto node = root.find("post_processor"))
      readPostProcessor(*node);
    readDecoder(root["decoder"]);
  }

private:
  // Normalizers: none is applied, so only an empty sequence may stand here.
  void readNormalizer() {
    auto node = root.find("normalizer");
    if (!node)
      return;
    const std::string &type = (*node)["type"].text();
    if (type != "Sequence" || (*node)["normalizers"].size() != 0)
      node->unsupported("normalizer " + type);
  }

  void readModel(const JsonNode &model) {
    model.onlyKeys({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                    "byte_fallback", "ignore_merges", "vocab", "merges"});
    if (auto type = model.find("type"); type && type->text() != "BPE")
      type->unsupported("model " + type->text());
    for (const char *key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (auto node = model.find(key); node && !node->text().empty())
        node->unsupported("\"" + node->text() + "\"");
    if (auto dropout = model.find("dropout"))
      dropout->unsupported("dropout");
    if (model.flag("byte_fallback", false))
      model["byte_fallback"].unsupported("byte fallback");
    // Their entries went to the vocabulary while they were parsed.
    model["vocab"].object();
    model["merges"].size();
    readBytes(model);
    vocabulary.resolveMerges();
    if (model.flag("ignore_merges", false))
      for (const auto &[spelling, id] : data.ids)
        if (spelledBytes(spelling))
          wholeWords.push_back(id);
  }

  // A byte without a token is an error of the text that has it, not of the
  // file; an unk_token in its place is not known here.
  void readBytes(const JsonNode &model) {
    for (int byte = 0; byte < 256; ++byte) {
      auto found = data.ids.find(byteSpelling(uint8_t(byte)));
      if (found != data.ids.end())
        data.pairs.byteToken[size_t(byte)] = found->second;
      else if (auto unknown = model.find("unk_token"))
        unknown->unsupported("an unknown token (byte " + std::to_string(byte) + " has no token of its own)");
    }
  }

  void readAddedTokens() {
    std::vector<AddedToken> tokens;
    std::unordered_map<std::string, size_t> seen;
    auto list = root.find("added_tokens");
    const size_t count = list ? list->size() : 0;
    for (size_t i = 0; i < count; ++i) {
      const JsonNode node = list->at(i);
      node.onlyKeys({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
      const std::string &content = node["content"].text();
      const int32_t id = int32_t(node["id"].integer(0, maxTokens - 1));
      if (content.empty())
        node["content"].refuse("an empty token");
      if (!seen.emplace(content, i).second)
        node["content"].refuse("the token of added_tokens[" + std::to_string(seen[content]) + "] again");
      auto known = data.ids.find(content);
      if (known == data.ids.end())
        vocabulary.declare(content, id, node["id"]);
      else if (known->second != id)
        node["id"].refuse(std::to_string(id) + ", but the vocabulary gives \"" + content + "\" " +
                          std::to_string(known->second));
      tokens.push_back({id, content, node.flag("single_word", false), node.flag("lstrip", false),
                        node.flag("rstrip", false), node.flag("normalized", true), node.flag("special", false)});
    }
    data.special.assign(vocabulary.spellings().size(), false);
    for (const AddedToken &token : tokens)
      data.special[size_t(token.id)] = token.special;
    data.added = orRefuse(AddedTokens::create(std::move(tokens), list ? list->place() : root.place()));
  }

  // Published vocabularies have small holes; an id far beyond the number of
  // tokens is a damaged file.
  void fillTokens() {
    if (vocabulary.spellings().size() > 2 * data.ids.size() + 1024)
      root["model"]["vocab"].refuse("ids reach " + std::to_string(vocabulary.spellings().size() - 1) + ", but only " +
                                    std::to_string(data.ids.size()) + " tokens are declared");
    for (const std::string *spelling : vocabulary.spellings()) {
      data.begin.push_back(data.text.size());
      if (spelling)
        data.text += spelledBytes(*spelling).value_or(*spelling);
    }
    data.begin.push_back(data.text.size());
  }

  void readPreTokenizer() {
    auto node = root.find("pre_tokenizer");
    if (!node)
      root.unsupported("a vocabulary that is not byte-level (no pre_tokenizer)");
    readStage(*node);
    if (!byteLevelSeen)
      node->unsupported("a vocabulary that is not byte-level");
  }

  void readStage(const JsonNode &node) {
    const std::string &type = node["type"].text();
    if (type == "Sequence") {
      node.onlyKeys({"type", "pretokenizers"});
      const JsonNode list = node["pretokenizers"];
      for (size_t i = 0; i < list.size(); ++i)
        readStage(list.at(i));
      return;
    }
    if (byteLevelSeen)
      node.unsupported(type + " after ByteLevel");
    if (type == "ByteLevel") {
      readByteLevel(node);
    } else if (type == "Split") {
      readSplit(node);
    } else if (type == "Digits") {
      node.onlyKeys({"type", "individual_digits"});
      data.preTokenizer.cuts.emplace_back(
          orRefuse(Regex::compile("\\p{N}", node.place())),
          node.flag("individual_digits", false) ? CutBehavior::isolated : CutBehavior::contiguous, false);
    } else {
      node.unsupported("pre-tokenizer " + type);
    }
  }

  void readByteLevel(const JsonNode &node) {
    node.onlyKeys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    byteLevelSeen = true;
    data.preTokenizer.addPrefixSpace = node.flag("add_prefix_space", true);
    if (node.flag("use_regex", true))
      data.preTokenizer.byteLevelCut.emplace(orRefuse(Regex::compile(PreTokenizer::gpt2Pattern, node.place())),
                                             CutBehavior::isolated, false);
  }

  void readSplit(const JsonNode &node) {
    node.onlyKeys({"type", "pattern", "behavior", "invert"});
    const JsonNode pattern = node["pattern"];
    pattern.onlyKeys({"String", "Regex"});
    const CutBehavior behavior = behaviorOf(node["behavior"]);
    const bool invert = node.flag("invert", false);
    if (auto literal = pattern.find("String")) {
      if (literal->text().empty())
        literal->refuse("an empty pattern");
      data.preTokenizer.cuts.emplace_back(literal->text(), behavior, invert);
      return;
    }
    const JsonNode regex = pattern["Regex"];
    data.preTokenizer.cuts.emplace_back(orRefuse(Regex::compile(regex.text(), regex.place())), behavior, invert);
  }

  static CutBehavior behaviorOf(const JsonNode &node) {
    const std::pair<const char *, CutBehavior> names[] = {{"Removed", CutBehavior::removed},
                                                          {"Isolated", CutBehavior::isolated},
                                                          {"MergedWithPrevious", CutBehavior::mergedWithPrevious},
                                                          {"MergedWithNext", CutBehavior::mergedWithNext},
                                                          {"Contiguous", CutBehavior::contiguous}};
    for (const auto &[name, behavior] : names)
      if (node.text() == name)
        return behavior;
    node.refuse("unknown behavior \"" + node.text() + "\"");
  }

  void readPostProcessor(const JsonNode &node) {
    const std::string &type = node["type"].text();
    if (type == "Sequence") {
      const JsonNode list = node["processors"];
      for (size_t i = 0; i < list.size(); ++i)
        readPostProcessor(list.at(i));
    } else if (type == "TemplateProcessing") {
      readTemplate(node);
    } else if (type != "ByteLevel") { // ByteLevel changes offsets only
      node.unsupported("post-processor " + type);
    }
  }

  void readTemplate(const JsonNode &node) {
    node.onlyKeys({"type", "single", "pair", "special_tokens"});
    if (templateSeen)
      node.unsupported("a second template");
    templateSeen = true;
    const JsonNode single = node["single"];
    bool sequenceSeen = false;
    for (size_t i = 0; i < single.size(); ++i) {
      const JsonNode piece = single.at(i);
      piece.onlyKeys({"Sequence", "SpecialToken"});
      if (auto sequence = piece.find("Sequence")) {
        if (sequenceSeen || (*sequence)["id"].text() != "A")
          sequence->refuse("a single template holds sequence A once");
        sequenceSeen = true;
        continue;
      }
      const std::string &name = piece["SpecialToken"]["id"].text();
      const JsonNode ids = node["special_tokens"][name]["ids"];
      for (size_t k = 0; k < ids.size(); ++k)
        (sequenceSeen ? data.after : data.before)
            .push_back(int32_t(ids.at(k).integer(0, int64_t(vocabulary.spellings().size()) - 1)));
    }
    if (!sequenceSeen)
      single.refuse("a single template holds sequence A once");
  }

  void readDecoder(const JsonNode &node) {
    const std::string &type = node["type"].text();
    if (type == "Sequence" && node["decoders"].size() == 1)
      return readDecoder(node["decoders"].at(0));
    if (type != "ByteLevel")
      node.unsupported("decoder " + type);
  }

  const JsonNode root;
  Vocabulary &vocabulary;
  TokenizerData &data;
  std::vector<int32_t> wholeWords; ///< tokens of the model that spell bytes
  bool byteLevelSeen = false, templateSeen = false;
};

Json parseJson(std::string_view text, Vocabulary &vocabulary, const std::string &name) {
  if (text.size() > maxTokenizerBytes)
    throw Refusal{Error{K2RT_INVALID_BUNDLE, name,
                        std::to_string(text.size()) + " bytes; the limit is " + std::to_string(maxTokenizerBytes), ""}};
  return Json::parse(text.begin(), text.end(), [&](int depth, Json::parse_event_t event, Json &parsed) {
    return vocabulary.take(depth, event, parsed);
  });
}

} // namespace

Result<std::unique_ptr<TokenizerData>> readTokenizerData(std::string_view json, const std::string &name) {
  auto data = std::make_unique<TokenizerData>();
  data->name = name;
  try {
    Vocabulary vocabulary(*data, name);
    const Json parsed = parseJson(json, vocabulary, name);
    Reader(JsonNode(parsed, name), vocabulary, *data).read();
  } catch (const Refusal &refusal) {
    return refusal.error;
  } catch (const Json::exception &error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::string_view text = error.what();
    const size_t at = text.find("] ");
    return Error{K2RT_INVALID_BUNDLE, name, std::string(at == text.npos ? text : text.substr(at + 2)), ""};
  }
  return data;
}

} // namespace k2rt
