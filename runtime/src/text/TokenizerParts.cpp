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

void unsupported(const JsonFields &at, const std::string &key, const std::string &what) {
  throw ParseError{{K2RT_UNSUPPORTED, at.place(key), what + " is not in this build", "use token ids instead of text"}};
}

namespace {

constexpr size_t maxStages = 4096;

/// A string of the file, which may be longer than a field of a bundle.
const std::string &text(const JsonFields &node, const char *key) { return node.string(key, maxTokenBytes); }

Pattern readPattern(const JsonFields &node) {
  node.onlyKeys({"String", "Regex"});
  if (!node.has("String"))
    return Pattern(orThrow(Regex::compile(text(node, "Regex"), node.place("Regex"))));
  if (text(node, "String").empty())
    node.fail("String", "an empty pattern");
  return Pattern(text(node, "String"));
}

/// Calls `read` with the stages of a section in order; `list` is where a Sequence keeps its own.
void forEachStage(const JsonFields &node, const char *list,
                  const std::function<void(const JsonFields &, const std::string &type)> &read) {
  const std::string &type = node.string("type");
  if (type != "Sequence")
    return read(node, type);
  node.onlyKeys({"type", list});
  for (const JsonFields &stage : node.objects(list, maxStages))
    forEachStage(stage, list, read);
}

ReplaceStep readReplace(const JsonFields &node) {
  node.onlyKeys({"type", "pattern", "content"});
  return {readPattern(node.object("pattern")), text(node, "content")};
}

//===----------------------------------------------------------------------===//
// Pre-tokenizers
//===----------------------------------------------------------------------===//

CutBehavior behaviorOf(const JsonFields &node) {
  const std::pair<const char *, CutBehavior> names[] = {{"Removed", CutBehavior::removed},
                                                        {"Isolated", CutBehavior::isolated},
                                                        {"MergedWithPrevious", CutBehavior::mergedWithPrevious},
                                                        {"MergedWithNext", CutBehavior::mergedWithNext},
                                                        {"Contiguous", CutBehavior::contiguous}};
  for (const auto &[name, behavior] : names)
    if (node.string("behavior") == name)
      return behavior;
  node.fail("behavior", "unknown behavior \"" + shortened(node.string("behavior")) + "\"");
}

Metaspace::Scheme schemeOf(const JsonFields &node) {
  const std::pair<const char *, Metaspace::Scheme> names[] = {
      {"never", Metaspace::never}, {"first", Metaspace::first}, {"always", Metaspace::always}};
  for (const auto &[name, scheme] : names)
    if (node.string("prepend_scheme") == name)
      return scheme;
  node.fail("prepend_scheme", "unknown prepend scheme \"" + shortened(node.string("prepend_scheme")) + "\"");
}

/// The keys that pre-tokenizer and decoder share. `add_prefix_space` is the older spelling of the scheme.
Metaspace readMetaspace(const JsonFields &node) {
  node.onlyKeys({"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
  Metaspace metaspace{text(node, "replacement"), Metaspace::always, std::nullopt};
  if (metaspace.space.empty())
    node.fail("replacement", "an empty replacement");
  const bool hasScheme = node.has("prepend_scheme");
  if (hasScheme)
    metaspace.prepend = schemeOf(node);
  if (!node.flag("add_prefix_space", true)) {
    if (hasScheme && metaspace.prepend != Metaspace::never)
      node.fail("prepend_scheme",
                "\"" + shortened(node.string("prepend_scheme")) + "\", but add_prefix_space is false");
    metaspace.prepend = Metaspace::never;
  }
  if (node.flag("split", true))
    metaspace.cut.emplace(Pattern(metaspace.space), CutBehavior::mergedWithNext, false);
  return metaspace;
}

void readByteLevel(const JsonFields &node, PreTokenizer &stages) {
  node.onlyKeys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  stages.byteLevel = true;
  stages.addPrefixSpace = node.flag("add_prefix_space", true);
  if (node.flag("use_regex", true))
    stages.byteLevelCut.emplace(Pattern(orThrow(Regex::compile(PreTokenizer::gpt2Pattern, node.place()))),
                                CutBehavior::isolated, false);
}

void readCut(const JsonFields &node, const std::string &type, PreTokenizer &stages) {
  if (type == "Split") {
    node.onlyKeys({"type", "pattern", "behavior", "invert"});
    const CutBehavior behavior = behaviorOf(node);
    stages.cuts.emplace_back(readPattern(node.object("pattern")), behavior, node.flag("invert", false));
  } else if (type == "Digits") {
    node.onlyKeys({"type", "individual_digits"});
    stages.cuts.emplace_back(Pattern(orThrow(Regex::compile("\\p{N}", node.place()))),
                             node.flag("individual_digits", false) ? CutBehavior::isolated : CutBehavior::contiguous,
                             false);
  } else {
    unsupported(node, "", "pre-tokenizer " + shortened(type));
  }
}

//===----------------------------------------------------------------------===//
// Post-processors
//===----------------------------------------------------------------------===//

void readTemplate(const JsonFields &node, TokenizerData &data) {
  node.onlyKeys({"type", "single", "pair", "special_tokens"});
  bool sequenceSeen = false;
  for (const JsonFields &piece : node.objects("single", maxStages)) {
    piece.onlyKeys({"Sequence", "SpecialToken"});
    if (piece.has("Sequence")) {
      if (sequenceSeen || piece.object("Sequence").string("id") != "A")
        piece.fail("Sequence", "a single template holds sequence A once");
      sequenceSeen = true;
      continue;
    }
    const JsonFields token = node.object("special_tokens").object(text(piece.object("SpecialToken"), "id"));
    for (int64_t id : token.integers("ids", 0, int64_t(data.tokens.size()) - 1, maxStages))
      (sequenceSeen ? data.after : data.before).push_back(int32_t(id));
  }
  if (!sequenceSeen)
    node.fail("single", "a single template holds sequence A once");
}

//===----------------------------------------------------------------------===//
// Decoders
//===----------------------------------------------------------------------===//

/// Stages of a decoder of pieces, in the only order that it applies them in.
enum class DecoderStage { replace, byteFallback, fuse, strip };

void readStrip(const JsonFields &node, bool fused, Decoder &decoder) {
  node.onlyKeys({"type", "content", "start", "stop"});
  if (!fused)
    unsupported(node, "", "decoder Strip without Fuse before it");
  if (node.integer("stop", 0, INT32_MAX) != 0)
    unsupported(node, "stop", "cutting at the end");
  decoder.stripped = text(node, "content");
  if (decoder.stripped.empty())
    node.fail("content", "an empty character");
  decoder.strippedAtMost = size_t(node.integer("start", 0, INT32_MAX));
}

Decoder readPieceDecoder(const JsonFields &node) {
  Decoder decoder;
  decoder.byteLevel = false;
  DecoderStage last = DecoderStage::replace;
  auto enter = [&last](const JsonFields &at, const std::string &type, DecoderStage stage) {
    if (stage < last || (stage == last && stage != DecoderStage::replace))
      unsupported(at, "", "decoder " + shortened(type) + " in this order");
    last = stage;
  };
  forEachStage(node, "decoders", [&](const JsonFields &stage, const std::string &type) {
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
      unsupported(stage, "", "decoder " + shortened(type));
    }
  });
  return decoder;
}

} // namespace

Normalizer readNormalizer(const JsonFields &node) {
  Normalizer normalizer;
  const std::pair<const char *, ComposeStep::Form> forms[] = {
      {"NFC", ComposeStep::nfc}, {"NFD", ComposeStep::nfd}, {"NFKC", ComposeStep::nfkc}, {"NFKD", ComposeStep::nfkd}};
  forEachStage(node, "normalizers", [&](const JsonFields &stage, const std::string &type) {
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
      normalizer.steps.push_back(PrependStep{text(stage, "prepend")});
    } else if (type == "Replace") {
      normalizer.steps.push_back(readReplace(stage));
    } else {
      unsupported(stage, "", "normalizer " + shortened(type));
    }
  });
  return normalizer;
}

PreTokenizer readPreTokenizer(const JsonFields &node) {
  PreTokenizer stages;
  forEachStage(node, "pretokenizers", [&](const JsonFields &stage, const std::string &type) {
    if (stages.byteLevel || stages.metaspace)
      unsupported(stage, "", shortened(type) + " after " + (stages.byteLevel ? "ByteLevel" : "Metaspace"));
    if (type == "ByteLevel")
      readByteLevel(stage, stages);
    else if (type == "Metaspace")
      stages.metaspace = readMetaspace(stage);
    else
      readCut(stage, type, stages);
  });
  return stages;
}

void readPostProcessor(const JsonFields &node, TokenizerData &data) {
  bool templateSeen = false;
  forEachStage(node, "processors", [&](const JsonFields &stage, const std::string &type) {
    if (type == "TemplateProcessing") {
      if (templateSeen)
        unsupported(stage, "", "a second template");
      templateSeen = true;
      readTemplate(stage, data);
    } else if (type != "ByteLevel") { // ByteLevel changes offsets only
      unsupported(stage, "", "post-processor " + shortened(type));
    }
  });
}

Decoder readDecoder(const JsonFields &node, bool byteLevel) {
  bool bytes = false;
  size_t stages = 0;
  forEachStage(node, "decoders", [&](const JsonFields &stage, const std::string &type) {
    bytes |= type == "ByteLevel";
    if (++stages > 1 && bytes)
      unsupported(stage, "", "decoder ByteLevel beside another");
    if (byteLevel != (type == "ByteLevel"))
      unsupported(stage, "",
                  "decoder " + shortened(type) + " for a vocabulary that is " + (byteLevel ? "" : "not ") +
                      "byte-level");
  });
  return bytes ? Decoder() : readPieceDecoder(node);
}

} // namespace k2c::runtime
