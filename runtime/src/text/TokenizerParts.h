//===- TokenizerParts.h - Sections of a tokenizer.json around its model ----===//
//
// Each reader checks its section and throws a ParseError (JsonNode.h) at the place
// that it cannot follow.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_TOKENIZERPARTS_H
#define K2RT_TEXT_TOKENIZERPARTS_H

#include "text/JsonNode.h"
#include "text/TokenizerData.h"

namespace k2c::runtime {

/// The value, or its error as a ParseError.
template <class T> T orRefuse(Expected<T> result) {
  if (!result)
    throw ParseError{result.takeError()};
  return std::move(*result);
}

Normalizer readNormalizer(const JsonNode &node);
PreTokenizer readPreTokenizer(const JsonNode &node);
/// `byteLevel`: what the vocabulary is; the decoder must be of the same kind.
Decoder readDecoder(const JsonNode &node, bool byteLevel);

/// Fills data.before and data.after with ids below data.tokens.size().
void readPostProcessor(const JsonNode &node, TokenizerData &data);

} // namespace k2c::runtime

#endif // K2RT_TEXT_TOKENIZERPARTS_H
