// The text of one sequence as it comes: tokens to characters, ended by stop strings, streamed without ever taking back.
#ifndef K2RT_RUN_GENERATEDTEXT_H
#define K2RT_RUN_GENERATEDTEXT_H

#include "text/Tokenizer.h"
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace k2c::runtime {

class GeneratedText {
public:
  /// `tokenizer` null: text stays empty. `stream` null: nothing is printed. Both, and `stops`, outlive this object.
  GeneratedText(const Tokenizer *tokenizer, const std::vector<std::string> &stops, FILE *stream);

  /// Adds a token's text. False when a stop string is complete: the text then ends before it.
  bool push(int32_t id);
  /// No token follows: what was held back comes out.
  void finish();
  const std::string &text() const { return all; }

private:
  bool add(const std::string &piece);
  size_t heldBack() const;
  void print(size_t end);

  std::optional<Tokenizer::Stream> decoder;
  const std::vector<std::string> &stops;
  FILE *stream;
  std::string all;
  size_t printed = 0;
  bool stopped = false;
};

} // namespace k2c::runtime

#endif
