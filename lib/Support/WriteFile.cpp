//===- WriteFile.cpp - A text as a file ------------------------------------===//
#include "k2c/Support/WriteFile.h"
#include "k2c/Support/Units.h"
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

k2c::Status k2c::writeFile(const std::string &path, const std::string &text, const std::string &remedy) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file ? Status() : Error{path, std::string("cannot be written: ") + std::strerror(errno), remedy};
}

k2c::Status k2c::checkSpace(const std::string &folder, const std::string &what, int64_t bytes) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error || space.available >= uint64_t(bytes))
    return {};
  return Error{folder,
               what + " takes " + format(Bytes(bytes)) + ", and its file system has " +
                   format(Bytes(int64_t(space.available))) + " left",
               "free space or choose another folder"};
}
