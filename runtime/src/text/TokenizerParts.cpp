// Normalizer, pre-tokenizer, post-processor, decoder: each a tree of named stages, flattened while it is read.
//
//   {"type": "Sequence", "decoders": [{"type": "Replace", ...}, {"type": "ByteFallback"}, {"type": "Fuse"}]}
//   ->  replacements, then bytes from tokens, then fuse
//
// What a tokenizer does wrongly shows in no error but in other tokens, so whatever is not understood is refused: an
// unknown stage, an unknown key of a known stage, a value without meaning here. The data that comes out has a fixed
// order of stages, and a file that has them in another one is refused too: nothing may follow ByteLevel or Metaspace
// when text is cut, decoders of pieces come as replace, byte fallback, fuse, strip, and a decoder must be byte-level
// exactly if the vocabulary is. A template holds the text's sequence once, with special tokens before and after it.
#include "text/TokenizerParts.h"
#include "base/Utf8.h"
#include <functional>

namespace k2c::runtime {

namespace {

Pattern readPattern(const JsonNode &node) {
  node.onlyKeys({"String", "Regex"});
  if (auto literal = node.find("String")) {
    if (literal->text().empty())
      literal->refuse("an empty pattern");
    return Pattern(literal->text());
  }
  const JsonNode regex = node["Regex"];
  return Pattern(orRefuse(Regex::compile(regex.text(), regex.place())));
}

/// Calls `read` with the stages of a section in order; `list` is where a Sequence keeps its own.
void forEachStage(const JsonNode &node, const char *list,
                  const std::function<void(const JsonNode &, const std::string &type)> &read) {
  const std::string &type = node["type"].text();
  if (type != "Sequence")
    return read(node, type);
  node.onlyKeys({"type", list});
  const JsonNode stages = node[list];
  for (size_t i = 0; i < stages.size(); ++i)
    forEachStage(stages.at(i), list, read);
}

ReplaceStep readReplace(const JsonNode &node) {
  node.onlyKeys({"type", "pattern", "content"});
  return {readPattern(node["pattern"]), node["content"].text()};
}

//===----------------------------------------------------------------------===//
// Pre-tokenizers
//===----------------------------------------------------------------------===//

CutBehavior behaviorOf(const JsonNode &node) {
  const std::pair<const char *, CutBehavior> names[] = {{"Removed", CutBehavior::removed},
                                                        {"Isolated", CutBehavior::isolated},
                                                        {"MergedWithPrevious", CutBehavior::mergedWithPrevious},
                                                        {"MergedWithNext", CutBehavior::mergedWithNext},
                                                        {"Contiguous", CutBehavior::contiguous}};
  for (const auto &[name, behavior] : names)
    if (node.text() == name)
      return behavior;
  node.refuse("unknown behavior \"" + shortened(node.text()) + "\"");
}

Metaspace::Scheme schemeOf(const JsonNode &node) {
  const std::pair<const char *, Metaspace::Scheme> names[] = {
      {"never", Metaspace::never}, {"first", Metaspace::first}, {"always", Metaspace::always}};
  for (const auto &[name, scheme] : names)
    if (node.text() == name)
      return scheme;
  node.refuse("unknown prepend scheme \"" + shortened(node.text()) + "\"");
}

/// The keys that pre-tokenizer and decoder share. `add_prefix_space` is the older spelling of the scheme.
Metaspace readMetaspace(const JsonNode &node) {
  node.onlyKeys({"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
  Metaspace metaspace{node["replacement"].text(), Metaspace::always, std::nullopt};
  if (metaspace.space.empty())
    node["replacement"].refuse("an empty replacement");
  auto scheme = node.find("prepend_scheme");
  if (scheme)
    metaspace.prepend = schemeOf(*scheme);
  if (!node.flag("add_prefix_space", true)) {
    if (scheme && metaspace.prepend != Metaspace::never)
      scheme->refuse("\"" + shortened(scheme->text()) + "\", but add_prefix_space is false");
    metaspace.prepend = Metaspace::never;
  }
  if (node.flag("split", true))
    metaspace.cut.emplace(Pattern(metaspace.space), CutBehavior::mergedWithNext, false);
  return metaspace;
}

void readByteLevel(const JsonNode &node, PreTokenizer &stages) {
  node.onlyKeys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  stages.byteLevel = true;
  stages.addPrefixSpace = node.flag("add_prefix_space", true);
  if (node.flag("use_regex", true))
    stages.byteLevelCut.emplace(Pattern(orRefuse(Regex::compile(PreTokenizer::gpt2Pattern, node.place()))),
                                CutBehavior::isolated, false);
}

void readCut(const JsonNode &node, const std::string &type, PreTokenizer &stages) {
  if (type == "Split") {
    node.onlyKeys({"type", "pattern", "behavior", "invert"});
    const CutBehavior behavior = behaviorOf(node["behavior"]);
    stages.cuts.emplace_back(readPattern(node["pattern"]), behavior, node.flag("invert", false));
  } else if (type == "Digits") {
    node.onlyKeys({"type", "individual_digits"});
    stages.cuts.emplace_back(Pattern(orRefuse(Regex::compile("\\p{N}", node.place()))),
                             node.flag("individual_digits", false) ? CutBehavior::isolated : CutBehavior::contiguous,
                             false);
  } else {
    node.unsupported("pre-tokenizer " + shortened(type));
  }
}

//===----------------------------------------------------------------------===//
// Post-processors
//===----------------------------------------------------------------------===//

void readTemplate(const JsonNode &node, TokenizerData &data) {
  node.onlyKeys({"type", "single", "pair", "special_tokens"});
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
          .push_back(int32_t(ids.at(k).integer(0, int64_t(data.tokens.size()) - 1)));
  }
  if (!sequenceSeen)
    single.refuse("a single template holds sequence A once");
}

//===----------------------------------------------------------------------===//
// Decoders
//===----------------------------------------------------------------------===//

/// Stages of a decoder of pieces, in the only order that it applies them in.
enum class DecoderStage { replace, byteFallback, fuse, strip };

void readStrip(const JsonNode &node, bool fused, Decoder &decoder) {
  node.onlyKeys({"type", "content", "start", "stop"});
  if (!fused)
    node.unsupported("decoder Strip without Fuse before it");
  if (node["stop"].integer(0, INT32_MAX) != 0)
    node["stop"].unsupported("cutting at the end");
  decoder.stripped = node["content"].text();
  if (decoder.stripped.empty())
    node["content"].refuse("an empty character");
  decoder.strippedAtMost = size_t(node["start"].integer(0, INT32_MAX));
}

Decoder readPieceDecoder(const JsonNode &node) {
  Decoder decoder;
  decoder.byteLevel = false;
  DecoderStage last = DecoderStage::replace;
  auto enter = [&last](const JsonNode &at, const std::string &type, DecoderStage stage) {
    if (stage < last || (stage == last && stage != DecoderStage::replace))
      at.unsupported("decoder " + shortened(type) + " in this order");
    last = stage;
  };
  forEachStage(node, "decoders", [&](const JsonNode &stage, const std::string &type) {
    const bool fused = last == DecoderStage::fuse;
    if (type == "Replace") {
      enter(stage, type, DecoderStage::replace);
      decoder.replacements.push_back(readReplace(stage));
    } else if (type == "ByteFallback") {
      enter(stage, type, DecoderStage::byteFallback);
      decoder.bytesFromTokens = true;
    } else if (type == "Fuse") {
      enter(stage, type, DecoderStage::fuse);
    } else if (type == "Strip") {
      enter(stage, type, DecoderStage::strip);
      readStrip(stage, fused, decoder);
    } else if (type == "Metaspace" && decoder.replacements.empty() && last == DecoderStage::replace) {
      const Metaspace metaspace = readMetaspace(stage);
      decoder.replacements.push_back({Pattern(metaspace.space), " "});
      if (metaspace.prepend != Metaspace::never)
        decoder.droppedAtFirst = metaspace.space;
    } else {
      stage.unsupported("decoder " + shortened(type));
    }
  });
  return decoder;
}

} // namespace

Normalizer readNormalizer(const JsonNode &node) {
  Normalizer normalizer;
  const std::pair<const char *, ComposeStep::Form> forms[] = {
      {"NFC", ComposeStep::nfc}, {"NFD", ComposeStep::nfd}, {"NFKC", ComposeStep::nfkc}, {"NFKD", ComposeStep::nfkd}};
  forEachStage(node, "normalizers", [&](const JsonNode &stage, const std::string &type) {
    for (const auto &[name, form] : forms)
      if (type == name) {
        stage.onlyKeys({"type"});
        normalizer.steps.push_back(ComposeStep{form});
        return;
      }
    if (type == "Lowercase") {
      stage.onlyKeys({"type"});
      normalizer.steps.push_back(LowercaseStep{});
    } else if (type == "Prepend") {
      stage.onlyKeys({"type", "prepend"});
      normalizer.steps.push_back(PrependStep{stage["prepend"].text()});
    } else if (type == "Replace") {
      normalizer.steps.push_back(readReplace(stage));
    } else {
      stage.unsupported("normalizer " + shortened(type));
    }
  });
  return normalizer;
}

PreTokenizer readPreTokenizer(const JsonNode &node) {
  PreTokenizer stages;
  forEachStage(node, "pretokenizers", [&](const JsonNode &stage, const std::string &type) {
    if (stages.byteLevel || stages.metaspace)
      stage.unsupported(shortened(type) + " after " + (stages.byteLevel ? "ByteLevel" : "Metaspace"));
    if (type == "ByteLevel")
      readByteLevel(stage, stages);
    else if (type == "Metaspace")
      stages.metaspace = readMetaspace(stage);
    else
      readCut(stage, type, stages);
  });
  return stages;
}

void readPostProcessor(const JsonNode &node, TokenizerData &data) {
  bool templateSeen = false;
  forEachStage(node, "processors", [&](const JsonNode &stage, const std::string &type) {
    if (type == "TemplateProcessing") {
      if (templateSeen)
        stage.unsupported("a second template");
      templateSeen = true;
      readTemplate(stage, data);
    } else if (type != "ByteLevel") { // ByteLevel changes offsets only
      stage.unsupported("post-processor " + shortened(type));
    }
  });
}

Decoder readDecoder(const JsonNode &node, bool byteLevel) {
  bool bytes = false;
  size_t stages = 0;
  forEachStage(node, "decoders", [&](const JsonNode &stage, const std::string &type) {
    bytes |= type == "ByteLevel";
    if (++stages > 1 && bytes)
      stage.unsupported("decoder ByteLevel beside another");
    if (byteLevel != (type == "ByteLevel"))
      stage.unsupported("decoder " + shortened(type) + " for a vocabulary that is " + (byteLevel ? "" : "not ") +
                        "byte-level");
  });
  return bytes ? Decoder() : readPieceDecoder(node);
}

} // namespace k2c::runtime
