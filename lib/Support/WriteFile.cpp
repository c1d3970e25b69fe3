//===- WriteFile.cpp - A text as a file ------------------------------------===//
#include "k2c/Support/WriteFile.h"
#include <cerrno>
#include <cstring>
#include <fstream>

k2c::Status k2c::writeFile(const std::string &path, const std::string &text, const std::string &remedy) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file ? Status() : Error{path, std::string("cannot be written: ") + std::strerror(errno), remedy};
}
