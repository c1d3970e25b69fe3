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
#include "k2c/Support/Join.h"
#include "k2c/Support/Yaml.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

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
         {"family", "model_types", "architectures", "config", "checks", "model", "rope", "ropes", "attention",
          "attentions", "mlp", "moe", "kinds", "layers", "weights", "mtp", "ignore", "tiktoken"});
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
    for (const char *section : {"model", "mlp", "moe"})
      family.sections[section] = entries(root[section]);
    family.attentions = variants(root, firstAttention, "attentions");
    family.ropes = variants(root, firstRope, "ropes");
    readKinds(root["kinds"]);
    for (const YAML::Node &node : root["layers"])
      family.layers.push_back(layerRule(node));
    checkUse(root);
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

  Entries entries(const YAML::Node &section) {
    Entries read;
    for (const auto &entry : section)
      read[entry.first.Scalar()] = word(entry.second, entry.first.Scalar());
    return read;
  }

  /// The section called `first`, if there is one, and those of `others`, each with the entries of the first that it
  /// does not have.
  std::map<std::string, Entries> variants(const YAML::Node &root, const char *first, const char *others) {
    std::map<std::string, Entries> byName;
    if (root[first])
      byName[first] = entries(root[first]);
    for (const auto &other : root[others]) {
      if (const std::string name = other.first.Scalar(); name == first || name == noTable || namesLayers(name))
        fail(document.error(other.first, "'" + name + "' means something else here", "choose another name"));
      Entries own = entries(other.second);
      if (root[first])
        own.insert(byName[first].begin(), byName[first].end());
      byName[other.first.Scalar()] = std::move(own);
    }
    return byName;
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

  /// A word that names one of `known`.
  std::string nameOf(const YAML::Node &node, const std::map<std::string, Entries> &known, const std::string &what,
                     const std::string &first, const std::string &section) {
    std::string name = word(node, what);
    if (!known.count(name))
      fail(document.error(node, "there is no " + what + " '" + name + "'",
                          first + ", or one of the section " + section));
    return name;
  }

  void readKinds(const YAML::Node &section) {
    for (auto [name, part] : {std::pair("dense", FeedForward::Dense), std::pair("moe", FeedForward::Moe)}) {
      kinds.push_back({name, part});
      if (!family.ropes.count(firstRope))
        kinds.back().rope.clear();
    }
    for (const auto &entry : section) {
      const YAML::Node &node = entry.second;
      keys(node, "a kind of layer", {"feed_forward", "attention", "rope", "norms"});
      LayerKind kind = kindOf(node["feed_forward"]);
      kind.name = entry.first.Scalar();
      if (node["attention"])
        kind.attention = nameOf(node["attention"], family.attentions, "attention", "attention", "attentions");
      if (node["rope"])
        kind.rope =
            optionalWord(node, "rope", "") == noTable
                ? ""
                : nameOf(node["rope"], family.ropes, "rotary table", std::string(noTable) + ", " + firstRope, "ropes");
      const std::string norms = optionalWord(node, "norms", "before");
      if (norms != "before" && norms != "around")
        fail(document.error(node["norms"], "norms must be before or around"));
      kind.norms = norms == "around" ? LayerNorms::Around : LayerNorms::Before;
      kinds.push_back(kind);
    }
  }

  LayerRule layerRule(const YAML::Node &node) {
    keys(node, "a layer run", {"kind", "from", "to", "every", "at", "otherwise", "except"});
    LayerKind kind = kindOf(node["kind"]);
    return {kind,
            word(node["from"], "from"),
            word(node["to"], "to"),
            optionalWord(node, "every", "1"),
            optionalWord(node, "at", "0"),
            node["otherwise"] ? kindOf(node["otherwise"]) : kind,
            optionalWord(node, "except", "")};
  }

  /// Layers name all kinds of the file, and these all of its attentions and rotary tables.
  void checkUse(const YAML::Node &root) {
    std::set<std::string> used, attentions, ropes;
    for (const LayerRule &rule : family.layers)
      for (const LayerKind *kind : {&rule.kind, &rule.otherwise}) {
        used.insert(kind->name);
        attentions.insert(kind->attention);
        ropes.insert(kind->rope);
      }
    auto check = [&](const char *section, const std::set<std::string> &named, const std::string &unused) {
      for (const auto &entry : root[section])
        if (!named.count(entry.first.Scalar()))
          fail(document.error(entry.first, unused + " '" + entry.first.Scalar() + "'", "leave it out"));
    };
    check("kinds", used, "no layers are of kind");
    check("attentions", attentions, "no layers have attention");
    check("ropes", ropes, "no layers read rotary table");
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
        {"size", KeyKind::Size}, {"count", KeyKind::Count}, {"number", KeyKind::Number},   {"share", KeyKind::Share},
        {"flag", KeyKind::Flag}, {"word", KeyKind::Word},   {"indices", KeyKind::Indices}, {"where", KeyKind::Where}};
    KeyRule rule;
    rule.key = key;
    keys(node, key, {"field", "kind", "default", "if_null", "one_of", "max", "of", "is"});
    if (failure)
      return rule;
    rule.field = word(node["field"], "field");
    auto kind = kinds.find(word(node["kind"], "kind"));
    if (kind == kinds.end())
      fail(document.error(node["kind"], "kind must be size, count, number, share, flag, word, indices or where"));
    else
      rule.kind = kind->second;
    if (node["default"])
      rule.defaultText = word(node["default"], "default");
    if (node["if_null"])
      rule.nullText = word(node["if_null"], "if_null");
    rule.of = optionalWord(node, "of", "");
    rule.is = optionalWord(node, "is", "");
    if (node["one_of"])
      rule.oneOf = words(node["one_of"], "one_of");
    if (node["max"])
      if (Expected<int64_t> max = document.asInt(node["max"], "max"))
        rule.max = *max;
    if (rule.kind == KeyKind::Where && (rule.of.empty() || !std::count(rule.oneOf.begin(), rule.oneOf.end(), rule.is)))
      fail(document.error(node, "where takes of, one_of, and is, which is one of these"));
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
    if (!rule.over.empty() && !namesLayers(rule.over) && !family.attentions.count(rule.over))
      fail(document.error(node["over"], "there are no layers '" + rule.over + "'",
                          joined(layerNames) + ", or the name of an attention"));
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
  std::vector<LayerKind> kinds;
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
