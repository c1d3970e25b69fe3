//===- TokenizerParts.h - Sections of a tokenizer.json around its model ----===//
//
// Each reader checks its section and throws a ParseError (base/JsonFields.h) at
// the place that it cannot follow.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_TOKENIZERPARTS_H
#define K2RT_TEXT_TOKENIZERPARTS_H

#include "base/JsonFields.h"
#include "text/TokenizerData.h"

namespace k2c::runtime {

/// The file is right, but k2c cannot do what it says at `key` yet.
[[noreturn]] void unsupported(const JsonFields &at, const std::string &key, const std::string &what);

Normalizer readNormalizer(const JsonFields &node);
PreTokenizer readPreTokenizer(const JsonFields &node);
/// `byteLevel`: what the vocabulary is; the decoder must be of the same kind.
Decoder readDecoder(const JsonFields &node, bool byteLevel);

/// Fills data.before and data.after with ids below data.tokens.size().
void readPostProcessor(const JsonFields &node, TokenizerData &data);

} // namespace k2c::runtime

#endif // K2RT_TEXT_TOKENIZERPARTS_H
