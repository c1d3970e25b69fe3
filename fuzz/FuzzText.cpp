// Any text, in UTF-8 or not, through a tokenizer of each kind: the first byte chooses which. Ids are of the vocabulary.
#include "TempFile.h"
#include "text/Tokenizer.h"

using namespace k2c;
using namespace k2c::runtime;

static Tokenizer load(const char *name) {
  Expected<Tokenizer> tokenizer = Tokenizer::parse(readFile(std::string("test/Runtime/tokenizers/") + name), name);
  if (!tokenizer)
    __builtin_trap();
  return std::move(*tokenizer);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Tokenizer tokenizers[] = {load("toy.json"),      load("cuts.json"),      load("fold.json"),
                                         load("deepseek.json"), load("metaspace.json"), load("mixtral.json")};
  if (size == 0)
    return 0;
  const Tokenizer &tokenizer = tokenizers[data[0] % std::size(tokenizers)];
  const std::string_view text(reinterpret_cast<const char *>(data) + 1, size - 1);
  Expected<std::vector<int32_t>> ids = tokenizer.encode(text, data[0] >= 128);
  if (!ids)
    return 0;
  for (int32_t id : *ids)
    if (id < 0 || id >= tokenizer.size())
      __builtin_trap();
  (void)tokenizer.decode(*ids, true);
  (void)tokenizer.decode(*ids, false);
  return 0;
}
