// A tokenizer.json; an accepted one reads and writes its own file's first bytes.
#include "text/Tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  k2c::Expected<k2c::runtime::Tokenizer> tokenizer = k2c::runtime::Tokenizer::parse(text, "t.json");
  if (!tokenizer)
    return 0;
  if (k2c::Expected<std::vector<int32_t>> ids = tokenizer->encode(text.substr(0, 256), true))
    (void)tokenizer->decode(*ids, true);
  return 0;
}
