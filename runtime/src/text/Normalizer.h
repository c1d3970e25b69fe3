//===- Normalizer.h - text as the vocabulary spells it --------------------===//
//
// Steps applied to each stretch of text between raw added tokens: Unicode's
// normalization forms (UAX #15, by utf8proc), lower case, a string put in
// front, a pattern replaced.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_NORMALIZER_H
#define K2RT_TEXT_NORMALIZER_H

#include "text/Pattern.h"

namespace k2c::runtime {

struct ComposeStep {
  enum Form { nfc, nfd, nfkc, nfkd } form;
};
/// Unicode's full lower-case mapping, character by character.
struct LowercaseStep {};
/// Puts `content` in front of text that is not empty.
struct PrependStep {
  std::string content;
};
struct ReplaceStep {
  Pattern pattern;
  std::string content;
};

class Normalizer {
public:
  using Step = std::variant<ComposeStep, LowercaseStep, PrependStep, ReplaceStep>;

  /// Changes well-formed `text`, which stays well-formed. Fails when a pattern
  /// gives up, or memory is short.
  Status apply(std::string &text) const;

  std::vector<Step> steps;
};

} // namespace k2c::runtime

#endif // K2RT_TEXT_NORMALIZER_H
