// Inputs of a planner query: a line with the function's name, then JSON.
#include "k2c/Formulas/Query.h"
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  const size_t end = text.find('\n');
  if (end == text.npos)
    return -1;
  auto inputs = k2c::parseJson(std::string(text.substr(end + 1)), "inputs");
  if (inputs)
    (void)bool(k2c::answerQuery(std::string(text.substr(0, end)), *inputs));
  return 0;
}
