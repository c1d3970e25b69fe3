// A tiktoken.model, a zero byte, and its tokenizer_config.json.
#include "text/Tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  const size_t end = std::min(text.find('\0'), size);
  k2c::runtime::TiktokenRules rules;
  rules.patterns = {"\\p{L}+", "\\s+", "."};
  rules.reserved = 16;
  rules.configName = "c.json";
  rules.config = end < size ? text.substr(end + 1) : std::string_view();
  k2c::Expected<k2c::runtime::Tokenizer> tokenizer =
      k2c::runtime::Tokenizer::parseRanks(text.substr(0, end), "t.model", rules);
  if (!tokenizer)
    return 0;
  if (k2c::Expected<std::vector<int32_t>> ids = tokenizer->encode(text.substr(0, 256), true))
    (void)tokenizer->decode(*ids, true);
  return 0;
}
