//===- Family.cpp - reading a families file -------------------------------===//
//
// A family of models is data: a YAML file says which config keys become which fields, what must hold of them, which
// layers there are and which tensors each has. The reader keeps the first error and goes on, so that its code has the
// order of the file and no test after every line; unknown keys are errors, and yaml-cpp's exceptions end in
// parseFamily.
//
// The files are embedded in the program and parsed on first use. One model needs one of them, so builtInFamiliesOf
// looks for the model type in the line `model_types:` of each file first and parses the one that has it; a type that
// no file lists gets all families, from which the caller makes its message. The line must therefore begin in the first
// column and hold the whole list. Parsed families stay where they are, in a map under a mutex, since callers keep
// references.
//
//===----------------------------------------------------------------------===//

#include "Family.h"
#include "EmbeddedFamilies.h"
#include "k2c/Support/Yaml.h"

#include <algorithm>
#include <map>
#include <mutex>

using namespace k2c;

namespace {

/// Reads nodes and keeps the first error, so that the code below reads as the
/// file does.
class FamilyReader {
public:
  explicit FamilyReader(YamlDocument document) : document(std::move(document)) {}

  Expected<Family> read() {
    const YAML::Node &root = document.root;
    keys(root, "the families file",
         {"family", "model_types", "architectures", "config", "checks", "model", "rope", "attention", "mlp", "moe",
          "kinds", "layers", "weights", "mtp", "ignore", "tiktoken"});
    if (failure)
      return *failure;
    family.file = document.file;
    family.name = word(root["family"], "family");
    family.modelTypes = words(root["model_types"], "model_types");
    family.architectures = words(root["architectures"], "architectures");
    for (const auto &entry : root["config"])
      family.keys.push_back(keyRule(entry.first.Scalar(), entry.second));
    for (const YAML::Node &node : root["checks"])
      family.checks.push_back(checkRule(node));
    for (const char *section : {"model", "rope", "attention", "mlp", "moe"})
      for (const auto &entry : root[section])
        family.sections[section][entry.first.Scalar()] = word(entry.second, entry.first.Scalar());
    for (const auto &entry : root["kinds"]) {
      keys(entry.second, "a kind of layer", {"feed_forward", "rotated"});
      LayerKind kind = kindOf(entry.second["feed_forward"]);
      kinds.push_back(
          {entry.first.Scalar(), kind.feedForward, optionalWord(entry.second, "rotated", "true") == "true"});
    }
    for (const YAML::Node &node : root["layers"]) {
      keys(node, "a layer run", {"kind", "from", "to", "every", "at", "otherwise", "except"});
      LayerKind kind = kindOf(node["kind"]);
      family.layers.push_back({kind, word(node["from"], "from"), word(node["to"], "to"),
                               optionalWord(node, "every", "1"), optionalWord(node, "at", "0"),
                               node["otherwise"] ? kindOf(node["otherwise"]) : kind, optionalWord(node, "except", "")});
    }
    for (const YAML::Node &node : root["weights"])
      family.weights.push_back(weightRule(node));
    for (const YAML::Node &node : root["mtp"])
      family.mtp.push_back(weightRule(node));
    for (const YAML::Node &node : root["ignore"]) {
      keys(node, "ignored tensors", {"tensors", "from", "to", "when", "only_with"});
      family.ignore.push_back({word(node["tensors"], "tensors"), optionalWord(node, "from", "0"),
                               optionalWord(node, "to", "1"), optionalWord(node, "when", ""),
                               optionalWord(node, "only_with", "")});
    }
    if (root["tiktoken"])
      readTiktoken(root["tiktoken"]);
    if (failure)
      return *failure;
    return std::move(family);
  }

private:
  void fail(Error error) {
    if (!failure)
      failure = std::move(error);
  }

  void keys(const YAML::Node &node, const std::string &what, const std::vector<std::string> &known) {
    if (Status status = document.checkKeys(node, what, known); !status)
      fail(status.takeError());
  }

  std::string word(const YAML::Node &node, const std::string &what) {
    Expected<std::string> text = document.asString(node, what);
    if (text)
      return *text;
    fail(text.takeError());
    return "";
  }

  std::string optionalWord(const YAML::Node &node, const char *key, const char *otherwise) {
    return node[key] ? word(node[key], key) : otherwise;
  }

  std::vector<std::string> words(const YAML::Node &node, const std::string &what) {
    std::vector<std::string> list;
    if (!node.IsDefined() || !node.IsSequence())
      fail(document.error(node, what + " must be a list"));
    else
      for (const YAML::Node &item : node)
        list.push_back(word(item, what));
    return list;
  }

  /// The kind that a word names.
  LayerKind kindOf(const YAML::Node &node) {
    const std::string name = word(node, "kind");
    for (const LayerKind &kind : kinds)
      if (kind.name == name)
        return kind;
    fail(document.error(node, "there is no kind '" + name + "'", "dense, moe, or one of the section kinds"));
    return {};
  }

  void readTiktoken(const YAML::Node &node) {
    keys(node, "tiktoken", {"pattern", "reserved"});
    family.tiktoken.patterns = words(node["pattern"], "pattern");
    if (Expected<int64_t> reserved = document.asInt(node["reserved"], "reserved"))
      family.tiktoken.reserved = *reserved;
    else
      fail(reserved.takeError());
  }

  KeyRule keyRule(const std::string &key, const YAML::Node &node) {
    static const std::map<std::string, KeyKind> kinds = {
        {"size", KeyKind::Size},   {"count", KeyKind::Count},     {"number", KeyKind::Number},
        {"share", KeyKind::Share}, {"flag", KeyKind::Flag},       {"word", KeyKind::Word},
        {"tally", KeyKind::Tally}, {"indices", KeyKind::Indices}, {"zeros", KeyKind::Zeros}};
    KeyRule rule;
    rule.key = key;
    keys(node, key, {"field", "kind", "default", "if_null", "one_of", "max", "of"});
    if (failure)
      return rule;
    rule.field = word(node["field"], "field");
    auto kind = kinds.find(word(node["kind"], "kind"));
    if (kind == kinds.end())
      fail(
          document.error(node["kind"], "kind must be size, count, number, share, flag, word, tally, indices or zeros"));
    else
      rule.kind = kind->second;
    if (node["default"])
      rule.defaultText = word(node["default"], "default");
    if (node["if_null"])
      rule.nullText = word(node["if_null"], "if_null");
    rule.of = optionalWord(node, "of", "");
    if (node["one_of"])
      rule.oneOf = words(node["one_of"], "one_of");
    if (node["max"])
      if (Expected<int64_t> max = document.asInt(node["max"], "max"))
        rule.max = *max;
    return rule;
  }

  CheckRule checkRule(const YAML::Node &node) {
    keys(node, "a check", {"that", "at", "say"});
    return {word(node["that"], "that"), word(node["at"], "at"), word(node["say"], "say")};
  }

  WeightRule weightRule(const YAML::Node &node) {
    keys(node, "a weight",
         {"id", "tensors", "over", "experts", "shape", "when", "dtype", "blocks", "mxfp4", "buffer", "lookup", "from",
          "to"});
    WeightRule rule;
    if (failure)
      return rule;
    rule.id = word(node["id"], "id");
    rule.tensors = word(node["tensors"], "tensors");
    rule.over = optionalWord(node, "over", "");
    rule.experts = optionalWord(node, "experts", "");
    rule.shape = words(node["shape"], "shape");
    rule.when = optionalWord(node, "when", "");
    rule.dtype = optionalWord(node, "dtype", "");
    rule.blocks = optionalWord(node, "blocks", "false") == "true";
    rule.microScales = optionalWord(node, "mxfp4", "false") == "true";
    rule.buffer = optionalWord(node, "buffer", "false") == "true";
    rule.lookup = optionalWord(node, "lookup", "false") == "true";
    rule.from = optionalWord(node, "from", "");
    rule.to = optionalWord(node, "to", "");
    rule.place = document.place(node);
    return rule;
  }

  YamlDocument document;
  Family family;
  std::vector<LayerKind> kinds = {{"dense", FeedForward::Dense}, {"moe", FeedForward::Moe}};
  std::optional<Error> failure;
};

} // namespace

Expected<Family> k2c::parseFamily(const std::string &text, const std::string &file) {
  Expected<YamlDocument> document = parseYaml(text, file);
  if (!document)
    return document.takeError();
  try {
    return FamilyReader(std::move(*document)).read();
  } catch (const YAML::Exception &error) {
    // A scalar where a mapping is expected.
    return Error{file + ":" + std::to_string(error.mark.line + 1), error.msg, ""};
  }
}

Expected<HarmlessKeys> k2c::parseHarmlessKeys(const std::string &text, const std::string &file) {
  Expected<YamlDocument> document = parseYaml(text, file);
  if (!document)
    return document.takeError();
  if (Status known = document->checkKeys(document->root, "the file", {"any", "only"}); !known)
    return known.takeError();
  HarmlessKeys keys;
  for (const YAML::Node &node : document->root["any"])
    keys.any.push_back(node.Scalar());
  for (const auto &entry : document->root["only"])
    for (const YAML::Node &value : entry.second)
      keys.only[entry.first.Scalar()].push_back(value.IsNull() ? "null" : value.Scalar());
  return keys;
}

static Expected<std::vector<Family>> parseFamilies() {
  std::vector<Family> families;
  for (const EmbeddedFile &file : embeddedFamilies()) {
    if (file.name == std::string("harmless-keys.yaml") || file.name == std::string("compile.yaml"))
      continue;
    Expected<Family> family = parseFamily(file.text, std::string("families/") + file.name);
    if (!family)
      return family.takeError();
    families.push_back(std::move(*family));
  }
  std::sort(families.begin(), families.end(), [](const Family &a, const Family &b) { return a.name < b.name; });
  return families;
}

static Expected<HarmlessKeys> parseHarmless() {
  for (const EmbeddedFile &file : embeddedFamilies())
    if (file.name == std::string("harmless-keys.yaml"))
      return parseHarmlessKeys(file.text, "families/harmless-keys.yaml");
  return Error{"families/harmless-keys.yaml", "is not in this build", ""};
}

static Expected<std::vector<std::string>> parseCompiled() {
  for (const EmbeddedFile &file : embeddedFamilies())
    if (file.name == std::string("compile.yaml")) {
      Expected<YamlDocument> document = parseYaml(file.text, "families/compile.yaml");
      if (!document)
        return document.takeError();
      std::vector<std::string> names;
      for (const YAML::Node &node : document->root["accepts"])
        names.push_back(node.Scalar());
      return names;
    }
  return Error{"families/compile.yaml", "is not in this build", ""};
}

const Expected<std::vector<Family>> &k2c::builtInFamilies() {
  static const Expected<std::vector<Family>> families = parseFamilies();
  return families;
}

/// Whether the file's line of model_types, which is read without the rest, has `modelType`.
static bool lists(const EmbeddedFile &file, const std::string &modelType) {
  const std::string text = file.text, key = "\nmodel_types:";
  const size_t begin = text.find(key);
  if (begin == std::string::npos)
    return false;
  Expected<YamlDocument> line = parseYaml(text.substr(begin + 1, text.find('\n', begin + 1) - begin), file.name);
  if (!line)
    return false;
  for (const YAML::Node &node : line->root["model_types"])
    if (node.Scalar() == modelType)
      return true;
  return false;
}

const Expected<std::vector<Family>> &k2c::builtInFamiliesOf(const std::string &modelType) {
  static std::mutex mutex;
  static std::map<std::string, Expected<std::vector<Family>>> parsed; // by file
  for (const EmbeddedFile &file : embeddedFamilies()) {
    if (!lists(file, modelType))
      continue;
    std::lock_guard<std::mutex> lock(mutex);
    auto found = parsed.find(file.name);
    if (found != parsed.end())
      return found->second;
    Expected<Family> family = parseFamily(file.text, std::string("families/") + file.name);
    Expected<std::vector<Family>> one = family ? Expected<std::vector<Family>>(std::vector<Family>{std::move(*family)})
                                               : Expected<std::vector<Family>>(family.takeError());
    return parsed.emplace(file.name, std::move(one)).first->second;
  }
  return builtInFamilies();
}

const Expected<HarmlessKeys> &k2c::builtInHarmlessKeys() {
  static const Expected<HarmlessKeys> keys = parseHarmless();
  return keys;
}

const Expected<std::vector<std::string>> &k2c::compiledFamilies() {
  static const Expected<std::vector<std::string>> names = parseCompiled();
  return names;
}
