// Before a piece is printed, the longest end of the text that may still become a stop string is held back.
#include "run/GeneratedText.h"
#include <algorithm>

namespace k2c::runtime {

GeneratedText::GeneratedText(const Tokenizer *tokenizer, const std::vector<std::string> &stops, FILE *stream)
    : stops(stops), stream(stream) {
  if (tokenizer)
    decoder.emplace(*tokenizer, /*skipSpecial=*/true);
}

bool GeneratedText::push(int32_t id) { return !decoder || add(decoder->push(id)); }

void GeneratedText::finish() {
  if (decoder && !stopped)
    add(decoder->finish());
  print(all.size());
}

bool GeneratedText::add(const std::string &piece) {
  const size_t before = all.size();
  all += piece;
  size_t end = std::string::npos;
  for (const std::string &stop : stops) {
    const size_t from = before >= stop.size() ? before - stop.size() + 1 : 0;
    end = std::min(end, all.find(stop, from));
  }
  if (end != std::string::npos) {
    all.resize(end);
    stopped = true;
  }
  print(stopped ? all.size() : all.size() - heldBack());
  return !stopped;
}

size_t GeneratedText::heldBack() const {
  size_t longest = 0;
  for (const std::string &stop : stops)
    for (size_t length = std::min(stop.size() - 1, all.size()); length > longest; --length)
      if (all.compare(all.size() - length, length, stop, 0, length) == 0)
        longest = length;
  return longest;
}

void GeneratedText::print(size_t end) {
  if (!stream || end <= printed)
    return;
  std::fwrite(all.data() + printed, 1, end - printed, stream);
  std::fflush(stream);
  printed = end;
}

} // namespace k2c::runtime
