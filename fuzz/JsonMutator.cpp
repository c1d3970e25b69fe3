// Every other mutant of a JSON target is changed where it means something (unit/Hostile/Mutator.h); libFuzzer changes
// bytes of the rest.
#include "../unit/Hostile/Mutator.h"
#include <algorithm>
#include <cstring>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// Printing a document recurses: what is nested deeper is changed by bytes.
static constexpr int maxNesting = 200;

static bool isFlat(const std::string &text) {
  int depth = 0, deepest = 0;
  for (char c : text) {
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    deepest = std::max(deepest, depth);
  }
  return deepest <= maxNesting;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  if (seed % 2 == 0 && isFlat(text) && nlohmann::json::accept(text)) {
    const std::string mutant = k2c::test::Mutator(seed / 2).json(text);
    if (!mutant.empty() && mutant.size() <= maxSize) {
      std::memcpy(data, mutant.data(), mutant.size());
      return mutant.size();
    }
  }
  return LLVMFuzzerMutate(data, size, maxSize);
}
