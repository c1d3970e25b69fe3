// Files of proc and sys.
#include "base/SmallFile.h"
#include <cstdio>

namespace k2c {

std::string readSmallFile(const std::string &path) {
  std::string text;
  if (FILE *file = std::fopen(path.c_str(), "re")) {
    char buffer[4096];
    size_t got;
    while (text.size() < 65536 && (got = std::fread(buffer, 1, sizeof buffer, file)) > 0)
      text.append(buffer, got);
    std::fclose(file);
  }
  return text;
}

std::string readFirstLine(const std::string &path) {
  const std::string text = readSmallFile(path);
  return text.substr(0, text.find('\n'));
}

} // namespace k2c
